"""Views of points while a head is trained: raw descriptors, drawn two by two.

They wait in one array (on disk, for most sources), from which every batch takes two of each of
its points. Where views can be made anew, as from photographs, some are replaced before every
batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.work import in_order

#: More replacements than anybody waits for.
_MANY = 1 << 40

Raw = NDArray[np.float32]


class Views(Protocol):
    """Where training gets its pairs from."""

    @property
    def points(self) -> int:
        """How many points there are that have at least two views."""

    def batch(self, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Two views each of ``n`` different points: raw descriptors (n, D) and (n, D).

        Arrays, or tensors on the device where the training is.
        """


class FixedViews:
    """Views that stay as they are.

    Parameters
    ----------
    raw
        Raw descriptors (N, D) of all views; may be memory-mapped, or a tensor.
    point_of
        (N,) the points that they show.
    rows
        Those that may be used.

    Examples
    --------
    >>> raw = np.arange(8, dtype=np.float32).reshape(4, 2)
    >>> views = FixedViews(raw, np.array([5, 7, 5, 7]), np.arange(4))
    >>> first, second = views.batch(2, np.random.default_rng(0))
    >>> abs(first - second).tolist()
    [[4.0, 4.0], [4.0, 4.0]]
    """

    def __init__(self, raw: Any, point_of: NDArray[Any], rows: NDArray[np.integer]) -> None:
        self.raw = raw
        self._rows = rows[np.argsort(point_of[rows], kind="stable")]
        _, starts, counts = np.unique(point_of[self._rows], return_index=True, return_counts=True)
        several = counts > 1
        self._starts, self._counts = starts[several], counts[several]

    @property
    def points(self) -> int:
        """How many points there are that have at least two views."""
        return len(self._starts)

    def batch(self, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Two views each of ``n`` different points."""
        chosen = rng.choice(self.points, n, replace=False)
        start, count = self._starts[chosen], self._counts[chosen]
        one = rng.integers(count)
        other = (one + rng.integers(1, count)) % count
        return self.raw[self._rows[start + one]], self.raw[self._rows[start + other]]


class Replacement(NamedTuple):
    """New views: the number of the first that is replaced, and raw descriptors (n, D)."""

    first: int
    raw: Raw


class FreshViews(FixedViews):
    """Views that are made anew while they are used, by several threads, in a fixed order.

    Parameters
    ----------
    raw, point_of, rows
        As in :class:`FixedViews`; ``raw`` is written to. Rows that may not be used stay.
    make
        The k-th replacement; called by threads.
    threads
        How many of them.
    """

    #: How many views are made anew for each one that a batch takes. More cost more time than they
    #: are worth (docs/heads.md).
    rate = 0.3

    def __init__(
        self,
        raw: Any,
        point_of: NDArray[Any],
        rows: NDArray[np.integer],
        make: Callable[[int], Any],
        threads: int,
    ) -> None:
        super().__init__(raw, point_of, rows)
        self._usable = np.zeros(len(raw), bool)
        self._usable[rows] = True
        self._made = in_order(make, range(_MANY), threads)
        self._due = 0.0

    def batch(self, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Two views each of ``n`` different points, after others have been replaced."""
        self._due += self.rate * 2 * n
        while self._due > 0:
            self._due -= self._put(next(self._made))
        return super().batch(n, rng)

    def _put(self, new: Any) -> int:
        """Put new views in their place; how many there were."""
        rows = slice(new.first, new.first + len(new.raw))
        usable = self._usable[rows]
        self.raw[rows][usable] = new.raw[usable]
        return len(new.raw)

    def close(self) -> None:
        """Stop making views."""
        self._made.close()

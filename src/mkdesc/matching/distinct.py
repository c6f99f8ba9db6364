"""Nearest neighbours that stand out from all that lies elsewhere in the image.

Seen in many views, one place gives many descriptors that are nearly the same. Lowe's ratio of the
nearest to the second nearest then says nothing: the second is the same place once more. Here the
second is the nearest one that lies elsewhere ("first to first geometrically inconsistent";
Mishkin, Matas, Perdoch, MODS, 2015), and mutual means the same place, not the same descriptor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_number
from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import array_type
from mkdesc.geometry.positions import as_positions
from mkdesc.matching.nearest import augmented, check_limits, check_pair, of_unit_size

#: Pixels within which two descriptors are of one place.
APART = 10.0

#: Scores at a time: 32 MB.
SCORES = 8_000_000


class DistinctMatches(NamedTuple):
    """Pairs of descriptors, how far apart they are, and how much they stand out.

    Attributes
    ----------
    pairs
        (M, 2) int64: index into the first set, index into the second; the ratios rise.
    distances
        (M,) float32, Euclidean.
    ratios
        (M,) float32: distance to the nearest, divided by that to the nearest elsewhere.
    """

    pairs: NDArray[np.int64]
    distances: NDArray[np.float32]
    ratios: NDArray[np.float32]


def match_distinct(
    a: ArrayLike,
    b: ArrayLike,
    places_a: ArrayLike,
    places_b: ArrayLike,
    *,
    ratio: float = 0.85,
    apart: float = APART,
) -> DistinctMatches:
    """Nearest neighbours, mutual by place, that are nearer than anything elsewhere.

    Parameters
    ----------
    a, b
        Descriptors (N, D) and (M, D), as for :func:`~mkdesc.match_descriptors`.
    places_a, places_b
        Where they are: (N, 2) and (M, 2), pixels.
    ratio
        Keep a pair only if its distance is less than this times the distance to the nearest
        of ``b`` that is more than ``apart`` away from the nearest.
    apart
        Pixels. A pair is mutual if the nearest of ``a`` to the one found in ``b`` is at most so
        far away from where it began.

    Examples
    --------
    >>> a = np.eye(3, dtype=np.float32)
    >>> b = a[[0, 0, 2]]  # the first one seen twice, 5 px apart
    >>> there = [[10, 10], [15, 10], [90, 90]]
    >>> match_distinct(a, b, [[0, 0], [50, 0], [90, 90]], there).pairs.tolist()
    [[0, 0], [2, 2]]
    """
    here, there = check_pair(a, b)
    check_limits(ratio)
    check_number("apart", apart, least=0)
    at_a = as_positions("places_a", places_a, len(here))
    at_b = as_positions("places_b", places_b, len(there))
    if not len(here) or not len(there):
        return DistinctMatches(
            np.empty((0, 2), np.int64), np.empty(0, np.float32), np.empty(0, np.float32)
        )
    first, second, unit = of_unit_size(here, there)
    best, elsewhere = np.empty((2, len(first)), np.float32)
    index, index_c = np.empty(len(first), np.int64), np.zeros(len(second), np.int32)
    best_c = np.full(len(second), -np.inf, np.float32)
    x, y = np.ascontiguousarray(at_b.T, np.float32)
    right = augmented(second, swap=True)
    rows = max(SCORES // len(second), 1)
    take = _compiled()
    for row in range(0, len(first), rows):
        now = slice(row, row + rows)
        scores = augmented(first[now]) @ right.T
        take(
            scores,
            row,
            x,
            y,
            float(apart**2),
            best[now],
            index[now],
            elsewhere[now],
            best_c,
            index_c,
        )
    # A score is -d^2 / 2; it is -inf where there is nothing elsewhere.
    distances, others = (np.sqrt(np.maximum(-2 * score, 0)) for score in (best, elsewhere))
    with np.errstate(invalid="ignore"):
        ratios = np.where(others > 0, distances / others, 1)
    moved = np.linalg.norm(at_a[index_c[index]] - at_a, axis=1)
    kept = np.flatnonzero((ratios < ratio) & (moved <= apart))
    kept = kept[np.argsort(ratios[kept], kind="stable")]
    return DistinctMatches(
        np.column_stack([kept, index[kept]]),
        (unit * distances[kept]).astype(np.float32),
        ratios[kept].astype(np.float32),
    )


@locked_cache
def _compiled() -> Callable[..., None]:
    def written(dtype: str) -> Any:
        return array_type(dtype, 1, written=True)

    floats = array_type("float32", 1)
    arguments = (
        array_type("float32", 2),
        "int64",
        floats,
        floats,
        "float64",
        written("float32"),
        written("int64"),
        written("float32"),
        written("float32"),
        written("int32"),
    )
    return compile_loop(
        "mkdesc.matching.distinct_numba:best_elsewhere",
        arguments,
        fastmath={"nnan", "nsz", "reassoc"},
    )

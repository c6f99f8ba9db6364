"""Looking signatures up: exact, over segments that are mapped and not read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_integer
from mkdesc._support.work import in_order
from mkdesc.retrieval.segments import Segment
from mkdesc.retrieval.signature import Signature


class Neighbour(NamedTuple):
    """An image by its name, and how similar it is, 0 to 1."""

    name: str
    similarity: float


class Signatures:
    """The signatures of a collection.

    Parameters
    ----------
    words
        (K, D): the visual words they are made by.
    segments
        Where they are.
    """

    def __init__(self, words: NDArray[np.float32], segments: Sequence[Segment]) -> None:
        self.words = words
        self.segments = list(segments)
        self._ends = list(accumulate(len(segment.names) for segment in self.segments))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def names(self) -> list[str]:
        """The images, in the order of :meth:`similarities`."""
        return [name for segment in self.segments for name in segment.names]

    def similarities(self, query: Signature) -> NDArray[np.float32]:
        """How similar each image (N,) is to a query, 0 to 1; segments by several threads."""
        if len(self.segments) == 1:
            return self.segments[0].similarities(query, self.words.shape[1])
        parts = in_order(
            lambda segment: segment.similarities(query, self.words.shape[1]), self.segments
        )
        return np.concatenate([np.empty(0, np.float32), *parts])

    def nearest(self, query: Signature, k: int) -> list[Neighbour]:
        """The ``k`` most similar images, the most similar first; of equal ones the first."""
        check_integer("k", k)
        scores = self.similarities(query)
        return [Neighbour(self._name(i), float(scores[i])) for i in best_of(scores, k).tolist()]

    def _name(self, number: int) -> str:
        segment = bisect_right(self._ends, number)
        return self.segments[segment].names[number - (self._ends[segment - 1] if segment else 0)]


def best_of(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Where the ``k`` highest scores are, the highest first; of equal ones the first.

    >>> best_of(np.array([0.1, 0.7, 0.7, 0.9], np.float32), 2).tolist()
    [3, 1]
    """
    least = np.partition(scores, -k)[-k] if k < len(scores) else -np.inf
    numbers = np.flatnonzero(scores >= least)
    return numbers[np.argsort(-scores[numbers], kind="stable")][:k]

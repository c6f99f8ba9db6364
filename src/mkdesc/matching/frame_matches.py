"""Local features of photographs, and matches of them, as arrays of frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.matching.near import first_of_each

#: Pixels within which two matches, in both images, are one.
SAME = 3.0

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class LocalFeatures(NamedTuple):
    """What was found in a photograph.

    Attributes
    ----------
    frames
        (N, 2, 3), affine, in pixels of the photograph.
    descriptors
        (N, D).
    kinds
        (N,) uint8. Features are matched with those of their kind alone: these look at
        surroundings of the same size.
    bits
        Whether descriptors are packed bits.
    """

    frames: Floats
    descriptors: NDArray[Any]
    kinds: NDArray[np.uint8]
    bits: bool = False

    def numbers(self) -> NDArray[Any]:
        """Descriptors as vectors: packed bits as zeros and ones."""
        return np.unpackbits(self.descriptors, axis=1) if self.bits else self.descriptors

    def all_kinds(self) -> range:
        """The kinds there may be; at least one."""
        return range(int(self.kinds.max(initial=0)) + 1)

    def of_kind(self, kind: int) -> NDArray[np.int64]:
        """The rows (K,) of one kind."""
        return np.flatnonzero(self.kinds == kind)


def plain_features(frames: Floats, descriptors: NDArray[Any], bits: bool = False) -> LocalFeatures:
    """Features of one kind."""
    return LocalFeatures(frames, descriptors, np.zeros(len(frames), np.uint8), bits)


def join_features(parts: Sequence[LocalFeatures]) -> LocalFeatures:
    """The features of several views of a photograph, one after the other."""
    frames, descriptors, kinds, _ = zip(*parts, strict=True)
    return LocalFeatures(
        np.concatenate(frames), np.concatenate(descriptors), np.concatenate(kinds)
    )


class FrameMatches(NamedTuple):
    """Matched frames of two photographs, the most trustworthy first.

    Attributes
    ----------
    a, b
        (M, 2, 3) each.
    distances
        (M,) float32, of their descriptors.
    pairs
        (M, 2) int64: rows of the features of either photograph.
    """

    a: Floats
    b: Floats
    distances: NDArray[np.float32]
    pairs: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        a: LocalFeatures,
        b: LocalFeatures,
        pairs: NDArray[np.int64],
        distances: NDArray[np.float32],
    ) -> FrameMatches:
        """The matches of rows (M, 2) of two sets of features."""
        return cls(a.frames[pairs[:, 0]], b.frames[pairs[:, 1]], distances, pairs)

    @property
    def positions(self) -> tuple[Floats, Floats]:
        """Where they are, (M, 2), in either photograph."""
        return self.a[:, :, 2], self.b[:, :, 2]

    def take(self, which: NDArray[np.int64] | Flags | slice) -> FrameMatches:
        """Some of them."""
        return FrameMatches(self.a[which], self.b[which], self.distances[which], self.pairs[which])

    def mirrored(self) -> FrameMatches:
        """These, with frames of the second photograph as a mirror image of it has them."""
        return self._replace(b=self.b * [1.0, -1.0, 1.0])

    def followed_by(self, more: FrameMatches) -> FrameMatches:
        """These, then more."""
        join = np.concatenate
        return FrameMatches(
            join([self.a, more.a]),
            join([self.b, more.b]),
            join([self.distances, more.distances]),
            join([self.pairs, more.pairs]),
        )

    def distinct(self) -> NDArray[np.int64]:
        """The first of all matches that join the same two places."""
        return first_of_each((np.concatenate(self.positions, axis=1), SAME))

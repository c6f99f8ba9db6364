"""Measures of a pair of photographs and a geometry: numbers, without any bound on them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mkdesc.belief.pair import PhotoPair
from mkdesc.geometry.estimators.base import Estimate
from mkdesc.matching.coherence import spread
from mkdesc.matching.contents import share_different
from mkdesc.matching.frame_matches import FrameMatches
from mkdesc.matching.lookalikes import share_repeated

#: A photograph is divided into cells as wide as this share of its longer side, or as 8 pixels.
CELL_SHARE, MIN_CELL = 40 / 1024, 8.0

Floats = NDArray[np.float64]


class Evidence:
    """What speaks for and against a geometry; each number is computed when it is first asked for.

    Parameters
    ----------
    pair
        The photographs and their matches.
    found
        A geometry that some of the matches agree on.
    """

    def __init__(self, pair: PhotoPair, found: Estimate) -> None:
        self.pair, self.found = pair, found

    @cached_property
    def agree(self) -> FrameMatches:
        """The inliers."""
        return self.pair.matches.take(self.found.inliers)

    @cached_property
    def described(self) -> FrameMatches:
        """The inliers at keypoints of both photographs, which have descriptors."""
        return self.agree.take(np.flatnonzero((self.agree.pairs >= 0).all(axis=1)))

    @property
    def n_inliers(self) -> int:
        """How many matches agree with the geometry."""
        return int(self.found.inliers.sum())

    @cached_property
    def n_cells(self) -> int:
        """Cells of a photograph that have an inlier; of both photographs the smaller number."""
        counts = []
        for xy, size in zip(self.agree.positions, self.pair.sizes, strict=True):
            cell = max(CELL_SHARE * max(size), MIN_CELL)
            counts.append(len(np.unique(np.floor(xy / cell), axis=0)))
        return min(counts)

    @property
    def strength(self) -> float:
        """``log(1 + inliers) + log(1 + cells)``."""
        return float(np.log1p(self.n_inliers) + np.log1p(self.n_cells))

    @cached_property
    def width(self) -> float:
        """The inliers' standard deviation across the best line, as a share of the diagonal."""
        return spread(self.agree, self.pair.sizes)

    @cached_property
    def repeated(self) -> float:
        """Share of the inliers' places that look the same as others of the same photograph."""
        return share_repeated(self.pair.features, self.described, self.pair.sizes)

    @cached_property
    def different(self) -> float:
        """Share of what lies between the inliers that looks different in the other photograph.

        0 for features of several kinds: they are nearly everywhere, so something else is there.
        """
        if max(len(one.all_kinds()) for one in self.pair.features) > 1:
            return 0.0
        return share_different(self.pair.features, self.described)

"""Measures of a pair of photographs and a geometry: numbers, without any bound on them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mkdesc.belief.pair import PhotoPair
from mkdesc.geometry.estimate import estimate_geometry
from mkdesc.geometry.estimators.base import Estimate
from mkdesc.geometry.options import EstimatorOptions
from mkdesc.matching.contents import share_different
from mkdesc.matching.frame_matches import FrameMatches
from mkdesc.matching.lookalikes import share_repeated
from mkdesc.matching.mirrored import mirrors
from mkdesc.matching.order import share_reversed

#: A photograph is divided into cells as wide as this share of its longer side, or as 8 pixels.
CELL_SHARE, MIN_CELL = 40 / 1024, 8.0

#: An inlier is sure if the gray values correlate so well, have so much texture in every direction,
#: and bring it back so near to where it began, in pixels.
SURE_CORRELATION, SURE_TEXTURE, SURE_RETURN = 0.88, 0.04, 1.0

#: How a plane seen in a mirror is looked for.
MIRROR_SEARCH = EstimatorOptions(max_iterations=1000)
#: Matches that agree on a plane by chance: 5 to 8 of unrelated photographs.
BY_CHANCE = 10

#: Matches that are off a geometry by more than so many thresholds contradict it.
OFF = 2.5

#: Width, as a share of the diagonal, from which inliers are not on one line.
WIDE = 0.02

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


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

    @cached_property
    def is_sure(self) -> Flags:
        """Of which matches (M,) the gray values leave no doubt, each on its own."""
        grown = self.pair.grown
        if grown is None:
            return np.ones(len(self.found.inliers), np.bool_)
        return (
            (grown.correlation >= SURE_CORRELATION)
            & (grown.texture >= SURE_TEXTURE)
            & (grown.returned <= SURE_RETURN)
        )

    @cached_property
    def sure(self) -> FrameMatches:
        """The sure inliers."""
        return self.pair.matches.take(self.found.inliers & self.is_sure)

    @property
    def n_inliers(self) -> int:
        """How many matches agree with the geometry."""
        return int(self.found.inliers.sum())

    @cached_property
    def n_cells(self) -> int:
        """Cells of a photograph with a sure inlier; of both photographs the smaller number."""
        counts = []
        for xy, size in zip(self.sure.positions, self.pair.sizes, strict=True):
            cell = max(CELL_SHARE * max(size), MIN_CELL)
            counts.append(len(np.unique(np.floor(xy / cell), axis=0)))
        return min(counts)

    @property
    def strength(self) -> float:
        """How strongly the photographs say that they show the same, as a logarithm.

        ``log(1 + n) + 2 log(1 + cells) + 2 log(width / WIDE)`` of the sure inliers, the last term
        at most 0: two edges fit each other anywhere along them.
        """
        n = len(self.sure.a)
        if not n:
            return 0.0
        narrow = np.log(np.clip(self.width / WIDE, 1e-2, 1.0))
        return float(np.log1p(n) + 2 * np.log1p(self.n_cells) + 2 * narrow)

    @cached_property
    def width(self) -> float:
        """Standard deviation of sure inliers across their best line, as a share of the diagonal.

        Of both photographs the smaller one.
        """
        deviations = []
        for xy, size in zip(self.sure.positions, self.pair.sizes, strict=True):
            spread = np.linalg.svd(xy - xy.mean(axis=0), compute_uv=False)[-1] if len(xy) else 0.0
            deviations.append(spread / np.sqrt(max(len(xy), 1)) / np.hypot(*size))
        return float(min(deviations))

    @cached_property
    def mirrored(self) -> float:
        """Tentative matches on a plane seen in a mirror, divided by those on this geometry.

        Beyond those that agree on any plane by chance.
        """
        tentative = self.pair.tentative
        if tentative is None:
            return 0.0
        here, there = tentative.positions
        flipped = estimate_geometry(
            here * [-1, 1], there, "homography", self.pair.threshold, options=MIRROR_SEARCH
        )
        if flipped.matrix is None:
            return 0.0
        matrix = np.asarray(flipped.matrix @ np.diag([-1.0, 1, 1]), np.float64)
        if not mirrors(matrix, here[flipped.inliers]):
            return 0.0
        agree = self.pair.residuals(self.found, tentative) < self.pair.threshold
        count = max(int(flipped.inliers.sum()) - BY_CHANCE, 0)
        return count / max(int(agree.sum()), 1)

    @cached_property
    def reversed(self) -> float:
        """Of the places on one epipolar line, two by two, the share that change their order.

        What one surface shows keeps its order; things that changed places do not. 0 on planes.
        """
        if self.found.geometry == "homography":
            return 0.0
        here, there = (xy[self.found.inliers] for xy in self.pair.ideal)
        return share_reversed(self.pair.fundamental(self.found), here, there)

    @property
    def doubtful(self) -> float:
        """What is repeated and what contradicts, where the geometry is not a plane; else 0.

        An epipolar geometry leaves matches the freedom to slide along their lines.
        """
        if self.found.geometry == "homography":
            return 0.0
        return self.repeated + 2 * self.contradicted

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

    @cached_property
    def contradicted(self) -> float:
        """Share of the keypoints between the inliers with a sure match off the geometry.

        Two copies of a template agree where they share its parts, and fit each other elsewhere in
        ways that no geometry explains; so do pieces that changed places. Of both photographs the
        smaller share.
        """
        off = self.is_sure & (self.pair.residuals(self.found) > OFF * self.pair.threshold)
        scene = self.pair.geometry()
        if scene.geometry != self.found.geometry == "homography":
            # The plane of a deep scene: what it leaves out may be depth.
            off &= self.pair.residuals(scene) > OFF * self.pair.threshold
        shares = []
        for k, (features, xy) in enumerate(
            zip(self.pair.features, self.agree.positions, strict=True)
        ):
            inside = within_hull(xy, features.frames[:, :, 2])
            rows = self.pair.matches.pairs[off, k]
            count = np.count_nonzero(inside[np.unique(rows[rows >= 0])])
            shares.append(count / max(int(np.count_nonzero(inside)), 1))
        return float(min(shares))


def within_hull(corners: Floats, asked: Floats) -> Flags:
    """Which of the positions ``asked`` (N, 2) are in the convex hull of others (M, 2).

    Examples
    --------
    >>> square = np.array([[0.0, 0], [4, 0], [4, 4], [0, 4]])
    >>> within_hull(square, np.array([[1.0, 1], [5, 1]])).tolist()
    [True, False]
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        sides = ConvexHull(corners).equations
    except (QhullError, ValueError):  # too few, or on one line
        return np.zeros(len(asked), np.bool_)
    return np.asarray((asked @ sides[:, :2].T + sides[:, 2] <= 0).all(axis=1))

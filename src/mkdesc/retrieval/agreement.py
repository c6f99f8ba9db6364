"""Whether two images show the same: matches that agree on one geometry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.features.folder import ImageFeatures
from mkdesc.matching.nearest import match_descriptors
from mkdesc.matching.verification import verify_matches

__all__ = ["Agreement", "agree"]

#: Ratio test, and pixels an inlier may be off.
RATIO, THRESHOLD = 0.95, 4.0
#: What matches of photographs by unknown cameras may agree on.
WAYS = ("homography", "fundamental")


class Agreement(NamedTuple):
    """Matched places of two images that agree on one geometry.

    Attributes
    ----------
    here, there
        (M, 2) float32: positions in the first and the second image.
    """

    here: NDArray[np.float32]
    there: NDArray[np.float32]


def agree(a: ImageFeatures, b: ImageFeatures) -> Agreement:
    """Matches of two images that agree on a homography or a fundamental matrix, if any do.

    Parameters
    ----------
    a, b
        Features of one kind.
    """
    pairs = match_descriptors(a.descriptors, b.descriptors, ratio=RATIO).pairs
    here, there = a.keypoints[pairs[:, 0], :2], b.keypoints[pairs[:, 1], :2]
    tried = [verify_matches(here, there, geometry, THRESHOLD).inliers for geometry in WAYS]
    best = max(tried, key=lambda inliers: int(inliers.sum()))
    return Agreement(here[best], there[best])

"""Whether two images show the same: matches that agree on one geometry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.features.image_features import ImageFeatures
from mkdesc.images.frames import frames_from_points
from mkdesc.matching.frame_matches import LocalFeatures, plain_features
from mkdesc.matching.judging import Verdict
from mkdesc.matching.two_view_geometry import TwoViewOptions
from mkdesc.matching.two_views import match_and_verify

#: Ratio test, and pixels an inlier may be off.
RATIO, THRESHOLD = 0.95, 4.0


class Agreement(NamedTuple):
    """Matched positions of two images that agree on one geometry.

    Attributes
    ----------
    here, there
        (M, 2): positions in the first and the second image; none unless they are believed.
    verdict
        What is believed of the two images, and why.
    """

    here: NDArray[np.float64]
    there: NDArray[np.float64]
    verdict: Verdict


def agree(a: ImageFeatures, b: ImageFeatures, device: str | None = None) -> Agreement:
    """Matches of two images that agree on a homography or a fundamental matrix, if any do.

    Parameters
    ----------
    a, b
        Features of one kind.
    device
        As for :func:`mkdesc.match_descriptors`.
    """
    (width, height), (other_width, other_height) = a.image_size.tolist(), b.image_size.tolist()
    sizes = (height, width), (other_height, other_width)
    options = TwoViewOptions(sizes, threshold=THRESHOLD, device=device)
    found = match_and_verify(local_features(a), local_features(b), RATIO, options)
    return Agreement(*found.matches.take(found.verified.inliers).positions, found.verdict)


def local_features(image: ImageFeatures) -> LocalFeatures:
    """Features out of a folder, as frames."""
    return plain_features(frames_from_points(image.keypoints), image.descriptors)

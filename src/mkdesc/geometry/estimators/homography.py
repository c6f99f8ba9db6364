"""Homographies: flat scenes, and cameras that only turn."""

from __future__ import annotations

import numpy as np

from mkdesc.geometry.estimators.base import Estimate, Floats, MatchedPoints
from mkdesc.geometry.options import EstimatorOptions


def estimate(points: MatchedPoints, threshold: float, options: EstimatorOptions) -> Estimate:
    """By samples of four matches; errors are distances in the second image."""
    import poselib

    search = options.for_poselib("max_reproj_error", threshold)
    matrix, found = poselib.estimate_homography(points.here, points.there, search, {})
    inliers = np.array(found["inliers"], np.bool_)
    return Estimate(in_front(np.asarray(matrix), points.here[inliers]), inliers, "homography")


def in_front(matrix: Floats, here: Floats) -> Floats:
    """A homography (3, 3), scaled so that positions (M, 2) it is for are in front of its horizon.

    Its last number is 1 or -1, unless that is 0.

    Examples
    --------
    >>> in_front(np.diag([-4.0, -4, -2]), np.array([[1.0, 1]])).diagonal().tolist()
    [2.0, 2.0, 1.0]
    """
    depths = here @ matrix[2, :2] + matrix[2, 2]
    sign = 1.0 if 2 * np.count_nonzero(depths > 0) >= len(depths) else -1.0
    return np.asarray(matrix * sign / (abs(matrix[2, 2]) or 1.0), np.float64)

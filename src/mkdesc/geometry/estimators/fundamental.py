"""Fundamental matrices: scenes that do not move, seen by unknown cameras."""

from __future__ import annotations

import numpy as np

from mkdesc.geometry.estimators.base import Estimate, MatchedPoints
from mkdesc.geometry.options import EstimatorOptions


def estimate(points: MatchedPoints, threshold: float, options: EstimatorOptions) -> Estimate:
    """By samples of seven matches; errors are Sampson's."""
    import poselib

    search = options.for_poselib("max_epipolar_error", threshold)
    matrix, found = poselib.estimate_fundamental(points.here, points.there, search, {})
    return Estimate(np.asarray(matrix), np.array(found["inliers"], np.bool_), "fundamental")

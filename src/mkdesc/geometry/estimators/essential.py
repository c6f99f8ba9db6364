"""Essential matrices: the pose of the second camera relative to the first, both known."""

from __future__ import annotations

import numpy as np

from mkdesc.geometry.estimators.base import (
    Estimate,
    MatchedPoints,
    essential_matrix,
    pinhole,
    unit,
)
from mkdesc.geometry.options import EstimatorOptions


def estimate(points: MatchedPoints, threshold: float, options: EstimatorOptions) -> Estimate:
    """By samples of five matches; errors are Sampson's."""
    import poselib

    assert points.cameras is not None  # estimate_geometry has checked it
    search = options.for_poselib("max_epipolar_error", threshold)
    first, second = map(pinhole, points.cameras)
    pose, found = poselib.estimate_relative_pose(
        points.here, points.there, first, second, search, {}
    )
    rotation, translation = np.asarray(pose.R), unit(pose.t)
    inliers = np.array(found["inliers"], np.bool_)
    matrix = essential_matrix(rotation, translation)
    return Estimate(matrix, inliers, "essential", rotation, translation)

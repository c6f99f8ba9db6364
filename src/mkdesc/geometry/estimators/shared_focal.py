"""Poses without EXIF data: essential matrices with one unknown focal length of both cameras."""

from __future__ import annotations

import numpy as np

from mkdesc.geometry.estimators.base import Estimate, MatchedPoints, essential_matrix, unit
from mkdesc.geometry.options import EstimatorOptions


def estimate(points: MatchedPoints, threshold: float, options: EstimatorOptions) -> Estimate:
    """By samples of six matches; errors are Sampson's."""
    import poselib

    assert points.centres is not None  # estimate_geometry has checked it
    search = options.for_poselib("max_epipolar_error", threshold) | {"real_focal_check": True}
    here, there = (
        xy - centre for xy, centre in zip((points.here, points.there), points.centres, strict=True)
    )
    both, found = poselib.estimate_shared_focal_relative_pose(here, there, np.zeros(2), search, {})
    rotation, translation = np.asarray(both.pose.R), unit(both.pose.t)
    inliers = np.array(found["inliers"], np.bool_)
    matrix = essential_matrix(rotation, translation)
    focal = float(both.camera1.focal())
    return Estimate(matrix, inliers, "shared-focal", rotation, translation, focal)

"""Absolute poses: where a photograph was taken, by points of a model that it shows."""

from __future__ import annotations

import numpy as np

from mkdesc.geometry.cameras import Camera
from mkdesc.geometry.estimators.base import AbsolutePose, Floats, pinhole
from mkdesc.geometry.options import EstimatorOptions


def estimate(
    xy: Floats, points: Floats, camera: Camera, threshold: float, options: EstimatorOptions
) -> AbsolutePose:
    """By samples of three; errors are distances in the photograph."""
    import poselib

    search = options.for_poselib("max_reproj_error", threshold)
    pose, found = poselib.estimate_absolute_pose(xy, points, pinhole(camera), search, {})
    return AbsolutePose(
        np.asarray(pose.R), np.asarray(pose.t), np.array(found["inliers"], np.bool_)
    )

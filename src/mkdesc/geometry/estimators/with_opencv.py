"""The same kinds by OpenCV's USAC framework (MAGSAC++): for platforms without PoseLib."""

from __future__ import annotations

from typing import Any

import numpy as np

from mkdesc._support.optional import needed
from mkdesc.geometry.cameras import Camera
from mkdesc.geometry.estimators.base import AbsolutePose, Estimate, Floats, MatchedPoints
from mkdesc.geometry.options import EstimatorOptions


def estimate(
    kind: str, points: MatchedPoints, threshold: float, options: EstimatorOptions
) -> Estimate:
    """A homography, a fundamental or an essential matrix."""
    cv2 = _opencv(options)
    here, there = points.here, points.there
    nothing = Estimate(None, np.zeros(len(here), np.bool_))
    search = threshold, options.confidence, options.max_iterations
    try:
        if kind == "homography":
            matrix, agree = cv2.findHomography(
                here, there, cv2.USAC_MAGSAC, search[0], None, search[2], search[1]
            )
        elif kind == "fundamental":
            matrix, agree = cv2.findFundamentalMat(here, there, cv2.USAC_MAGSAC, *search)
        elif kind == "essential":
            return _essential(cv2, points, search) or nothing
        else:
            raise ValueError(f"geometry: {kind} needs PoseLib (pip install poselib)")
    except cv2.error:  # what it throws when all points are one, say
        return nothing
    if matrix is None or matrix.shape != (3, 3):
        return nothing
    return Estimate(matrix, agree.ravel().astype(np.bool_), kind)


def _essential(
    cv2: Any, points: MatchedPoints, search: tuple[float, float, int]
) -> Estimate | None:
    """From rays; the threshold in pixels is brought to theirs."""
    assert points.cameras is not None  # estimate_geometry has checked it
    threshold, confidence, tries = search
    focal = float(np.sqrt(points.cameras[0].focal * points.cameras[1].focal))
    rays = [
        (xy - camera.matrix[:2, 2]) / camera.matrix.diagonal()[:2]
        for camera, xy in zip(points.cameras, points[:2], strict=True)
    ]
    matrix, agree = cv2.findEssentialMat(
        *rays,
        np.eye(3),
        method=cv2.USAC_MAGSAC,
        prob=confidence,
        threshold=threshold / focal,
        maxIters=tries,
    )
    if matrix is None or matrix.shape != (3, 3) or not np.isfinite(matrix).all():
        return None
    inliers = agree.ravel().astype(np.bool_)
    _, rotation, translation, _ = cv2.recoverPose(matrix, *(ray[inliers] for ray in rays))
    return Estimate(matrix, inliers, "essential", rotation, translation.ravel())


def estimate_absolute_pose(
    xy: Floats, points: Floats, camera: Camera, threshold: float, options: EstimatorOptions
) -> AbsolutePose | None:
    """Where a photograph was taken."""
    cv2 = _opencv(options)
    try:
        found, turn, shift, rows = cv2.solvePnPRansac(
            points,
            xy,
            camera.matrix,
            None,
            iterationsCount=options.max_iterations,
            reprojectionError=threshold,
            confidence=options.confidence,
            flags=cv2.SOLVEPNP_SQPNP,
        )
    except cv2.error:
        return None
    if not found or rows is None:
        return None
    inliers = np.zeros(len(xy), np.bool_)
    inliers[rows.ravel()] = True
    return AbsolutePose(cv2.Rodrigues(turn)[0], shift.ravel(), inliers)


def _opencv(options: EstimatorOptions) -> Any:
    with needed("estimating geometry without PoseLib needs OpenCV", "images"):
        import cv2
    cv2.setRNGSeed(options.seed)
    return cv2

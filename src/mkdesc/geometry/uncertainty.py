"""How certain a relative pose is: the covariance of its least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mkdesc.geometry.estimators.base import Estimate, MatchedPoints, essential_matrix
from mkdesc.geometry.residuals import sampson

#: Step of derivatives, in radians.
DELTA = 1e-6

#: Three angles of the rotation and two of the translation's direction.
FREE = 5

Floats = NDArray[np.float64]


def pose_covariance(found: Estimate, points: MatchedPoints) -> Floats | None:
    """The covariance (6, 6) of a relative pose, in degrees; None: the inliers do not determine it.

    Parameters
    ----------
    found
        A pose and its inliers.
    points
        All matches, with the cameras, or with centres where the focal length was estimated.

    Notes
    -----
    With the Jacobian J (M, 5) of the inliers' Sampson errors r: ``r.r / (M - 5) inv(J.T @ J)``.
    The rotation is varied from the left, by angles about the second camera's axes; the
    translation's direction at right angles to it, so the last three rows have rank two.
    """
    assert found.rotation is not None
    assert found.translation is not None
    inliers = found.inliers
    rays = _rays(points, found.focal)
    here, there = (np.column_stack([ray, np.ones(len(ray))])[inliers] for ray in rays)
    if len(here) <= FREE:
        return None
    rotation, translation = found.rotation, found.translation / np.linalg.norm(found.translation)
    across = np.linalg.svd(translation[None])[2][1:]  # (2, 3)

    def residuals(change: Floats) -> Floats:
        turned = _rotation(change[:3]) @ rotation
        moved = translation + change[3:] @ across
        return sampson(essential_matrix(turned, moved / np.linalg.norm(moved)), here, there)

    jacobian = np.column_stack(
        [(residuals(step) - residuals(-step)) / (2 * DELTA) for step in np.eye(FREE) * DELTA]
    )
    error = residuals(np.zeros(FREE))
    try:
        inner = np.linalg.inv(jacobian.T @ jacobian) * (error @ error) / (len(error) - FREE)
    except np.linalg.LinAlgError:
        return None
    spread = np.zeros((6, FREE))
    spread[:3, :3] = np.eye(3)
    spread[3:, 3:] = across.T
    covariance = np.degrees(1.0) ** 2 * (spread @ inner @ spread.T)
    return covariance if np.isfinite(covariance).all() else None


def _rays(points: MatchedPoints, focal: float | None) -> tuple[Floats, Floats]:
    """Rays (M, 2) of matches in both cameras."""
    both = (points.here, points.there)
    if focal is not None:
        assert points.centres is not None
        first, second = ((xy - at) / focal for xy, at in zip(both, points.centres, strict=True))
    else:
        assert points.cameras is not None
        first, second = (
            (xy - camera.matrix[:2, 2]) / camera.matrix.diagonal()[:2]
            for xy, camera in zip(both, points.cameras, strict=True)
        )
    return first, second


def _rotation(vector: Floats) -> Floats:
    """The rotation (3, 3) about a vector, by its length in radians."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_rotvec(vector).as_matrix(), np.float64)

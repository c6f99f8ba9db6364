"""How far matches are off a geometry, in pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mkdesc.geometry.estimators.base import Estimate, MatchedPoints
from mkdesc.geometry.uncertainty import sampson

Floats = NDArray[np.float64]


def transfer_errors(matrix: Floats, a: Floats, b: Floats) -> Floats:
    """How far (M,), in pixels, positions (M, 2) are from where a homography puts their partners.

    The smaller of the distances in either image: positions are as precise as the image that
    shows things smaller lets them be. Infinite for what is beyond the horizon.

    Examples
    --------
    >>> transfer_errors(np.diag([2.0, 2, 1]), np.array([[10.0, 10]]), np.array([[24.0, 20]]))
    array([2.])
    """
    try:
        back: Floats = np.linalg.inv(matrix).astype(np.float64)
    except np.linalg.LinAlgError:
        return np.full(len(a), np.inf)
    return np.minimum(_distances(matrix, a, b), _distances(back, b, a))


def _distances(matrix: Floats, a: Floats, b: Floats) -> Floats:
    mapped = a @ matrix[:, :2].T + matrix[:, 2]
    side = np.sign(np.median(mapped[:, 2])) if len(mapped) else 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.linalg.norm(mapped[:, :2] / mapped[:, 2:] - b, axis=1)
    return np.where(mapped[:, 2] * side > 0, found, np.inf)


def geometry_errors(found: Estimate, points: MatchedPoints) -> Floats:
    """How far matches (M,) are off a geometry, in pixels, as its estimator measured them.

    Parameters
    ----------
    found
        A homography: distances in the second image. Any other geometry: Sampson's errors.
    points
        The matches, without distortion; with the cameras of an essential matrix, or with the
        centres where the focal length was estimated.

    Examples
    --------
    >>> sideways = Estimate(np.diag([1.0, 1, 1]), np.ones(1, bool), "homography")
    >>> geometry_errors(sideways, MatchedPoints(np.array([[1.0, 2]]), np.array([[4.0, 6]])))
    array([5.])
    """
    assert found.matrix is not None
    if found.geometry == "homography":
        return _distances(found.matrix, points.here, points.there)
    here, there = (np.column_stack([xy, np.ones(len(xy))]) for xy in points[:2])
    first, second = _to_rays(found, points)
    return np.abs(sampson(second.T @ found.matrix @ first, here, there))


def _to_rays(found: Estimate, points: MatchedPoints) -> tuple[Floats, Floats]:
    """What makes of pixels (3, 3) what a matrix is for: rays, or pixels as they are."""
    if found.geometry == "fundamental":
        return np.eye(3), np.eye(3)
    if found.focal is None:
        assert points.cameras is not None
        inverse = [np.linalg.inv(camera.matrix) for camera in points.cameras]
        return np.asarray(inverse[0], np.float64), np.asarray(inverse[1], np.float64)
    assert points.centres is not None
    f = found.focal
    one, two = (np.array([[1, 0, -x], [0, 1, -y], [0, 0, f]]) / f for x, y in points.centres)
    return one, two

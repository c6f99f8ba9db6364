"""How far matches are off a geometry, in pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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


def epipolar_errors(matrix: Floats, a: Floats, b: Floats) -> Floats:
    """Sampson errors (M,), in pixels, of positions (M, 2) under a fundamental matrix.

    Examples
    --------
    >>> sideways = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    >>> epipolar_errors(sideways, np.array([[0.0, 0]]), np.array([[7.0, 2]])).round(3)
    array([1.414])
    """
    one, two = (np.column_stack([xy, np.ones(len(xy))]) for xy in (a, b))
    return np.abs(sampson(matrix, one, two))


def sampson(matrix: Floats, here: Floats, there: Floats) -> Floats:
    """Sampson errors (M,), with their sign, of homogeneous positions (M, 3).

    Examples
    --------
    >>> sideways = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    >>> sampson(sideways, np.array([[0, 0.0, 1]]), np.array([[5, 0.2, 1]])).round(4).tolist()
    [-0.1414]
    """
    along, back = here @ matrix.T, there @ matrix
    slope = np.sqrt((along[:, :2] ** 2).sum(axis=1) + (back[:, :2] ** 2).sum(axis=1))
    return np.asarray((there * along).sum(axis=1) / np.maximum(slope, 1e-15), np.float64)

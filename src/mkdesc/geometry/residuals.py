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

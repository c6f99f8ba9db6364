"""Maps of the plane by least squares, of matches that are known to be right or nearly so."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Rounds of reweighting.
ROUNDS = 10

Floats = NDArray[np.float64]


def fit_affine(here: Floats, there: Floats, scale: float) -> Floats:
    """The affine map (3, 3) of positions (M, 2), M >= 3, by least squares with Cauchy's weights.

    Parameters
    ----------
    here, there
        Matched positions.
    scale
        Pixels at which a residual counts half.

    Examples
    --------
    >>> here = np.array([[0.0, 0], [10, 0], [0, 10], [10, 10]])
    >>> (fit_affine(here, here * 2 + [1, 5], 20.0).round(6) + 0.0).tolist()
    [[2.0, 0.0, 1.0], [0.0, 2.0, 5.0], [0.0, 0.0, 1.0]]
    """
    places = np.column_stack([here, np.ones(len(here))])
    weights = np.ones(len(here))
    for _ in range(ROUNDS):
        root = np.sqrt(weights)[:, None]
        map_ = np.linalg.lstsq(root * places, root * there, rcond=None)[0]
        off = ((places @ map_ - there) ** 2).sum(axis=1)
        weights = 1 / (1 + off / scale**2)
    return np.vstack([map_.T, [0.0, 0.0, 1.0]])


def fit_homography(here: Floats, there: Floats) -> Floats:
    """The homography (3, 3) of positions (M, 2), M >= 4, by normalised direct linear transform.

    Hartley and Zisserman, Multiple View Geometry, algorithm 4.2.

    Examples
    --------
    >>> here = np.array([[0.0, 0], [10, 0], [0, 10], [10, 10], [3, 7]])
    >>> found = fit_homography(here, here / (1 + here[:, :1] / 100))
    >>> ((found / found[2, 2]).round(6) + 0.0).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.01, 0.0, 1.0]]
    """
    first, second = _normaliser(here), _normaliser(there)
    ones = np.ones(len(here))
    a = np.column_stack([here, ones]) @ first.T
    u, v, _ = (np.column_stack([there, ones]) @ second.T).T
    nothing = np.zeros_like(a)
    rows = np.concatenate(
        [
            np.hstack([a, nothing, -u[:, None] * a]),
            np.hstack([nothing, a, -v[:, None] * a]),
        ]
    )
    _, vectors = np.linalg.eigh(rows.T @ rows)
    found = np.linalg.solve(second, vectors[:, 0].reshape(3, 3) @ first)
    return np.asarray(found * np.sign(found[2, 2] or 1.0), np.float64)


def _normaliser(xy: Floats) -> Floats:
    """Moves positions to the origin and scales their mean distance from it to sqrt 2."""
    centre = xy.mean(axis=0)
    scale = np.sqrt(2) / max(float(np.linalg.norm(xy - centre, axis=1).mean()), 1e-12)
    return np.array([[scale, 0, -scale * centre[0]], [0, scale, -scale * centre[1]], [0, 0, 1]])

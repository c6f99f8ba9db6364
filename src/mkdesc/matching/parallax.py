"""How far matches are off a plane, beside their neighbours.

Off a plane, what has depth is tilted or curved: neighbours are off it by nearly as much, but not
by the same. What was moved on the plane as a whole is off by the same; what slides along edges,
by anything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.matching.near import nearest

#: Neighbours of a match that are nearer than this, in pixels, may be the same place.
SAME_PLACE = 3.0

Floats = NDArray[np.float64]


def parallax_of(plane: Floats, here: Floats, there: Floats) -> Floats:
    """How far (M, 2), in the second image, matches are from where a plane has them.

    Parameters
    ----------
    plane, here, there
        As for :func:`share_differing`.

    Examples
    --------
    >>> parallax_of(np.diag([2.0, 2, 1]), np.array([[3.0, 4]]), np.array([[9.0, 8]])).tolist()
    [[3.0, 0.0]]
    """
    mapped = here @ plane[:, :2].T + plane[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        parallax = there - mapped[:, :2] / mapped[:, 2:]
    return np.where(np.isfinite(parallax), parallax, 0.0)  # what is on the horizon says nothing


def share_differing(
    plane: Floats, here: Floats, there: Floats, count: int, the_same: float
) -> float:
    """Of neighbours that are off a plane by nearly as much, those that are not by the same.

    Parameters
    ----------
    plane
        (3, 3): homography.
    here, there
        Positions (M, 2) of matches that are off it.
    count
        Neighbours that are asked.
    the_same
        How much, as a share of how far they are off it, they may differ and be off by the same.

    Returns
    -------
    float
        1 if none is off by nearly as much as another.

    Examples
    --------
    >>> here = np.random.default_rng(0).uniform(0, 100, (40, 2))
    >>> moved = here + [80.0, 0]
    >>> share_differing(np.eye(3), here, moved, 12, 0.03)
    0.0
    >>> slanted = here + np.column_stack([80 + here[:, 1], 0 * here[:, 1]])
    >>> share_differing(np.eye(3), here, slanted, 12, 0.03) > 0.8
    True
    """
    parallax = parallax_of(plane, here, there)
    beside = _beside(here, count)
    size = np.linalg.norm(parallax, axis=1)
    size = np.maximum(size[beside.rows], size[:, None])
    step = np.linalg.norm(parallax[beside.rows] - parallax[:, None], axis=2)
    nearly = (step < size / 2) & beside.apart
    return float((step > the_same * size)[nearly].mean()) if nearly.any() else 1.0


def correlation_beside(
    plane: Floats, here: Floats, there: Floats, count: int, most: float
) -> float:
    """How far matches are off a plane beside their neighbours: 1 as these are, 0 at random.

    Parameters
    ----------
    plane, here, there, count
        As for :func:`share_differing`, but of matches on the plane, too.
    most
        Pixels by which a match is off at most: what is off by more counts as this.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> here = rng.uniform(0, 100, (300, 2))
    >>> curved = here + np.column_stack([10 * np.sin(here[:, 1] / 9), 0 * here[:, 1]])
    >>> correlation_beside(np.eye(3), here, curved, 6, 8.0) > 0.5
    True
    >>> slid = here + np.column_stack([rng.uniform(-10, 10, 300), 0 * here[:, 1]])
    >>> abs(correlation_beside(np.eye(3), here, slid, 6, 8.0)) < 0.1
    True
    """
    parallax = parallax_of(plane, here, there)
    size = np.linalg.norm(parallax, axis=1)
    parallax = parallax * np.minimum(1, most / np.maximum(size, 1e-9))[:, None]
    beside = _beside(here, count)
    spread = float((parallax**2).sum(axis=1).mean())
    if not beside.apart.any() or not spread:
        return 0.0
    products = (parallax[beside.rows] * parallax[:, None]).sum(axis=2)
    return float(products[beside.apart].mean()) / spread


class _Beside(NamedTuple):
    """The nearest of all matches, each (M, count).

    Attributes
    ----------
    rows
        Which matches they are.
    apart
        Whether it is in another place than the match.
    """

    rows: NDArray[np.int64]
    apart: NDArray[np.bool_]


def _beside(here: Floats, count: int) -> _Beside:
    rows = nearest(here, here, min(count + 1, len(here)))
    distance = np.linalg.norm(here[rows] - here[:, None], axis=2)
    return _Beside(rows, distance > SAME_PLACE)

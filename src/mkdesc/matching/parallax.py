"""How far matches are off a plane, beside their neighbours.

Off a plane, what has depth is tilted or curved: neighbours are off it by nearly as much, but not
by the same. What was moved on the plane as a whole is off by the same; wrong matches by anything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.matching.near import nearest

#: Neighbours of a match that are nearer than this, in pixels, may be the same place.
SAME_PLACE = 3.0

Floats = NDArray[np.float64]


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
    beside = _beside(plane, here, there, count)
    nearly = (beside.step < beside.size / 2) & (beside.distance > SAME_PLACE)
    if not nearly.any():
        return 1.0
    return float((beside.step > the_same * beside.size)[nearly].mean())


def share_alike(plane: Floats, here: Floats, there: Floats, count: int) -> float:
    """Of the nearest of matches off a plane, the share that is off it by nearly as much.

    Parameters
    ----------
    plane, here, there
        As for :func:`share_differing`.
    count
        Neighbours that are asked.

    Examples
    --------
    >>> here = np.random.default_rng(0).uniform(0, 100, (40, 2))
    >>> share_alike(np.eye(3), here, here + [80.0, 0], 6)
    1.0
    """
    beside = _beside(plane, here, there, count)
    others = beside.others
    return float((beside.step < beside.size / 2)[others].mean()) if others.any() else 0.0


class _Beside(NamedTuple):
    """Neighbours of matches off a plane, each (M, count).

    Attributes
    ----------
    others
        Whether it is not the match itself.
    distance
        How far away it is.
    size
        How far it is off the plane, or the match: the larger of both.
    step
        The difference of the two.
    """

    others: NDArray[np.bool_]
    distance: Floats
    size: Floats
    step: Floats


def _beside(plane: Floats, here: Floats, there: Floats, count: int) -> _Beside:
    mapped = here @ plane[:, :2].T + plane[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        parallax = there - mapped[:, :2] / mapped[:, 2:]
    near = nearest(here, here, min(count + 1, len(here)))
    size = np.linalg.norm(parallax, axis=1)
    return _Beside(
        near != np.arange(len(here))[:, None],
        np.linalg.norm(here[near] - here[:, None], axis=2),
        np.maximum(size[near], size[:, None]),
        np.linalg.norm(parallax[near] - parallax[:, None], axis=2),
    )

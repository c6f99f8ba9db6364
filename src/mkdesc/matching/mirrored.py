"""Mirrored photographs: no camera sees them, but files hold them.

What is matched between a photograph and its mirror image agrees on a homography that mirrors.
There are many fundamental matrices with the same matches, and whichever is found takes wrong ones
along. So a fundamental matrix is not believed where a homography that mirrors explains a good
part of it. Where none does, neighbourhoods may still be turned over: the linear map that moves
them has a negative determinant.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mkdesc.geometry.estimate import estimate_geometry
from mkdesc.geometry.options import EstimatorOptions
from mkdesc.matching.near import nearest

#: Share of the matches of a fundamental matrix, and how many of them, that a homography that
#: mirrors must explain. Of mirror images of photographs it explains 0.4 and more.
EXPLAINED, FEWEST = 0.25, 10

#: Samples of four that are tried: enough, if a quarter is right.
SEARCH = EstimatorOptions(confidence=0.999, max_iterations=1000)

#: Neighbours that move with a place by one linear map, and how far off they may be, as a share of
#: how far they spread. Neighbourhoods that no such map fits say nothing: half of them seem turned.
NEIGHBOURS, OFF = 8, 0.2

Floats = NDArray[np.float64]


def mirrored_homography(here: Floats, there: Floats, threshold: float) -> Floats | None:
    """The homography (3, 3) that mirrors, if many matches of a fundamental matrix agree on it.

    Parameters
    ----------
    here, there
        (M, 2): positions of matches that agree on a fundamental matrix.
    threshold
        Largest error of an inlier, in pixels.

    Examples
    --------
    >>> here = np.random.default_rng(0).uniform(0, 100, (40, 2))
    >>> found = mirrored_homography(here, here * [-1, 1] + [99, 0], 2.0)
    >>> ((found / found[2, 2]).round(3)[0] + 0.0).tolist()  # no -0.0
    [-1.0, 0.0, 99.0]
    >>> mirrored_homography(here, here + 5, 2.0) is None
    True
    """
    if len(here) < FEWEST:
        return None
    flipped = estimate_geometry(here * [-1, 1], there, "homography", threshold, options=SEARCH)
    if flipped.matrix is None or flipped.inliers.sum() < max(FEWEST, EXPLAINED * len(here)):
        return None
    found: Floats = flipped.matrix @ np.diag([-1.0, 1, 1])
    return found if mirrors(found, here[flipped.inliers]) else None


def mirrors(matrix: Floats, here: Floats) -> bool:
    """Whether a homography (3, 3) mirrors what is at some positions (M, 2) of the first image."""
    depth = float(np.median(here @ matrix[2, :2] + matrix[2, 2]))
    return bool(np.linalg.det(matrix) * depth < 0)


def share_turned_over(here: Floats, there: Floats) -> float:
    """Of the neighbourhoods that one linear map moves, the share of those it turns over.

    The map of a place and its neighbours, by least squares, has a negative determinant there.
    0 where it fits fewer than ten of them.

    Parameters
    ----------
    here, there
        (M, 2): distinct places of matches in either image.

    Examples
    --------
    >>> here = np.random.default_rng(0).uniform(0, 100, (40, 2))
    >>> share_turned_over(here, here * [-1, 1] + [99, 0])
    1.0
    >>> share_turned_over(here, here[:, ::-1] * [-1, 1] + [99, 0])  # a quarter turn
    0.0
    """
    if len(here) <= NEIGHBOURS:
        return 0.0
    near = nearest(here, here, NEIGHBOURS + 1)
    one, other = (xy[near] - xy[near].mean(axis=1, keepdims=True) for xy in (here, there))
    maps = np.linalg.pinv(one) @ other
    off = np.linalg.norm(one @ maps - other, axis=(1, 2))
    fits = off < OFF * np.linalg.norm(other, axis=(1, 2))
    if fits.sum() < FEWEST:
        return 0.0
    return float((np.linalg.det(maps[fits]) < 0).mean())

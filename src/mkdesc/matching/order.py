"""Whether matches keep their order along epipolar lines.

An epipolar geometry leaves a match the position along its line, and wrong matches take any.
What one surface shows keeps its order along the lines (the ordering constraint of stereo vision):
only something thin, before something far behind it, may change places with it. Wrong matches
along lines of text or rows of windows are in any order, as are tiles that were moved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mkdesc.matching.near import first_of_each

#: Places are as far from each other as this, as a share of the diagonal of what was matched.
PLACE = 0.01

#: Places are on one line if they are as near to it as this, and in an order if they are further
#: apart than that along it.
STRIP = 0.02

#: Matches that are looked at, at most: these, evenly, of all.
MOST = 500

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def share_reversed(
    matrix: Floats, here: Floats, there: Floats, asked: Flags | None = None
) -> float:
    """Of the places on one epipolar line, two by two, the share of those that change their order.

    Of right matches of photographs 0 to 0.05 do, as a rule, and of wrong ones half.

    Parameters
    ----------
    matrix
        (3, 3): fundamental, of pixels.
    here, there
        Positions (M, 2) in either image of matches that agree with it.
    asked
        (M,): of two places, one must be among these; None: all are.

    Examples
    --------
    >>> sideways = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    >>> here = np.column_stack([np.arange(0, 100, 10.0), np.full(10, 30.0)])
    >>> share_reversed(sideways, here, here + [5, 0])
    0.0
    >>> changed = here[[5, 6, 7, 8, 9, 0, 1, 2, 3, 4]]
    >>> round(share_reversed(sideways, here, changed), 2)
    0.44
    """
    sides = [float(np.hypot(*np.ptp(xy, axis=0))) if len(xy) else 0.0 for xy in (here, there)]
    radii = (PLACE * side for side in sides)
    some = np.linspace(0, len(here) - 1, min(len(here), MOST)).astype(np.int64)
    places = some[first_of_each(*zip((here[some], there[some]), radii, strict=True))]
    left, _, right = np.linalg.svd(matrix)
    steps = [
        _along_lines(xy[places], other[places], lines, epipole, STRIP * side)
        for xy, other, lines, epipole, side in (
            (here, there, matrix, right[2], sides[0]),
            (there, here, matrix.T, left[:, 2], sides[1]),
        )
    ]
    both = steps[0] * steps[1]  # 0: not on one line, or too near to each other
    if (both < 0).sum() > (both > 0).sum():  # the two epipoles are on different sides
        both = -both
    if asked is not None:
        both = both[asked[places]]
    compared = int((both != 0).sum())
    return float((both < 0).sum()) / compared if compared else 0.0


def _along_lines(
    xy: Floats, other: Floats, matrix: Floats, epipole: Floats, least: float
) -> NDArray[np.int8]:
    """Which places (N, N) are further from the epipole than a place (row): 1, or nearer: -1.

    0 if they are not on the epipolar line of the row's match, or nearer to it than that.
    """
    lines = np.column_stack([other, np.ones(len(other))]) @ matrix
    lines /= np.maximum(np.linalg.norm(lines[:, :2], axis=1, keepdims=True), 1e-300)
    beside = np.abs(lines[:, :2] @ xy.T + lines[:, 2:]) < least
    away = xy * epipole[2] - epipole[:2]
    away /= np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
    step = away @ xy.T - (away * xy).sum(axis=1)[:, None]
    compared = beside & (np.abs(step) > least) & (away @ away.T > 0)  # on one side of the epipole
    return np.where(compared, np.sign(step), 0).astype(np.int8)

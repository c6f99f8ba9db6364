"""Which places are near each other.

Of few places all distances are computed: SciPy's tree is faster, but takes longer to import.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Places up to which all distances are computed.
FEW = 1500

Floats = NDArray[np.float64]


def nearest(known: Floats, asked: Floats, count: int) -> NDArray[np.int64]:
    """The ``count`` of places ``known`` (M, D) that are nearest to each of ``asked`` (N, D).

    Returns
    -------
    numpy.ndarray
        (N, count): their numbers, in any order.

    Examples
    --------
    >>> known = np.array([[0.0, 0], [5, 5], [1, 0]])
    >>> sorted(nearest(known, np.array([[0.2, 0.0]]), 2)[0].tolist())
    [0, 2]
    """
    if max(len(known), len(asked)) <= FEW:
        square = _squared_distances(known, asked)
        if count == 1:
            return square.argmin(axis=1)[:, None]
        return np.argpartition(square, count - 1, axis=1)[:, :count]
    from scipy.spatial import cKDTree

    found = np.asarray(cKDTree(known).query(asked, count)[1], np.int64)
    return found.reshape(len(asked), count)


def distance_to_nearest(known: Floats, asked: Floats) -> Floats:
    """How far each of ``asked`` (N, D) is from the nearest of ``known`` (M, D): (N,).

    Examples
    --------
    >>> distance_to_nearest(np.array([[0.0, 0], [5, 5]]), np.array([[3.0, 4], [5, 6]])).tolist()
    [2.23606797749979, 1.0]
    """
    one = nearest(known, asked, 1)[:, 0]
    return np.sqrt(((known[one] - asked) ** 2).sum(axis=1))


def first_of_each(*sets: tuple[Floats, float]) -> NDArray[np.int64]:
    """The places (K,) that are near no earlier one of these, in any of the sets.

    Parameters
    ----------
    *sets
        The same places in several spaces: positions (N, D), and how far two are apart at most
        that are near each other.

    Examples
    --------
    >>> places = np.array([[0.0, 0], [0, 0.5], [3, 0], [0, 1]])
    >>> first_of_each((places, 0.6)).tolist()
    [0, 2, 3]
    """
    near = [_within(*each) for each in sets]
    gone = np.zeros(len(sets[0][0]), np.bool_)
    kept = []
    for index in range(len(gone)):
        if not gone[index]:
            kept.append(index)
            for each in near:
                gone[each[index]] = True
    return np.array(kept, np.int64)


def _within(places: Floats, radius: float) -> Any:
    """For each place what chooses those within a radius of it: flags, or numbers."""
    if len(places) <= FEW:
        return _squared_distances(places, places) <= radius**2
    from scipy.spatial import cKDTree

    return cKDTree(places).query_ball_point(places, radius)


def _squared_distances(known: Floats, asked: Floats) -> Floats:
    """(N, M): of each asked from each known."""
    square = np.zeros((len(asked), len(known)))
    for one, other in zip(asked.T, known.T, strict=True):
        square += np.subtract.outer(one, other) ** 2
    return square

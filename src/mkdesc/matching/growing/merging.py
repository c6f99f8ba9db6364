"""Matches grown from two photographs to one for each place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import array_type
from mkdesc.matching.growing.fitting import Floats
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.rounds import Integers


def one_for_each_place(points: Floats, found: Floats, options: GrowOptions) -> NDArray[np.intp]:
    """The numbers of matches that stay.

    A match goes if a better one is near it in both photographs, or is near it in one of them
    and expects it elsewhere in the other.

    Parameters
    ----------
    points, found
        (K, 2) and (K, 6): matches, the best first.
    options
        What is near, and how far off an expectation may be.
    """
    from scipy.spatial import cKDTree

    gone = np.zeros(len(points), np.bool_)
    if len(points):
        near = [
            cKDTree(xy).query_pairs(options.apart, output_type="ndarray")
            for xy in (points, found[:, :2])
        ]
        n = len(points)
        one, two = np.divmod(np.unique(np.concatenate(near) @ np.array([n, 1])), n)
        here, there = points[two] - points[one], found[two, :2] - found[one, :2]
        u = (found[one, 2:4] * here).sum(axis=1)
        v = (found[one, 4:6] * here).sum(axis=1)
        within = options.tolerance + options.tolerance_share * np.hypot(u, v)
        elsewhere = np.hypot(there[:, 0] - u, there[:, 1] - v) > within
        same = (np.hypot(*here.T) < options.apart) & (np.hypot(*there.T) < options.apart)
        pairs = np.column_stack([one, two])[elsewhere | same].astype(np.int64)
        _compiled()(pairs, gone)
    return np.flatnonzero(~gone)


def name_nearest(column: Integers, places: Floats, points: Floats, within: float) -> None:
    """Give matches that are of no keypoint the nearest one, if no other match has it.

    Parameters
    ----------
    column
        (K,): the number of each match's keypoint, -1 where there is none; changed.
    places, points
        (N, 2) and (K, 2): where the keypoints and the matches are.
    within
        Pixels.
    """
    from scipy.spatial import cKDTree

    nameless = np.flatnonzero(column < 0)
    if not len(nameless) or not len(places):
        return
    far, nearest = cKDTree(places).query(points[nameless], distance_upper_bound=within)
    far, nearest = np.asarray(far), np.asarray(nearest, np.int64)
    order = np.argsort(far, kind="stable")
    order = order[np.isfinite(far[order]) & ~np.isin(nearest[order], column)]
    chosen, first = np.unique(nearest[order], return_index=True)
    column[nameless[order[first]]] = chosen


@locked_cache
def _compiled() -> Callable[..., None]:
    arguments = (array_type("int64", 2), array_type("bool", 1, written=True))
    return compile_loop("mkdesc.matching.growing.rounds_numba:drop_worse", arguments)

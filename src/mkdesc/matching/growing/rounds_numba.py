"""The compiled loops of :mod:`mkdesc.matching.growing.rounds`: predictions, and support."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mkdesc._support.compiling import CAREFUL


@njit(**CAREFUL)
def predict(places, found, i, j, out):
    """Where the match of place ``i`` expects place ``j``; returns their distance there."""
    u, v = places[j, 0] - places[i, 0], places[j, 1] - places[i, 1]
    du, dv = found[i, 2] * u + found[i, 3] * v, found[i, 4] * u + found[i, 5] * v
    out[0], out[1] = found[i, 0] + du, found[i, 1] + dv
    return math.sqrt(du * du + dv * dv)


@njit(**CAREFUL)
def apart(x, y, u, v):
    """The distance of two places."""
    return math.sqrt((x - u) ** 2 + (y - v) ** 2)


def count_support(places, near, found, correlation, tolerance, share, out):
    """How many of the neighbours expect each match where it is.

    Parameters
    ----------
    places : (N, 2) float64
    near : (N, K) int64
        The neighbours of each, -1 where there is none.
    found : (N, 6) float64
        Matches: where, and the map.
    correlation : (N,) float64
        Of the matches; negative where there is none.
    tolerance, share : float
        Pixels, and share of the distance in the other photograph, that neighbours may be off.
    out : (N,) int64
    """
    at = np.empty(2)
    for j in range(len(places)):
        out[j] = 0
        if correlation[j] < 0:
            continue
        for k in range(near.shape[1]):
            i = near[j, k]
            if i < 0 or correlation[i] < 0:
                continue
            far = predict(places, found, i, j, at)
            if apart(at[0], at[1], found[j, 0], found[j, 1]) < tolerance + share * far:
                out[j] += 1


def choose_tries(start, stop, state, growth):
    """What to try next for each of some places: what the best of its neighbours expects there.

    Parameters
    ----------
    start, stop : int
        Which of the places.
    state : State
    growth : Growth
    """
    at = np.empty(2)
    for j in range(start, stop):
        i = choose_neighbour(j, state, growth, at)
        state.chosen[j] = i
        if i < 0:
            continue
        predict(state.places, state.found, i, j, at)
        tries = state.tries[j]
        state.tried[j, tries, 0], state.tried[j, tries, 1] = at[0], at[1]
        state.tries[j] = tries + 1


@njit(**CAREFUL)
def choose_neighbour(j, state, growth, at):
    """The neighbour with the highest correlation that expects place ``j`` where nobody looked."""
    if state.tries[j] == state.tried.shape[1]:
        return -1
    found, correlation, tried = state.found, state.correlation, state.tried
    best, chosen = 0.0, -1
    for k in range(state.near.shape[1]):
        i = state.near[j, k]
        if i < 0 or correlation[i] <= best:
            continue
        far = predict(state.places, found, i, j, at)
        if not (0 <= at[0] <= growth.right and 0 <= at[1] <= growth.bottom):
            continue
        within = growth.tolerance + growth.share * far
        if correlation[j] >= 0 and apart(at[0], at[1], found[j, 0], found[j, 1]) < within:
            continue
        new = True
        for n in range(state.tries[j]):
            new &= apart(at[0], at[1], tried[j, n, 0], tried[j, n, 1]) >= growth.same
        if new:
            best, chosen = correlation[i], i
    return chosen


def drop_worse(pairs, gone):
    """Of each pair (K, 2) of matches, unless the first is gone already, the second goes."""
    for k in range(len(pairs)):
        if not gone[pairs[k, 0]]:
            gone[pairs[k, 1]] = True

"""Growth in rounds: matches predict their neighbours, which are fitted, and predict in turn.

In each round, each place is tried once, from what the rounds before have found: so it does not
matter in which order, or by how many threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import Structure, array_type, type_of
from mkdesc._support.threads import in_threads
from mkdesc.matching.growing.fitting import ROUGH, Fitter, Floats, parts_of
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import Pyramid

#: Level at which places are tried, and by what the correlation must rise to replace a match.
LEVEL, BETTER = 1, 0.02
#: Predictions of a place that are nearer to each other, in pixels, are tried once.
SAME = 1.5

Integers = NDArray[np.int64]


class Growth(NamedTuple):
    """Which predictions a round tries.

    Attributes
    ----------
    right, bottom
        The last pixel of the other photograph: predictions beyond it are not tried.
    tolerance, share
        What a prediction must be off the match that is known; see
        :class:`~mkdesc.matching.growing.options.GrowOptions`.
    same
        See ``SAME``.
    """

    right: float
    bottom: float
    tolerance: float
    share: float
    same: float


class State(NamedTuple):
    """What is known of N places.

    Attributes
    ----------
    places
        (N, 2): where they are.
    near
        (N, K): the numbers of their neighbours; -1 where there is none.
    found, correlation
        (N, 6) and (N,): their matches, as :class:`~mkdesc.matching.growing.fitting.Fits` has
        them; the correlation is -1 where there is none.
    tried, tries
        (N, T, 2) and (N,): predictions that were tried, and how many.
    chosen
        (N,): the neighbours whose predictions are tried in this round; -1 where none is.
    """

    places: Floats
    near: Integers
    found: Floats
    correlation: Floats
    tried: Floats
    tries: Integers
    chosen: Integers


def grow(
    one: Pyramid,
    two: Pyramid,
    places: Floats,
    near: Integers,
    found: Floats,
    correlation: Floats,
    options: GrowOptions,
    fit: Fitter,
    n_threads: int = 1,
) -> tuple[Floats, Floats]:
    """Let matches grow to their neighbours until nothing new is found.

    Parameters
    ----------
    one, two
        The photograph with the places, and the other one.
    places, near, found, correlation
        As in :class:`State`.
    options
        What is accepted.
    fit
        What fits the predictions.
    n_threads
        How many choose them.

    Returns
    -------
    found, correlation
        Of all places.
    """
    n = len(places)
    found, correlation = found.copy(), correlation.copy()
    state = State(
        *(places, near, found, correlation),
        *(np.empty((n, options.tries, 2)), np.zeros(n, np.int64), np.empty(n, np.int64)),
    )
    _, height, width = two.levels[0].tolist()
    growth = Growth(width - 1.0, height - 1.0, options.tolerance, options.tolerance_share, SAME)
    loop = _compiled_choice()

    def choose(part: tuple[int, int]) -> None:
        loop(*part, state, growth)

    while True:
        in_threads(choose, parts_of(n, n_threads), n_threads)
        rows = np.flatnonzero(state.chosen >= 0)
        if not len(rows):
            break
        guess = np.column_stack(
            [state.tried[rows, state.tries[rows] - 1], found[state.chosen[rows], 2:]]
        )
        fits = fit(one, two, places[rows], guess, LEVEL, ROUGH)
        good = fits.correlation > correlation[rows] + BETTER
        good &= (fits.correlation >= options.min_correlation) & (
            fits.texture >= options.min_texture
        )
        found[rows[good]], correlation[rows[good]] = fits.found[good], fits.correlation[good]
    return found, correlation


def count_support(
    places: Floats, near: Integers, found: Floats, correlation: Floats, options: GrowOptions
) -> Integers:
    """How many of its neighbours (N,) expect each match where it is; as :func:`grow` has them."""
    support = np.empty(len(places), np.int64)
    _compiled_support()(
        *(places, near, found, correlation),
        *(options.tolerance, options.tolerance_share, support),
    )
    return support


def find_neighbours(places: Floats, count: int) -> Integers:
    """The numbers (N, K) of the nearest of the other places; -1 where there are not as many.

    Examples
    --------
    >>> find_neighbours(np.array([[0.0, 0], [2, 0], [5, 0]]), 1).tolist()
    [[1], [0], [1]]
    """
    from scipy.spatial import cKDTree

    n = len(places)
    if n < 2:
        return np.full((n, count), -1, np.int64)
    near = np.asarray(cKDTree(places).query(places, count + 1)[1], np.int64)
    near[(near == np.arange(n)[:, None]) | (near == n)] = -1
    order = np.argsort(near < 0, axis=1, kind="stable")  # itself last
    return np.ascontiguousarray(np.take_along_axis(near, order, axis=1)[:, :count])


def _written(dtype: str, ndim: int) -> object:
    return array_type(dtype, ndim, written=True)


#: Of places, neighbours, matches and their correlations, to compiled loops.
_KNOWN = (
    *(array_type("float64", 2), array_type("int64", 2)),
    *(array_type("float64", 2), array_type("float64", 1)),
)


@locked_cache
def _compiled_choice() -> Callable[..., None]:
    tried = (_written("float64", 3), _written("int64", 1), _written("int64", 1))
    arguments = (
        *("int64", "int64", Structure(State, (*_KNOWN, *tried))),
        type_of(Growth(1.0, 1.0, 1.0, 1.0, 1.0)),
    )
    return compile_loop("mkdesc.matching.growing.rounds_numba:choose_tries", arguments)


@locked_cache
def _compiled_support() -> Callable[..., None]:
    arguments = (*_KNOWN, "float64", "float64", _written("int64", 1))
    return compile_loop("mkdesc.matching.growing.rounds_numba:count_support", arguments)

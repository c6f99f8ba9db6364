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
from mkdesc.matching.growing.fitting import ROUGH, Floats, parts_of, pyramid_type, rule_type
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import Pyramid

#: Level at which places are tried, and by what the correlation must rise to replace a match.
LEVEL, BETTER = 1, 0.02
#: Predictions of a place that are nearer to each other, in pixels, are tried once.
SAME = 1.5

Integers = NDArray[np.int64]


class Growth(NamedTuple):
    """What a round accepts; see :class:`~mkdesc.matching.growing.options.GrowOptions`."""

    level: int
    least: float
    better: float
    texture: float
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
    next, reached
        The same, of this round.
    tried, tries
        (N, T, 2) and (N,): predictions that were tried, and how many.
    """

    places: Floats
    near: Integers
    found: Floats
    correlation: Floats
    next: Floats
    reached: Floats
    tried: Floats
    tries: Integers


def grow(
    one: Pyramid,
    two: Pyramid,
    places: Floats,
    near: Integers,
    found: Floats,
    correlation: Floats,
    options: GrowOptions,
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
    n_threads
        How many work.

    Returns
    -------
    found, correlation
        Of all places.
    """
    n = len(places)
    found, correlation = found.copy(), correlation.copy()
    state = State(
        *(places, near, found, correlation, found.copy(), np.full(n, -1.0)),
        *(np.zeros((n, options.tries, 2)), np.zeros(n, np.int64)),
    )
    growth = Growth(
        *(LEVEL, options.min_correlation, BETTER, options.min_texture),
        *(options.tolerance, options.tolerance_share, SAME),
    )
    loop = _compiled_round()

    def tried(part: tuple[int, int]) -> int:
        return loop(one, two, *part, state, growth, ROUGH)

    while any(in_threads(tried, parts_of(n, n_threads), n_threads)):
        new = np.flatnonzero(state.reached >= 0)
        found[new], correlation[new] = state.next[new], state.reached[new]
        state.reached[new] = -1
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
def _compiled_round() -> Callable[..., int]:
    made = (_written("float64", 2), _written("float64", 1))
    tried = (_written("float64", 3), _written("int64", 1))
    arguments = (
        *(pyramid_type(), pyramid_type(), "int64", "int64"),
        Structure(State, (*_KNOWN, *made, *tried)),
        *(type_of(Growth(1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)), rule_type()),
    )
    return compile_loop("mkdesc.matching.growing.rounds_numba:grow_round", arguments)


@locked_cache
def _compiled_support() -> Callable[..., None]:
    arguments = (*_KNOWN, "float64", "float64", _written("int64", 1))
    return compile_loop("mkdesc.matching.growing.rounds_numba:count_support", arguments)

"""Many fits: what :mod:`mkdesc.matching.growing.reference` derives, compiled."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import Structure, array_type, type_of
from mkdesc._support.threads import in_threads
from mkdesc.matching.growing.pyramid import Pyramid

Floats = NDArray[np.float64]


class Rule(NamedTuple):
    """When a fit ends.

    Attributes
    ----------
    steps
        At most.
    shifts
        The first of them, which move the place only.
    reach
        Samples that the place may move; if it moves farther, there is no fit.
    still
        A step that moves the place by less, in samples, is the last.
    judged, hope
        After so many steps the correlation must have been at least ``hope``.
    """

    steps: int
    shifts: int
    reach: float
    still: float
    judged: int = 3
    hope: float = 0.4


#: Of guesses; and of what is nearly right, and should be as exact as can be.
ROUGH, EXACT = Rule(8, 2, 4.0, 0.1), Rule(12, 0, 2.0, 0.03)


class Fits(NamedTuple):
    """Fits of N places.

    Attributes
    ----------
    found
        (N, 6): x and y in the other photograph, and the four numbers of the map, row by row;
        where there is no fit, what was guessed.
    correlation
        (N,): of the gray values; -1 where there is no fit.
    texture
        (N,): smaller eigenvalue of the structure matrix of the window, whose gray values have
        deviation 1.
    """

    found: Floats
    correlation: Floats
    texture: Floats


#: What fits places as :func:`fit_places` does: (one, two, places, guess, level, rule).
Fitter = Callable[[Pyramid, Pyramid, Floats, Floats, int, Rule], Fits]


def fit_places(
    one: Pyramid,
    two: Pyramid,
    places: Floats,
    guess: Floats,
    level: int,
    rule: Rule,
    n_threads: int = 1,
) -> Fits:
    """Fit local maps, each on its own: the same bits whatever the number of threads.

    Parameters
    ----------
    one, two
        The photograph with the places, and the other one.
    places, guess
        (N, 2) and (N, 6), as in :class:`Fits`.
    level
        Samples are 2^level pixels apart, in the photograph that is the finer of the two.
    rule
        When a fit ends.
    n_threads
        How many work.
    """
    places, found = np.ascontiguousarray(places), np.array(guess, np.float64, order="C")
    correlation, texture = np.empty((2, len(places)))
    loop = _compiled()

    def run(part: tuple[int, int]) -> None:
        loop(one, two, places, *part, found, level, rule, correlation, texture)

    in_threads(run, parts_of(len(places), n_threads), n_threads)
    return Fits(found, correlation, texture)


def parts_of(n: int, count: int) -> list[tuple[int, int]]:
    """The numbers 0 .. n-1 in so many parts.

    >>> parts_of(5, 2)
    [(0, 2), (2, 5)]
    """
    limits = [n * k // count for k in range(count + 1)]
    return list(pairwise(limits))


def pyramid_type() -> Structure:
    """Of a pyramid, to compiled loops."""
    return Structure(Pyramid, (array_type("float32", 1), array_type("int64", 2)))


def rule_type() -> Structure:
    """Of a rule, to compiled loops."""
    return type_of(ROUGH)


@locked_cache
def _compiled() -> Callable[..., None]:
    arguments = (
        *(pyramid_type(), pyramid_type(), array_type("float64", 2), "int64", "int64"),
        *(array_type("float64", 2, written=True), "int64", rule_type()),
        *(array_type("float64", 1, written=True), array_type("float64", 1, written=True)),
    )
    return compile_loop("mkdesc.matching.growing.fit_numba:fit_all", arguments)

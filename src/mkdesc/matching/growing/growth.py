"""Growth from one of two photographs: seeds, rounds, one more fit, there and back."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from mkdesc.matching.growing.fitting import EXACT, Fits, Fitter, Floats, fit_places
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import Pyramid
from mkdesc.matching.growing.rounds import Integers, count_support, find_neighbours, grow

#: Levels at which guesses are fitted; at which what has grown is fitted for the last time; and
#: at which it is fitted from the other photograph back.
SEED_LEVEL, LAST_LEVEL, BACK_LEVEL = 2, 0, 1
#: How many of the nearest seeds must expect a seed where it is.
SEED_SUPPORT = 2


class Grown(NamedTuple):
    """Matches of K places of one photograph.

    Attributes
    ----------
    rows, points
        (K,) and (K, 2): which places they are of, and where these are.
    found
        (K, 6): x and y in the other photograph, and the four numbers of the map, row by row.
    correlation, texture, returned, agree
        (K,): see :class:`~mkdesc.matching.growing.grow.GrownMatches`.
    """

    rows: Integers
    points: Floats
    found: Floats
    correlation: Floats
    texture: Floats
    returned: Floats
    agree: Integers

    def turned(self) -> Grown:
        """The same matches, as from the other photograph."""
        found = turned(self.points, self.found, self.found[:, :2])
        return self._replace(points=self.found[:, :2], found=found)

    def and_then(self, other: Grown) -> Grown:
        """These matches, and then others."""
        return Grown(*(np.concatenate(both) for both in zip(self, other, strict=True)))


def choose_fitter(one: Pyramid, two: Pyramid, n_threads: int, device: str | None) -> Fitter:
    """What fits places of these photographs: threads, or a device."""
    if device in (None, "cpu"):  # where compiled loops are faster than PyTorch
        return partial(fit_places, n_threads=n_threads)
    from mkdesc._support.launching import chosen_device

    where = chosen_device(device)
    from mkdesc.matching.growing.fitting_torch import make_fitter

    return make_fitter(where, one, two)


def grow_from(
    one: Pyramid,
    two: Pyramid,
    places: Floats,
    found: Floats,
    correlation: Floats,
    options: GrowOptions,
    fit: Fitter,
    n_threads: int = 1,
) -> Grown:
    """Grow from one photograph, fit once more, and check there and back.

    Parameters
    ----------
    one, two
        The photograph with the places, and the other one.
    places
        (N, 2).
    found, correlation
        (N, 6) and (N,): what is known of them, the seeds. The correlation is -1 where nothing is.
    options
        What is accepted.
    fit
        What fits places.
    n_threads
        How many predict where they are.
    """
    near = find_neighbours(places, options.neighbours)
    known = np.full(len(places), -1.0)
    seeds = np.flatnonzero(correlation >= options.min_correlation)
    around = find_neighbours(places[seeds], options.neighbours)
    agree = count_support(places[seeds], around, found[seeds], correlation[seeds], options)
    seeds = seeds[agree >= SEED_SUPPORT]
    known[seeds] = correlation[seeds]
    found, known = grow(one, two, places, near, found, known, options, fit, n_threads)
    rows = np.flatnonzero(known >= 0)
    last = fit(one, two, places[rows], found[rows], LAST_LEVEL, EXACT)
    good = last.correlation >= options.min_correlation
    found[rows[good]], known[rows[good]] = last.found[good], last.correlation[good]
    agree = count_support(places, near, found, known, options)
    kept = agree[rows] >= options.min_agree
    rows, texture = rows[kept], last.texture[kept]
    points, there = places[rows], found[rows]
    guess = turned(points, there, there[:, :2])
    back = fit(two, one, there[:, :2], guess, BACK_LEVEL, EXACT)
    returned = np.hypot(*(back.found[:, :2] - points).T)
    kept = (back.correlation >= options.min_correlation) & (returned <= options.max_return)
    rows = rows[kept]
    return Grown(
        *(rows, points[kept], there[kept], known[rows], texture[kept], returned[kept]),
        agree=agree[rows],
    )


def best_of_each(n: int, rows: Integers, fits: Fits) -> tuple[Floats, Floats]:
    """Of each of ``n`` places the fit (n, 6) with the highest correlation (n,)."""
    order = np.argsort(fits.correlation, kind="stable")
    found, correlation = np.zeros((n, 6)), np.full(n, -1.0)
    found[rows[order]], correlation[rows[order]] = fits.found[order], fits.correlation[order]
    return found, correlation


def turned(points: Floats, found: Floats, at: Floats) -> Floats:
    """What matches say of places ``at`` of the other photograph: where they are in this one.

    Parameters
    ----------
    points, found
        (K, 2) and (K, 6): matches.
    at
        (K, 2).

    Returns
    -------
    ndarray
        (K, 6): x, y, and the inverse maps.

    Examples
    --------
    >>> turned(np.array([[1.0, 1]]), np.array([[8.0, 9, 2, 0, 0, 2]]), np.array([[10.0, 9]]))
    array([[ 2. ,  1. ,  0.5, -0. , -0. ,  0.5]])
    """
    a, b, c, d = found[:, 2:].T
    with np.errstate(all="ignore"):
        inverse = np.column_stack([d, -b, -c, a]) / (a * d - b * c)[:, None]
        off = at - found[:, :2]
        x = points[:, 0] + (inverse[:, :2] * off).sum(axis=1)
        y = points[:, 1] + (inverse[:, 2:] * off).sum(axis=1)
    return np.column_stack([x, y, inverse])

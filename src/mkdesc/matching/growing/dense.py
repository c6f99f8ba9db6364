"""Matches grown to every place of a grid that has texture."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mkdesc._support.check import check_integer
from mkdesc._support.threads import checked_threads
from mkdesc.matching.growing.fitting import Floats
from mkdesc.matching.growing.grow import GrownMatches
from mkdesc.matching.growing.growth import choose_fitter, grow_from
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import Pyramid, make_pyramid


def grow_dense(
    image_a: ArrayLike | Pyramid,
    image_b: ArrayLike | Pyramid,
    matches: GrownMatches,
    grid: int = 8,
    options: GrowOptions | None = None,
    *,
    n_threads: int | None = None,
    device: str | None = None,
) -> GrownMatches:
    """Grow matches to the places of a grid on the first photograph.

    Parameters
    ----------
    image_a, image_b, n_threads, device
        As for :func:`~mkdesc.matching.growing.grow.grow_matches`.
    matches
        What that has found: they predict the first places, which predict the next.
    grid
        Pixels from place to place.
    options
        What is accepted; None: what suits most photographs.

    Returns
    -------
    GrownMatches
        Of the places of the grid that have a match, row by row; they are of no keypoint.

    Examples
    --------
    >>> from mkdesc.matching.growing.grow import grow_matches
    >>> rng = np.random.default_rng(0)
    >>> image = np.kron(rng.integers(0, 256, (24, 32)), np.ones((8, 8))).astype(np.uint8)
    >>> points = rng.uniform(40, 150, (50, 2))
    >>> rows = np.repeat(np.arange(50)[:, None], 2, axis=1)
    >>> moved = np.roll(image, (2, 3), (0, 1))
    >>> seeds = grow_matches(image, moved, points, points, rows)
    >>> found = grow_dense(image, moved, seeds, 16)
    >>> len(found.points_a) > 150, np.median(found.points_b - found.points_a, axis=0).round(2)
    (True, array([3., 2.]))
    """
    check_integer("grid", grid)
    options, threads = options or GrowOptions(), checked_threads(n_threads)
    one, two = make_pyramid(image_a), make_pyramid(image_b)
    places = grid_places((int(one.levels[0, 1]), int(one.levels[0, 2])), grid)
    n, known = len(places), len(matches.points_a)
    found, correlation = np.zeros((n + known, 6)), np.full(n + known, -1.0)
    found[n:] = np.column_stack([matches.points_b, matches.maps.reshape(known, 4)])
    correlation[n:] = matches.correlation
    places = np.concatenate([places, matches.points_a])
    fit = choose_fitter(one, two, threads, device)
    grown = grow_from(one, two, places, found, correlation, options, fit, threads)
    kept = np.flatnonzero(grown.rows < n)
    return GrownMatches(
        grown.points[kept],
        np.ascontiguousarray(grown.found[kept, :2]),
        grown.found[kept, 2:].reshape(-1, 2, 2),
        grown.correlation[kept],
        grown.texture[kept],
        grown.returned[kept],
        grown.agree[kept],
        np.full((len(kept), 2), -1, np.int64),
    )


def grid_places(shape: tuple[int, int], grid: int) -> Floats:
    """The places (N, 2) of a grid: the centres of squares that cover an image, row by row.

    >>> grid_places((4, 6), 2).tolist()
    [[0.5, 0.5], [2.5, 0.5], [4.5, 0.5], [0.5, 2.5], [2.5, 2.5], [4.5, 2.5]]
    """
    rows, columns = (np.arange((grid - 1) / 2, side, grid) for side in shape)
    x, y = np.meshgrid(columns, rows)
    return np.column_stack([x.ravel(), y.ravel()])

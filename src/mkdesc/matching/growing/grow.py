"""Matches grown from both photographs, and checked there and back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.threads import checked_threads
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.matching.growing.arguments import checked_guesses
from mkdesc.matching.growing.fitting import ROUGH, Fits, Floats
from mkdesc.matching.growing.growth import (
    SEED_LEVEL,
    Grown,
    best_of_each,
    choose_fitter,
    grow_from,
    turned,
)
from mkdesc.matching.growing.merging import name_nearest, one_for_each_place
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import Pyramid, make_pyramid
from mkdesc.matching.growing.rounds import Integers


class GrownMatches(NamedTuple):
    """Matches that the gray values of both photographs confirm.

    Attributes
    ----------
    points_a, points_b
        (M, 2) float64: where they are, to a few hundredths of a pixel.
    maps
        (M, 2, 2): how the surroundings map from the first photograph to the second.
    correlation
        (M,): of the gray values of both windows, at most 1; it falls.
    texture
        (M,): the smaller eigenvalue of the structure matrix of the window, whose gray values have
        deviation 1. Near 0 on edges, along which a match may slide.
    returned
        (M,): pixels between a match and where a fit from the other photograph brings it back.
    agree
        (M,) int64: how many of the nearest keypoints have matches that predict this one.
    pairs
        (M, 2) int64: the keypoint of either photograph that the match is of; -1 where there is
        none within ``apart`` pixels. A match starts at a keypoint of one of them.
    """

    points_a: Floats
    points_b: Floats
    maps: Floats
    correlation: Floats
    texture: Floats
    returned: Floats
    agree: Integers
    pairs: Integers

    def take(self, rows: NDArray[Any]) -> GrownMatches:
        """Some of them, by their numbers or a mask."""
        return GrownMatches(*(values[rows] for values in self))


def grow_matches(
    image_a: ArrayLike | Pyramid,
    image_b: ArrayLike | Pyramid,
    keypoints_a: Keypoints | ArrayLike,
    keypoints_b: Keypoints | ArrayLike,
    pairs: ArrayLike,
    options: GrowOptions | None = None,
    *,
    maps: ArrayLike | None = None,
    n_threads: int | None = None,
    device: str | None = None,
) -> GrownMatches:
    """Matches that the photographs confirm, at and between the keypoints that were matched.

    Each pair is a guess of a local map. It is fitted by least squares of the gray values; what
    fits, and what a neighbour expects there, predicts where the other keypoints of the first
    photograph are. These are fitted, and predict in turn. The same from the second photograph.
    What is found must lie where a fit from the other photograph brings it back.

    Parameters
    ----------
    image_a, image_b
        Gray (H, W) or colour (H, W, 3 or 4; blue first): uint8, uint16, or floats from 0 to 1.
        Or their pyramids (:func:`~mkdesc.matching.growing.pyramid.make_pyramid`).
    keypoints_a, keypoints_b
        Of any detector: :class:`~mkdesc.images.Keypoints`, or (N, 4) of x, y, sigma and angle,
        or (N, 2) of x and y.
    pairs
        (K, 2): tentative matches, by their numbers; the more of them are right, the better, but
        one in ten will do. Nearest neighbours that are mutual, without a ratio test.
    options
        What is accepted; None: what suits most photographs.
    maps
        (K, 2, 2): local maps from the first photograph to the second, if more is known of them
        than the keypoints' sigmas and angles say.
    n_threads
        Number of threads; None: one per core. The matches are the same.
    device
        Where PyTorch fits, such as ``"cuda"``: places are those of the CPU to some hundredths of a
        pixel. None and ``"cpu"``: compiled loops.

    Returns
    -------
    GrownMatches
        By falling correlation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> image = np.kron(rng.integers(0, 256, (24, 32)), np.ones((8, 8))).astype(np.uint8)
    >>> points = rng.uniform(40, 150, (50, 2))
    >>> rows = np.repeat(np.arange(50)[:, None], 2, axis=1)
    >>> found = grow_matches(image, np.roll(image, (2, 3), (0, 1)), points, points, rows)
    >>> len(found.pairs) > 40, np.median(found.points_b - found.points_a, axis=0).round(2)
    (True, array([3., 2.]))
    """
    options, threads = options or GrowOptions(), checked_threads(n_threads)
    one, two = make_pyramid(image_a), make_pyramid(image_b)
    given = checked_guesses(keypoints_a, keypoints_b, pairs, maps)
    (i, j), (at_a, at_b) = given.pairs.T, (given.places_a, given.places_b)
    fit = choose_fitter(one, two, threads, device)
    forth = fit(one, two, at_a[i], given.guess, SEED_LEVEL, ROUGH)
    back = Fits(turned(at_a[i], forth.found, at_b[j]), forth.correlation, forth.texture)
    from_a = grow_from(one, two, at_a, *best_of_each(len(at_a), i, forth), options, fit, threads)
    from_b = grow_from(two, one, at_b, *best_of_each(len(at_b), j, back), options, fit, threads)
    return _merged(from_a, from_b, at_a, at_b, options)


def _merged(
    from_a: Grown, from_b: Grown, at_a: Floats, at_b: Floats, options: GrowOptions
) -> GrownMatches:
    """Matches grown from either photograph, one for each place, by falling correlation."""
    n, grown = len(from_a.rows), from_a.and_then(from_b.turned())
    pairs = np.full((len(grown.rows), 2), -1, np.int64)
    pairs[:n, 0], pairs[n:, 1] = grown.rows[:n], grown.rows[n:]
    order = np.argsort(-grown.correlation, kind="stable")
    order = order[one_for_each_place(grown.points[order], grown.found[order], options)]
    points, found, pairs = grown.points[order], grown.found[order], pairs[order]
    name_nearest(pairs[:, 0], at_a, points, options.apart)
    name_nearest(pairs[:, 1], at_b, found[:, :2], options.apart)
    return GrownMatches(
        points,
        np.ascontiguousarray(found[:, :2]),
        found[:, 2:].reshape(-1, 2, 2),
        *(grown.correlation[order], grown.texture[order], grown.returned[order]),
        *(grown.agree[order], pairs),
    )

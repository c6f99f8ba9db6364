"""Matches fitted where they are, and no more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mkdesc._support.threads import checked_threads
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.matching.growing.arguments import checked_guesses
from mkdesc.matching.growing.fitting import EXACT, ROUGH, Floats, fit_places
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import Pyramid, make_pyramid

#: Levels of the first fit, and of the last.
FIRST_LEVEL, LAST_LEVEL = 1, 0


class RefinedMatches(NamedTuple):
    """What pairs of keypoints become by a fit.

    Attributes
    ----------
    points_b
        (K, 2): where the first photograph's keypoints are in the second one; where there is no
        fit, the keypoints that were given.
    maps
        (K, 2, 2): how the surroundings map from the first photograph to the second.
    correlation
        (K,): of the gray values of both windows; -1 where there is no fit.
    texture
        (K,): see :class:`~mkdesc.matching.growing.grow.GrownMatches`.
    """

    points_b: Floats
    maps: Floats
    correlation: Floats
    texture: Floats


def refine_matches(
    image_a: ArrayLike | Pyramid,
    image_b: ArrayLike | Pyramid,
    keypoints_a: Keypoints | ArrayLike,
    keypoints_b: Keypoints | ArrayLike,
    pairs: ArrayLike,
    *,
    maps: ArrayLike | None = None,
    n_threads: int | None = None,
) -> RefinedMatches:
    """Fit each pair of keypoints on its own, by least squares of the gray values.

    Parameters
    ----------
    image_a, image_b, keypoints_a, keypoints_b, pairs, maps, n_threads
        As for :func:`~mkdesc.matching.growing.grow.grow_matches`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> image = np.kron(rng.integers(0, 256, (24, 32)), np.ones((8, 8))).astype(np.uint8)
    >>> moved = np.roll(image, (2, 3), (0, 1))
    >>> found = refine_matches(image, moved, [[100, 90]], [[102, 93]], [[0, 0]])
    >>> found.points_b.round(1), found.maps.round(1)
    (array([[103.,  92.]]), array([[[1., 0.], [0., 1.]]]))
    """
    threads = checked_threads(n_threads)
    one, two = make_pyramid(image_a), make_pyramid(image_b)
    given = checked_guesses(keypoints_a, keypoints_b, pairs, maps)
    places = given.places_a[given.pairs[:, 0]]
    rough = fit_places(one, two, places, given.guess, FIRST_LEVEL, ROUGH, threads)
    fine = fit_places(one, two, places, rough.found, LAST_LEVEL, EXACT, threads)
    good = fine.correlation >= GrowOptions.min_correlation
    found = np.where(good[:, None], fine.found, rough.found)
    return RefinedMatches(
        np.ascontiguousarray(found[:, :2]),
        found[:, 2:].reshape(-1, 2, 2),
        np.where(good, fine.correlation, rough.correlation),
        np.where(good, fine.texture, rough.texture),
    )

"""Matches at every place of a grid, grown from what two photographs agree on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mkdesc.belief.judge import Judged
from mkdesc.features.growing_pair import GrownPair, as_frames
from mkdesc.geometry.estimators.base import MatchedPoints
from mkdesc.geometry.residuals import geometry_errors
from mkdesc.matching.growing.dense import grow_dense
from mkdesc.matching.growing.grow import GrownMatches
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import Pyramid


def fill_grid(
    found: GrownPair,
    judged: Judged,
    pyramids: tuple[Pyramid, Pyramid],
    grid: int,
    how: GrowOptions,
    n_threads: int,
) -> tuple[GrownPair, Judged]:
    """Add matches at the places of a grid; the geometry, which stays, says which are inliers.

    Parameters
    ----------
    found
        A pair and its matches.
    judged
        What is believed of it; growth begins at the inliers. Nothing is added if there are none.
    pyramids
        Of both photographs.
    grid
        Pixels from place to place in the first photograph.
    how
        What growing accepts.
    n_threads
        How many threads grow.
    """
    geometry, pair = judged.geometry, found.pair
    if geometry.matrix is None:
        return found, judged
    one, two = pyramids
    seeds = found.grown.take(geometry.inliers)
    dense = grow_dense(one, two, seeds, grid, how, n_threads=n_threads)
    here, there = dense.points_a, dense.points_b
    if pair.cameras is not None:
        here, there = (
            camera.undistorted(xy) for camera, xy in zip(pair.cameras, (here, there), strict=True)
        )
    first, second = (np.array([width - 1, height - 1]) / 2 for height, width in pair.sizes)
    points = MatchedPoints(here, there, pair.cameras, (first, second))
    agree = geometry_errors(geometry, points) <= pair.threshold
    grown = GrownMatches(*(np.concatenate(both) for both in zip(found.grown, dense, strict=True)))
    matches = pair.matches.followed_by(as_frames(dense, pair.matches))
    whole = replace(pair, matches=matches, _known={})
    inliers = np.concatenate([geometry.inliers, agree])
    counted = replace(judged, pair=whole, geometry=replace(geometry, inliers=inliers))
    return GrownPair(whole, grown), counted

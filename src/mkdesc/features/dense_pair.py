"""Matches at every place of a grid, grown from what two photographs agree on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mkdesc.belief.judgement import Judged
from mkdesc.features.growing_pair import GrownPair, as_frames
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
    places = as_frames(dense, pair.matches)
    agree = pair.residuals(geometry, places) <= pair.threshold
    grown = GrownMatches(*(np.concatenate(both) for both in zip(found.grown, dense, strict=True)))
    matches = pair.matches.followed_by(places)
    whole = replace(pair, matches=matches, grown=grown, _known={})
    inliers = np.concatenate([geometry.inliers, agree])
    counted = replace(judged, pair=whole, geometry=replace(geometry, inliers=inliers))
    return GrownPair(whole, grown, found.tentative), counted

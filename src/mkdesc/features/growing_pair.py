"""Two photographs compared by growing matches: from nearest neighbours to what is judged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.belief.pair import PhotoPair
from mkdesc.matching.affinities import affinities
from mkdesc.matching.frame_matches import FrameMatches, LocalFeatures
from mkdesc.matching.growing.grow import GrownMatches, grow_matches
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import Pyramid
from mkdesc.matching.growing.window import RADIUS
from mkdesc.matching.overlays import overlaid
from mkdesc.matching.two_view_geometry import TwoViewOptions

Floats = NDArray[np.float64]


class GrownPair(NamedTuple):
    """A pair of photographs whose matches were grown.

    Attributes
    ----------
    pair
        What is judged.
    grown
        Its matches, row by row.
    tentative
        What they were grown from.
    """

    pair: PhotoPair
    grown: GrownMatches
    tentative: FrameMatches


def grow_pair(
    pyramids: tuple[Pyramid, Pyramid],
    features: tuple[LocalFeatures, LocalFeatures],
    tentative: FrameMatches,
    options: TwoViewOptions,
    how: GrowOptions,
    n_threads: int | None,
) -> GrownPair:
    """Grow tentative matches, and leave out those on an overlay.

    Parameters
    ----------
    pyramids
        Of both photographs.
    features
        What was found in both.
    tentative
        Matches of these; each is a guess of a local map.
    options
        What is asked of the pair.
    how
        What growing accepts.
    n_threads
        How many threads grow; None: one per core.
    """
    at_a, at_b = (np.ascontiguousarray(one.frames[:, :, 2]) for one in features)
    maps = affinities(tentative.a, tentative.b)[:, :, :2]
    one, two = pyramids
    grown = grow_matches(
        *(one, two, at_a, at_b, tentative.pairs, how),
        maps=maps,
        n_threads=n_threads,
        device=options.device,
    )
    matches = as_frames(grown, tentative)
    over = overlaid(features, matches, options.sizes)
    grown = grown.take(~over)
    pair = PhotoPair(
        features,
        matches.take(~over),
        options.sizes,
        tentative,
        grown,
        options.cameras,
        options.threshold,
        int(over.sum()),
        options.estimator,
    )
    return GrownPair(pair, grown, tentative)


def as_frames(grown: GrownMatches, tentative: FrameMatches) -> FrameMatches:
    """Grown matches as frames: the windows that were fitted.

    Distances are those of tentative matches of the same keypoints, and NaN elsewhere.
    """
    a = np.zeros((len(grown.pairs), 2, 3))
    a[:, :, :2], a[:, :, 2] = RADIUS * np.eye(2), grown.points_a
    b = np.concatenate([RADIUS * grown.maps, grown.points_b[:, :, None]], axis=2)
    known = dict(zip(map(tuple, tentative.pairs.tolist()), tentative.distances, strict=True))
    distances = [known.get((i, j), np.nan) for i, j in grown.pairs.tolist()]
    return FrameMatches(a, b, np.array(distances, np.float32), grown.pairs)

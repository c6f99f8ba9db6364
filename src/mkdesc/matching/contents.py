"""Whether what lies between matches is the same, too.

Things of one make share more than chance explains, at the right places: the squares in the corners
of QR codes, the lines and labels of a form, the board of two chess diagrams. What lies between
differs. So keypoints among the matches that agree are looked for where their neighbours say that
they are in the other photograph. If keypoints of the same size are there, one of them should look
the same: about as much as what agrees. In photographs of one scene it does nearly everywhere,
whatever the light, the noise or the side from which they were taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.matching.frame_matches import Floats, FrameMatches, LocalFeatures
from mkdesc.matching.near import nearest

#: Keypoints of either photograph that are looked at, at most: the largest. Noise and blur change
#: small ones.
MOST = 700

#: Matches that say, together, where a keypoint near them goes; how far, in pixels, they may be
#: off each other, and another keypoint from there; how much larger or smaller it may be; and how
#: many keypoints that are nearest to that place are asked.
GUIDES, OFF, SIZE, BESIDE = 8, 3.0, 1.5, 8

#: Matches whose neighbours are so many times as far away as usual do not bound what is looked at:
#: far from the lines that two pages share, some letter may be in the same place.
LONELY = 3.0

#: Keypoints that are judged together: each with its neighbours, by the median of their squared
#: distances. It is compared with what few of the matches that agree exceed. And how many keypoints
#: there must be in the same places.
TOGETHER, USUAL, TIMES = 25, 0.9, 1.5
FEWEST = 50


def share_different(features: tuple[LocalFeatures, LocalFeatures], agree: FrameMatches) -> float:
    """Of what lies between matches in both photographs, the share that looks different.

    Parameters
    ----------
    features
        All that was found in either photograph.
    agree
        Matches of these that agree on a geometry.

    Returns
    -------
    float
        0 if too few keypoints are in the same places.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> frames = np.zeros((200, 2, 3)) + np.eye(2, 3)
    >>> frames[:, :, 2] = rng.uniform(0, 500, (200, 2))
    >>> seen = LocalFeatures(frames, rng.normal(size=(200, 8)), np.zeros(200, np.uint8))
    >>> rows = np.repeat(np.arange(0, 200, 2)[:, None], 2, axis=1)
    >>> matches = FrameMatches.of(seen, seen, rows, np.zeros(100, np.float32))
    >>> share_different((seen, seen), matches)
    0.0
    >>> other = seen.descriptors.copy()
    >>> other[1::2] = rng.normal(size=(100, 8))
    >>> other[::2] += 0.1
    >>> share_different((seen, seen._replace(descriptors=other)), matches) > 0.25
    True
    """
    if len(agree.a) < GUIDES:
        return 0.0
    here, there = agree.positions
    reach = _reach(here)
    lonely = reach > LONELY * np.median(reach)
    one, other = (
        _largest_among(seen, xy[~lonely]) for seen, xy in zip(features, (here, there), strict=True)
    )
    if min(len(one), len(other)) < FEWEST:
        return 0.0
    places, found = (seen.frames[rows] for seen, rows in zip(features, (one, other), strict=True))
    predicted, scale, error = _predict(here, there, places[:, :, 2])
    beside = nearest(found[:, :, 2], predicted, BESIDE)
    off = np.linalg.norm(found[beside, :, 2] - predicted[:, None], axis=2)
    larger = (scale * _sizes(places))[:, None] / _sizes(found)[beside]
    in_place = (np.maximum(off, error[:, None]) < OFF) & (
        np.abs(np.log(np.maximum(larger, 1e-9))) < np.log(SIZE)
    )
    known = in_place.any(axis=1)
    if known.sum() < FEWEST:
        return 0.0
    numbers = tuple(seen.numbers() for seen in features)
    row, column = np.nonzero(in_place)
    pairs = np.column_stack([one[row], other[beside[row, column]]])
    apart = np.full(len(one), np.inf)
    np.minimum.at(apart, row, _squared_distances(numbers, pairs))
    usual = np.quantile(_squared_distances(numbers, agree.pairs), USUAL)
    at = places[known, :, 2]
    around = np.median(apart[known][nearest(at, at, TOGETHER)], axis=1)
    return float((around > TIMES * usual).mean())


def _reach(matched: Floats) -> Floats:
    """How far (M,) the furthest of the nearest neighbours of each position (M, 2) is."""
    near = matched[nearest(matched, matched, GUIDES)]
    return np.asarray(np.linalg.norm(near - matched[:, None], axis=2).max(axis=1))


def _largest_among(seen: LocalFeatures, matched: Floats) -> NDArray[np.int64]:
    """The largest keypoints (K,) within the convex hull of what was matched (M, 2)."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = matched[ConvexHull(matched).vertices]
    except QhullError:  # they are on one line
        return np.empty(0, np.int64)
    along = np.roll(hull, -1, axis=0) - hull
    from_corners = seen.frames[:, None, :, 2] - hull
    side = along[:, 0] * from_corners[:, :, 1] - along[:, 1] * from_corners[:, :, 0]
    rows = np.flatnonzero((side >= 0).all(axis=1) | (side <= 0).all(axis=1))
    order = np.argsort(-_sizes(seen.frames[rows]), kind="stable")
    return rows[order[:MOST]]


def _predict(here: Floats, there: Floats, asked: Floats) -> tuple[Floats, Floats, Floats]:
    """Where matches bring the places near them (N, 2), how much larger, and their error (N,).

    By the affine map that fits the nearest matches best. Where it mirrors, nothing looks the same,
    and the size is 0.
    """
    near = nearest(here, asked, GUIDES)
    steps = np.concatenate([here[near] - asked[:, None], np.ones((*near.shape, 1))], axis=2)
    squares = np.swapaxes(steps, 1, 2) @ steps + np.diag([1.0, 1.0, 1e-9])  # never singular
    maps = np.linalg.solve(squares, np.swapaxes(steps, 1, 2) @ there[near])
    errors = np.linalg.norm(steps @ maps - there[near], axis=2)
    scale = np.sqrt(np.maximum(np.linalg.det(maps[:, :2]), 0.0))
    return maps[:, 2], scale, np.median(errors, axis=1)


def _sizes(frames: Floats) -> Floats:
    return np.sqrt(np.abs(np.linalg.det(frames[:, :, :2])))


def _squared_distances(numbers: tuple[NDArray[Any], ...], pairs: NDArray[np.int64]) -> Floats:
    """(K,): of descriptors of either photograph, by their rows (K, 2)."""
    one, other = (
        vectors[rows].astype(np.float64) for vectors, rows in zip(numbers, pairs.T, strict=True)
    )
    return np.asarray(((one - other) ** 2).sum(axis=1))

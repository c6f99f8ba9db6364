"""Tentative matches of frames, what they agree on, and matching once more guided by that."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.features.looking import KINDS, Seen
from mkdesc.matching.affinities import affinities, frames_agree
from mkdesc.matching.distinct import match_distinct
from mkdesc.matching.guided import match_guided
from mkdesc.matching.verification import Verified, has_depth, transfer_errors, verify_matches

__all__ = [
    "Pair",
    "Request",
    "Search",
    "agreement",
    "distinct_places",
    "guide",
    "homography",
    "of_pixels",
    "tentative",
]

#: Pixels within which two matches, in both images, are one.
SAME = 3.0

#: Distance at which descriptors are as good as the same.
EQUAL = 1e-6

#: Ratio of guided matches along epipolar lines, where there is more than one to choose from.
GUIDED_RATIO = 0.9

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Pair(NamedTuple):
    """Matched frames of two photographs, the most trustworthy first.

    Attributes
    ----------
    a, b
        (M, 2, 3) each.
    distances
        (M,) float32, of their descriptors.
    pairs
        (M, 2): their numbers among what was seen.
    """

    a: Floats
    b: Floats
    distances: NDArray[np.float32]
    pairs: NDArray[np.int64]

    def take(self, which: NDArray[np.int64] | Flags | slice) -> Pair:
        """Some of them."""
        return Pair(self.a[which], self.b[which], self.distances[which], self.pairs[which])

    @property
    def places(self) -> tuple[Floats, Floats]:
        """Positions (M, 2) in either photograph."""
        return self.a[:, :, 2], self.b[:, :, 2]

    def followed_by(self, more: Pair) -> Pair:
        """These, then more."""
        join = np.concatenate
        return Pair(
            join([self.a, more.a]),
            join([self.b, more.b]),
            join([self.distances, more.distances]),
            join([self.pairs, more.pairs]),
        )


class Request(NamedTuple):
    """What is asked of a pair: the geometry, pixels an inlier may be off, and the cameras."""

    geometry: str = "auto"
    threshold: float = 2.0
    cameras: tuple[Floats, Floats] | None = None


class Search(NamedTuple):
    """How a search ended.

    Attributes
    ----------
    seen
        All that was seen in either photograph.
    matches
        Tentative ones.
    verified
        What they agree on.
    """

    seen: tuple[Seen, Seen]
    matches: Pair
    verified: Verified


def tentative(a: Seen, b: Seen, ratio: float) -> Pair:
    """Matches that stand out among those of their kind, the most so first, each place once."""
    pairs, distances, ratios = [], [], []
    for kind in range(len(KINDS)):
        i, j = a.of_kind(kind), b.of_kind(kind)
        found = match_distinct(
            a.descriptors[i],
            b.descriptors[j],
            a.frames[i][:, :, 2],
            b.frames[j][:, :, 2],
            ratio=ratio,
        )
        pairs.append(np.column_stack([i[found.pairs[:, 0]], j[found.pairs[:, 1]]]))
        distances.append(found.distances)
        ratios.append(found.ratios)
    order = np.argsort(np.concatenate(ratios), kind="stable")
    matches = _matched(a, b, np.concatenate(pairs)[order], np.concatenate(distances)[order])
    return matches.take(distinct_places(matches))


def _matched(a: Seen, b: Seen, pairs: NDArray[np.int64], distances: NDArray[np.float32]) -> Pair:
    return Pair(a.frames[pairs[:, 0]], b.frames[pairs[:, 1]], distances, pairs)


def distinct_places(matches: Pair) -> NDArray[np.int64]:
    """The first of all matches (M,) that are of the same two places."""
    from scipy.spatial import cKDTree

    places = np.concatenate(matches.places, axis=1)
    if not len(places):
        return np.empty(0, np.int64)
    gone = np.zeros(len(places), np.bool_)
    kept = []
    for index, near in enumerate(cKDTree(places).query_ball_point(places, SAME)):
        if not gone[index]:
            kept.append(index)
            gone[near] = True
    return np.array(kept, np.int64)


def homography(matches: Pair, threshold: float) -> Verified:
    """The homography of matches; pixels are those of the image that shows things smaller."""
    here, there = matches.places
    larger = len(here) and np.median(np.linalg.det(affinities(matches.a, matches.b)[:, :, :2])) > 1
    if not larger:
        return verify_matches(here, there, "homography", threshold)
    found = verify_matches(there, here, "homography", threshold)
    if found.matrix is None:
        return found
    return replace(found, matrix=np.linalg.inv(found.matrix).astype(np.float64))


def agreement(matches: Pair, flat: Floats, request: Request) -> Verified:
    """What matches of a scene agree on, given a homography that some of them do."""
    here, there = matches.places
    plane = _plane(matches, flat, request.threshold)
    if request.geometry == "homography":
        return plane
    kind = "fundamental" if request.geometry == "auto" else request.geometry
    deep = verify_matches(here, there, kind, request.threshold, cameras=request.cameras)
    if request.geometry != "auto":
        return deep
    if deep.matrix is None or not has_depth(plane, deep, here, there, request.threshold):
        return plane
    if request.cameras is not None:
        posed = verify_matches(
            here, there, "essential", request.threshold, cameras=request.cameras
        )
        if posed.inliers.sum() >= 0.8 * deep.inliers.sum():
            return posed
    return deep


def _plane(matches: Pair, matrix: Floats, threshold: float) -> Verified:
    """A homography, refined by the matches that are near it."""
    here, there = matches.places
    near = transfer_errors(matrix, here, there) < 4 * threshold
    refined = homography(matches.take(near), threshold).matrix
    best = matrix if refined is None else refined
    return Verified(best, transfer_errors(best, here, there) < threshold, "homography")


def guide(search: Search, request: Request) -> Search:
    """Match once more with the geometry that was found: more matches, and a finer geometry.

    Parameters
    ----------
    search
        With a matrix.
    request
        What was asked for.

    Returns
    -------
    Search
        As it was if that does not bring more.
    """
    found, threshold = search.verified, request.threshold
    a, b = search.seen
    matrix, kind = of_pixels(found, request)
    # As near as those that are right: distances mean other things with other descriptors.
    usual = max(float(np.quantile(search.matches.distances[found.inliers], 0.95)), EQUAL)
    pairs, distances = [], []
    for one in range(len(KINDS)):
        i, j = a.of_kind(one), b.of_kind(one)
        guided = match_guided(
            a.descriptors[i],
            b.descriptors[j],
            a.frames[i][:, :, 2],
            b.frames[j][:, :, 2],
            matrix,
            kind,
            within=2 * threshold,
            ratio=None if kind == "homography" else GUIDED_RATIO,
            max_distance=usual,
        )
        pairs.append(np.column_stack([i[guided.pairs[:, 0]], j[guided.pairs[:, 1]]]))
        distances.append(guided.distances)
    order = np.argsort(np.concatenate(distances), kind="stable")
    more = _matched(a, b, np.concatenate(pairs)[order], np.concatenate(distances)[order])
    if kind == "homography":
        more = more.take(frames_agree(matrix, more.a, more.b))
    known = search.matches.take(found.inliers)
    both = known.followed_by(more)
    first = distinct_places(both)  # what was known stays
    both = both.take(np.union1d(np.arange(len(known.a)), first))
    here, there = both.places
    if kind == "homography":
        verified = _plane(both, matrix, threshold)
    else:
        verified = verify_matches(
            here, there, str(found.geometry), threshold, cameras=request.cameras
        )
    if verified.inliers.sum() < found.inliers.sum():
        return search
    return Search(search.seen, both, verified)


def of_pixels(found: Verified, request: Request) -> tuple[Floats, str]:
    """A geometry as one of pixels: an essential matrix becomes a fundamental one."""
    assert found.matrix is not None
    if found.geometry != "essential":
        return found.matrix, str(found.geometry)
    assert request.cameras is not None
    first, second = (np.linalg.inv(camera) for camera in request.cameras)
    return second.T @ found.matrix @ first, "fundamental"

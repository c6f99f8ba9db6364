"""Matching photographs taken from widely different viewpoints: views on demand, cheap ones first.

Each level looks at both photographs from further aside, adds what it sees to what was seen
before, matches all of it and asks whether a geometry is believed (as MODS does it: Mishkin, Matas,
Perdoch, 2015). A homography that is suspected is put to the test: one photograph is shown as the
other one would see it, and if the two then look alike, more than chance explains, it is believed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress, nobody
from mkdesc._support.work import in_order
from mkdesc.features.agreement import (
    Pair,
    Request,
    Search,
    agreement,
    distinct_places,
    homography,
    of_pixels,
    tentative,
)
from mkdesc.features.features import Features
from mkdesc.features.looking import Seen, join, look, look_at
from mkdesc.images.reading import opencv
from mkdesc.images.views import View, seen_through, slopes
from mkdesc.matching.affinities import frames_agree, frames_follow, homography_from_frames
from mkdesc.matching.chance import SAMPLES, false_alarms
from mkdesc.matching.verification import Verified, transfer_errors, verify_matches

__all__ = ["TILTS", "beyond_chance", "match_wide"]

#: Tilts of the views of one level after the other; 1: the photographs themselves.
TILTS = (1.0, 3.0, 6.0, 9.0)

#: Ratios of tentative matches: of everything seen, and of two views that should look alike.
RATIO, ALIKE = 0.85, 0.9

#: Tentative matches that geometries are looked for in, at most: those that stand out most.
MOST = 1500

#: log10 of the false alarms at which a geometry is suspected, and believed.
SUSPECTED, BELIEVED = -2.0, -12.0

#: How many times as many blobs as usual are looked for where a homography is believed: guided
#: matching makes more matches of them.
FINE = 2

#: Matches that must agree at least, whatever chance says, because real images repeat themselves.
FEWEST = 12

#: That the shapes of two random frames agree with a geometry, too. Of random pairs of frames of
#: graf 6 in 100 agree with a homography and 2.5 in 100 follow an epipolar geometry.
SHAPE_BY_CHANCE = 0.1

Floats = NDArray[np.float64]
Images = tuple[NDArray[np.uint8], NDArray[np.uint8]]


def match_wide(
    images: Images,
    features: Features,
    request: Request,
    most: int,
    threads: int,
    tell: Progress = nobody,
) -> Search:
    """Match two photographs from wherever they were taken.

    Parameters
    ----------
    images
        Gray (H, W), uint8.
    features
        What describes; of one thread.
    request
        What the matches must agree on.
    most
        Keypoints of a kind in a photograph, at most; views have their share of it.
    threads
        Views at a time.
    tell
        Told which views are looked at.

    Returns
    -------
    Search
        With no matrix if no geometry is believed: nothing says that they show the same.
    """
    parts: tuple[list[Seen], list[Seen]] = ([], [])
    for number, tilt in enumerate(TILTS):
        tell(
            "looking for shapes" if tilt == 1 else f"looking from aside, tilt {tilt:g}", number, 0
        )
        for image, known in zip(images, parts, strict=True):
            known.append(look(image, tilt, features, most, threads))
        seen = join(parts[0]), join(parts[1])
        matches = tentative(*seen, RATIO)
        found = _believed(images, seen, matches, features, request, most)
        if found is None:
            if not all(len(one.frames) for one in seen):
                break  # of nothing there are no views either
            continue
        if found.verified.geometry == "homography":
            return _both_ways(images, found, features, most, threads)
        return found
    return Search(seen, matches, Verified(None, np.zeros(len(matches.a), np.bool_)))


def _believed(
    images: Images,
    seen: tuple[Seen, Seen],
    matches: Pair,
    features: Features,
    request: Request,
    most: int,
) -> Search | None:
    """The geometry that tentative matches agree on, if it is beyond doubt."""
    best = matches.take(slice(MOST))
    flat = _suspected(best, images, request.threshold)
    if flat is not None:
        closer = _closer(images, flat, best, features, request.threshold, most)
        if closer is not None:
            # What the two views have in common comes first: it is more, and more precise.
            shift = np.array([len(seen[0].frames), len(seen[1].frames)])
            more = closer.matches._replace(pairs=closer.matches.pairs + shift)
            both = more.followed_by(matches)
            both = both.take(distinct_places(both))
            verified = agreement(both, closer.matrix, request)
            if verified.matrix is not None:
                whole = join([seen[0], closer.seen[0]]), join([seen[1], closer.seen[1]])
                return Search(whole, both, verified)
    if request.geometry == "homography":
        return None
    kind = "essential" if request.geometry == "essential" else "fundamental"
    here, there = best.places
    deep = verify_matches(here, there, kind, request.threshold, cameras=request.cameras)
    search = Search(seen, best, deep)
    return search if beyond_chance(search, images, request) else None


def beyond_chance(search: Search, images: Images, request: Request) -> bool:
    """Whether more matches agree on a geometry than chance explains.

    In places alone, or in places and shapes: those of some detectors say little.

    Parameters
    ----------
    search
        What was found.
    images
        The two photographs.
    request
        What was asked for.
    """
    found = search.verified
    if found.matrix is None:
        return False
    matrix, kind = of_pixels(found, request)
    if kind == "homography":
        share = _disc(images, request.threshold)
        alike = frames_agree(matrix, search.matches.a, search.matches.b)
    else:
        share = _strip(images, request.threshold)
        alike = frames_follow(matrix, search.matches.a, search.matches.b)
    count, sample = len(found.inliers), SAMPLES[str(found.geometry)]
    places = false_alarms(int(found.inliers.sum()), count, share, sample)
    shapes = int((found.inliers & alike).sum())
    return min(places, false_alarms(shapes, count, SHAPE_BY_CHANCE * share, sample)) < BELIEVED


def _suspected(matches: Pair, images: Images, threshold: float) -> Floats | None:
    """A homography that more matches agree with, in place and shape, than chance explains."""
    here, there = matches.places
    disc = _disc(images, 2 * threshold)

    def chance(matrix: Floats | None) -> float:
        if matrix is None:
            return np.inf
        agree = transfer_errors(matrix, here, there) < 2 * threshold
        agree &= frames_agree(matrix, matches.a, matches.b)
        count = int(agree.sum())
        return false_alarms(count, len(here), disc * SHAPE_BY_CHANCE, SAMPLES["homography"])

    sampled = homography(matches, threshold).matrix
    if sampled is not None and chance(sampled) < BELIEVED:
        return sampled
    guessed = homography_from_frames(matches.a, matches.b, 2 * threshold)
    best = guessed if chance(guessed) <= chance(sampled) else sampled
    return best if chance(best) < SUSPECTED else None


def _both_ways(
    images: Images, found: Search, features: Features, most: int, threads: int
) -> Search:
    """What either photograph shows as the other one sees it, too: left to guided matching."""
    matrix, known = found.verified.matrix, found.matches.take(found.verified.inliers)
    assert matrix is not None

    def one(warped: int) -> tuple[Seen, Seen]:
        more = FINE * most
        return _side_by_side(images, matrix, known, features, more, warped=warped, fine=True)[0]

    firsts, seconds = zip(found.seen, *in_order(one, range(2), threads), strict=True)
    return found._replace(seen=(join(list(firsts)), join(list(seconds))))


class Closer(NamedTuple):
    """What two photographs show when one is seen as the other: and the homography, refined."""

    seen: tuple[Seen, Seen]
    matches: Pair
    matrix: Floats


def _closer(
    images: Images,
    matrix: Floats,
    matches: Pair,
    features: Features,
    threshold: float,
    most: int,
) -> Closer | None:
    """See whether the photographs look alike once one is seen as the other; None: they do not."""
    near = transfer_errors(matrix, *matches.places) < 2 * threshold
    near &= frames_agree(matrix, matches.a, matches.b)
    if not near.any():
        return None
    known = matches.take(near)
    centre = np.median(known.places[0], axis=0)
    larger = abs(np.linalg.det(slopes(matrix, centre[None])[0])) > 1
    seen, area = _side_by_side(images, matrix, known, features, most, warped=int(larger))
    found = tentative(*seen, ALIKE)
    agree = transfer_errors(matrix, *found.places) < 4 * threshold
    agree &= frames_agree(matrix, found.a, found.b)
    disc = float(np.pi) * (4 * threshold) ** 2 / area
    count = int(agree.sum())
    if count < FEWEST or false_alarms(count, len(agree), disc, 0) > BELIEVED:
        return None
    refined = homography(found.take(agree), threshold).matrix
    return Closer(seen, found, matrix if refined is None else refined)


def _side_by_side(
    images: Images,
    matrix: Floats,
    known: Pair,
    features: Features,
    most: int,
    *,
    warped: int,
    fine: bool = False,
) -> tuple[tuple[Seen, Seen], int]:
    """Look at one photograph as the other one sees it, and at that one.

    Parameters
    ----------
    images, matrix
        The photographs, and the homography from the first to the second.
    known
        Matches that agree with it.
    features, most, fine
        As for :func:`~mkdesc.features.looking.look_at`.
    warped
        Which one is shown as the other one sees it: 0 or 1.

    Returns
    -------
    seen
        In either photograph, where both show the same.
    area
        Of that, in pixels of the one that is not warped; at least 1.
    """
    moved, still = images[warped], images[1 - warped]
    onto = np.linalg.inv(matrix) if warped else matrix
    shape = (still.shape[0], still.shape[1])
    common = opencv().warpPerspective(np.full_like(moved, 255), onto, shape[::-1])
    view = seen_through(moved, onto, shape, np.median(known.places[warped], axis=0))
    a, b = (
        look_at(one, photo.shape, features, most, shapes=False, mask=common, fine=fine)
        for one, photo in ((view, moved), (View(still, np.eye(2, 3)), still))
    )
    return ((b, a) if warped else (a, b)), int(np.count_nonzero(common)) or 1


def _strip(images: Images, threshold: float) -> float:
    """The share of an image that is within the threshold of a line through it."""
    share = 0.0
    for image in images:
        height, width = image.shape
        share += 2 * threshold * float(np.hypot(width, height)) / (width * height)
    return min(share, 1.0)


def _disc(images: Images, threshold: float) -> float:
    """The share of an image that is within the threshold of a place, in either one."""
    share = 0.0
    for image in images:
        share += float(np.pi) * threshold**2 / float(image.size)
    return min(share, 1.0)

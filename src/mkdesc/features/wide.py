"""Matching photographs taken from widely different viewpoints: views on demand, cheap ones first.

Each level looks at both photographs from further aside, adds what it sees to what was seen
before, matches all of it and asks whether a geometry is believed (as MODS does it: Mishkin, Matas,
Perdoch, 2015). A homography that is suspected is put to the test: one photograph is shown as the
other one would see it, and only if the two then look alike is it judged as all others are.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.work import in_order
from mkdesc.features.features import Features
from mkdesc.features.view_features import features_in_view, features_in_views
from mkdesc.images.reading import opencv
from mkdesc.images.views import View, seen_through, slopes
from mkdesc.matching.affinities import frames_agree, homography_from_frames
from mkdesc.matching.chance import SAMPLES, disc_share, false_alarms
from mkdesc.matching.frame_matches import FrameMatches, LocalFeatures, join_features
from mkdesc.matching.judging import (
    AMBIGUOUS,
    BELIEVED,
    SHAPE_BY_CHANCE,
    UNVERIFIED,
    VERIFIED,
    Verdict,
)
from mkdesc.matching.two_view_geometry import (
    TwoViewOptions,
    fit_homography,
    verify,
    verify_near_plane,
)
from mkdesc.matching.two_views import (
    TwoViewResult,
    beside_overlay,
    judged,
    not_counting,
    nothing_found,
    tentative_matches,
    without_overlay,
)
from mkdesc.matching.verification import transfer_errors

#: Tilts of the views of one level after the other; 1: the photographs themselves.
TILTS = (1.0, 3.0, 6.0, 9.0)

#: Ratios of tentative matches: of everything seen, and of two views that should look alike.
RATIO, ALIKE = 0.85, 0.9

#: Tentative matches that geometries are looked for in, at most: those that stand out most.
MOST = 1500

#: log10 of the false alarms at which a homography is suspected.
SUSPECTED = -2.0

#: How many times as many blobs as usual are looked for where a homography is believed: guided
#: matching makes more matches of them.
FINE = 2

#: Matches that must agree at least, whatever chance says, because real images repeat themselves.
FEWEST = 12

Floats = NDArray[np.float64]
Images = tuple[NDArray[np.uint8], NDArray[np.uint8]]
Both = tuple[LocalFeatures, LocalFeatures]


def match_wide(
    images: Images,
    features: Features,
    options: TwoViewOptions,
    most: int,
    threads: int,
    progress: Progress = no_progress,
    limit: float = float("inf"),
) -> TwoViewResult:
    """Match two photographs from wherever they were taken.

    Parameters
    ----------
    images
        Gray (H, W), uint8.
    features
        What describes; of one thread.
    options
        What is asked of them.
    most
        Keypoints of a kind in a photograph, at most; views have their share of it.
    threads
        Views at a time.
    progress
        Told how many views are done.
    limit
        Seconds after which no more views are tried.

    Returns
    -------
    TwoViewResult
        If nothing is believed, the matches are those of the last level, and the verdict is that
        of a level that was ambiguous, if there is one.
    """
    end = time.monotonic() + limit
    known: list[Both] = []
    result: TwoViewResult | None = None
    ambiguous: Verdict | None = None
    over = 0
    for tilt in TILTS:
        found = _look(images, tilt, features, most, threads, progress, end)
        if found is None:
            assert result is not None  # the first level is always tried
            reason = f"not all views were tried: the time limit of {limit:g} s was over"
            result = result._replace(verdict=not_counting(Verdict(UNVERIFIED, reason), over))
            break
        known.append(found)
        progress("matching what was seen", 0, 0)
        firsts, seconds = zip(*known, strict=True)
        seen = join_features(firsts), join_features(seconds)
        matches, over = without_overlay(seen, tentative_matches(*seen, RATIO), options)
        result = _judged(images, seen, matches, features, options, most)
        result = beside_overlay(result, over, options)
        if result.verdict.name == VERIFIED:
            if result.verified.geometry == "homography":
                return _both_ways(images, result, features, most, threads)
            return result
        if result.verdict.name == AMBIGUOUS:
            ambiguous = result.verdict
        if not all(len(one.frames) for one in seen):
            break  # of nothing there are no views either
    assert result is not None
    return result if ambiguous is None else result._replace(verdict=ambiguous)


def _look(
    images: Images,
    tilt: float,
    features: Features,
    most: int,
    threads: int,
    progress: Progress,
    end: float,
) -> Both | None:
    """Features of both photographs in all views of one tilt; None: there was no time for them."""
    what = "looking for shapes" if tilt == 1 else f"looking at views of tilt {tilt:g}"
    before = 0

    def done(views: int, of: int) -> None:
        nonlocal before
        before += 1
        progress(what, before, 2 * of)
        if tilt > 1 and time.monotonic() > end:
            raise TimeoutError

    try:
        a, b = (features_in_views(one, tilt, features, most, threads, done) for one in images)
    except TimeoutError:
        return None
    return a, b


def _judged(
    images: Images,
    seen: Both,
    matches: FrameMatches,
    features: Features,
    options: TwoViewOptions,
    most: int,
) -> TwoViewResult:
    """The geometry that tentative matches agree on, if it is believed."""
    best = matches.take(slice(MOST))
    doubt = Verdict(UNVERIFIED, "no homography that both photographs look alike by")
    flat = _suspected(best, options)
    if flat is not None:
        check = _checked(images, flat, best, features, options.threshold, most)
        if check is not None:
            # What the two views have in common comes first: it is more, and more precise.
            shift = np.array([len(one.frames) for one in seen])
            both = check.matches._replace(pairs=check.matches.pairs + shift).followed_by(matches)
            both = both.take(both.distinct())
            whole = (
                join_features([seen[0], check.seen[0]]),
                join_features([seen[1], check.seen[1]]),
            )
            both, _ = without_overlay(whole, both, options)
            result = judged(whole, both, verify_near_plane(both, check.matrix, options), options)
            doubt = result.verdict
            if doubt.name == VERIFIED:
                return result
    if options.geometry != "homography":
        kind = "essential" if options.geometry == "essential" else "fundamental"
        result = judged(seen, best, verify(best, kind, options), options)
        if result.verdict.name == VERIFIED:
            return result
        if doubt.name != AMBIGUOUS:
            doubt = result.verdict
    return nothing_found(seen, matches, doubt)


def _suspected(matches: FrameMatches, options: TwoViewOptions) -> Floats | None:
    """A homography that more matches agree with, in place and shape, than chance explains."""
    here, there = matches.positions
    threshold = options.threshold
    disc = disc_share(2 * threshold, *options.sizes)

    def chance(matrix: Floats | None) -> float:
        if matrix is None:
            return np.inf
        agree = transfer_errors(matrix, here, there) < 2 * threshold
        agree &= frames_agree(matrix, matches.a, matches.b)
        count = int(agree.sum())
        return false_alarms(count, len(here), disc * SHAPE_BY_CHANCE, SAMPLES["homography"])

    sampled = fit_homography(matches, threshold).matrix
    if sampled is not None and chance(sampled) < BELIEVED:
        return sampled
    guessed = homography_from_frames(matches.a, matches.b, 2 * threshold)
    best = guessed if chance(guessed) <= chance(sampled) else sampled
    return best if chance(best) < SUSPECTED else None


def _both_ways(
    images: Images, found: TwoViewResult, features: Features, most: int, threads: int
) -> TwoViewResult:
    """What either photograph shows as the other one sees it, too: left to guided matching."""
    matrix, known = found.verified.matrix, found.matches.take(found.verified.inliers)
    assert matrix is not None

    def one(warped: int) -> Both:
        more = FINE * most
        return _side_by_side(images, matrix, known, features, more, warped=warped, fine=True)[0]

    firsts, seconds = zip(found.features, *in_order(one, range(2), threads), strict=True)
    return found._replace(features=(join_features(firsts), join_features(seconds)))


class WarpCheck(NamedTuple):
    """What two photographs show when one is seen as the other: and the homography, refined."""

    seen: Both
    matches: FrameMatches
    matrix: Floats


def _checked(
    images: Images,
    matrix: Floats,
    matches: FrameMatches,
    features: Features,
    threshold: float,
    most: int,
) -> WarpCheck | None:
    """See whether the photographs look alike once one is seen as the other; None: they do not."""
    near = transfer_errors(matrix, *matches.positions) < 2 * threshold
    near &= frames_agree(matrix, matches.a, matches.b)
    if not near.any():
        return None
    known = matches.take(near)
    centre = np.median(known.positions[0], axis=0)
    larger = abs(np.linalg.det(slopes(matrix, centre[None])[0])) > 1
    seen, area = _side_by_side(images, matrix, known, features, most, warped=int(larger))
    found = tentative_matches(*seen, ALIKE)
    agree = transfer_errors(matrix, *found.positions) < 4 * threshold
    agree &= frames_agree(matrix, found.a, found.b)
    disc = float(np.pi) * (4 * threshold) ** 2 / area
    count = int(agree.sum())
    if count < FEWEST or false_alarms(count, len(agree), disc, 0) > BELIEVED:
        return None
    refined = fit_homography(found.take(agree), threshold).matrix
    return WarpCheck(seen, found, matrix if refined is None else refined)


def _side_by_side(
    images: Images,
    matrix: Floats,
    known: FrameMatches,
    features: Features,
    most: int,
    *,
    warped: int,
    fine: bool = False,
) -> tuple[Both, int]:
    """Look at one photograph as the other one sees it, and at that one.

    Parameters
    ----------
    images, matrix
        The photographs, and the homography from the first to the second.
    known
        Matches that agree with it.
    features, most, fine
        As for :func:`~mkdesc.features.view_features.features_in_view`.
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
    view = seen_through(moved, onto, shape, np.median(known.positions[warped], axis=0))
    a, b = (
        features_in_view(one, photo.shape, features, most, shapes=False, mask=common, fine=fine)
        for one, photo in ((view, moved), (View(still, np.eye(2, 3)), still))
    )
    return ((b, a) if warped else (a, b)), int(np.count_nonzero(common)) or 1

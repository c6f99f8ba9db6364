"""Two photographs: what was found in them, matched, and the geometry that is believed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mkdesc.geometry.estimators.base import Estimate
from mkdesc.matching.coherence import spread
from mkdesc.matching.distinct import match_distinct
from mkdesc.matching.frame_matches import FrameMatches, LocalFeatures
from mkdesc.matching.judging import UNVERIFIED, VERIFIED, Verdict, judge
from mkdesc.matching.nearest import match_descriptors
from mkdesc.matching.overlays import overlaid
from mkdesc.matching.two_view_geometry import TwoViewOptions, verify

#: Beside what lies over both photographs, so many places must agree, and deviate by so much, as a
#: share of the diagonal, from any line: 18 and 0.051 at least in 21 of 23 pairs of one place.
#: Where strangers share a layout, one word agrees: 10 to 13 places, or deviations up to 0.04.
BESIDE_PLACES, BESIDE_SPREAD = 16, 0.045

#: Ratio of guided matches along epipolar lines, where there is more than one to choose from.
GUIDED_RATIO = 0.9


class TwoViewResult(NamedTuple):
    """What two views have in common.

    Attributes
    ----------
    features
        All that was found in either photograph.
    matches
        Tentative ones.
    verified
        The geometry they agree on; none unless the verdict is ``"verified"``.
    verdict
        What is believed.
    """

    features: tuple[LocalFeatures, LocalFeatures]
    matches: FrameMatches
    verified: Estimate
    verdict: Verdict


def match_and_verify(
    a: LocalFeatures, b: LocalFeatures, ratio: float | None, options: TwoViewOptions
) -> TwoViewResult:
    """Mutual nearest neighbours, the geometry they agree on, and whether it is believed."""
    found = match_descriptors(
        a.descriptors, b.descriptors, ratio=ratio, bits=a.bits, device=options.device
    )
    matches, over = without_overlay(
        (a, b), FrameMatches.of(a, b, found.pairs, found.distances), options
    )
    result = judged((a, b), matches, verify(matches, options.geometry, options), options)
    return beside_overlay(result, over, options)


def mutual_matches(a: LocalFeatures, b: LocalFeatures, options: TwoViewOptions) -> FrameMatches:
    """All mutual nearest neighbours: guesses to grow from."""
    found = match_descriptors(a.descriptors, b.descriptors, bits=a.bits, device=options.device)
    return FrameMatches.of(a, b, found.pairs, found.distances)


def without_overlay(
    features: tuple[LocalFeatures, LocalFeatures], matches: FrameMatches, options: TwoViewOptions
) -> tuple[FrameMatches, int]:
    """The matches of what the photographs show, and how many are of what lies over both."""
    over = overlaid(features, matches, options.sizes)
    return matches.take(~over), int(over.sum())


def beside_overlay(result: TwoViewResult, over: int, options: TwoViewOptions) -> TwoViewResult:
    """A result that also tells of so many matches of what lies over both photographs.

    Beside it, more is asked: what has one frame or layout often has another word in common.
    """
    if not over:
        return result
    verdict = result.verdict
    if verdict.name == VERIFIED:
        width = spread(result.matches.take(result.verified.inliers), options.sizes)
        if verdict.places < BESIDE_PLACES or width < BESIDE_SPREAD:
            said = f"only {verdict.places} places, near each other, agree on one geometry"
            result = nothing_found(result.features, result.matches, Verdict(UNVERIFIED, said))
    return result._replace(verdict=not_counting(result.verdict, over))


def not_counting(verdict: Verdict, over: int) -> Verdict:
    """A verdict that also tells of so many matches of what lies over both photographs."""
    said = (
        f"{over} matches on what lies over both photographs, such as a logo, a date or a frame, "
        "do not count"
    )
    return verdict._replace(reason=f"{verdict.reason}; {said}") if over else verdict


def judged(
    features: tuple[LocalFeatures, LocalFeatures],
    matches: FrameMatches,
    verified: Estimate,
    options: TwoViewOptions,
) -> TwoViewResult:
    """A result; its geometry is dropped unless it is believed.

    Where matches off a plane tell of no depth, it is the plane, unless depth was asked for.
    """
    verdict = judge(matches, verified, options, features)
    if verdict.flat and options.geometry == "auto":
        verified = verify(matches, "homography", options)
        verdict = judge(matches, verified, options, features)
    if verdict.name != VERIFIED:
        return nothing_found(features, matches, verdict)
    return TwoViewResult(features, matches, verified, verdict)


def nothing_found(
    features: tuple[LocalFeatures, LocalFeatures], matches: FrameMatches, verdict: Verdict
) -> TwoViewResult:
    """A result without a geometry."""
    nothing = Estimate(None, np.zeros(len(matches.a), np.bool_))
    return TwoViewResult(features, matches, nothing, verdict)


def tentative_matches(a: LocalFeatures, b: LocalFeatures, ratio: float) -> FrameMatches:
    """Matches that stand out among those of their kind, the most so first, each place once."""
    pairs, distances, ratios = [], [], []
    for kind in a.all_kinds():
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
    matches = FrameMatches.of(a, b, np.concatenate(pairs)[order], np.concatenate(distances)[order])
    return matches.take(matches.distinct())

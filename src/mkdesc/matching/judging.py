"""What may be believed of two photographs: one answer for everything that matches them.

Matches agree on a geometry, which is believed if chance does not explain it (a count of what
agrees, and a comparison with the same matches shuffled), if enough distinct places move together
with their neighbours (:mod:`mkdesc.matching.coherence`), and if nothing else explains the same
places as well. Where something does, the structure repeats itself and the answer is ambiguous.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mkdesc.geometry.estimators.base import Estimate
from mkdesc.geometry.residuals import transfer_errors
from mkdesc.matching.affinities import frames_agree, frames_follow
from mkdesc.matching.chance import SAMPLES, disc_share, false_alarms, strip_share
from mkdesc.matching.coherence import (
    MAJORITY,
    Coherence,
    coherence,
    distinct_places,
    far_coherence,
    in_front,
)
from mkdesc.matching.contents import share_different
from mkdesc.matching.depth import tells_of_depth
from mkdesc.matching.frame_matches import FrameMatches, LocalFeatures
from mkdesc.matching.lookalikes import ALIKE, share_repeated
from mkdesc.matching.mirrored import mirrored_homography, mirrors, share_turned_over
from mkdesc.matching.near import distance_to_nearest
from mkdesc.matching.order import share_reversed
from mkdesc.matching.two_view_geometry import TwoViewOptions, of_pixels, verify
from mkdesc.matching.verification import (
    DEPTH_SHARE,
    OFF_PLANE,
    PLANE_SHARE,
)

#: The verdicts there are.
VERIFIED, AMBIGUOUS, UNVERIFIED = "verified", "ambiguous", "unverified"

#: log10 of the false alarms at which a geometry is more than chance.
BELIEVED = -12.0

#: That the shapes of two random frames agree with a geometry, too. Of random pairs of frames of
#: graf 6 in 100 agree with a homography and 2.5 in 100 follow an epipolar geometry.
SHAPE_BY_CHANCE = 0.1

#: Places that must move together. Where photographs are unrelated, or show facades that only look
#: alike, 0 to 7 do.
FEWEST = 10

#: Share of the places of an epipolar geometry that must move together: 0.6 and more do in
#: photographs of one scene, 0.25 to 0.35 on mirrored facades.
MOST = 0.5

#: Share of the far places of an epipolar geometry that must move together, if there are so many of
#: them: a letter or a window moves with itself, wherever it goes. 0.6 and more do in photographs
#: of one scene, 0.1 to 0.5 where letters or digits have changed places.
FAR_TOGETHER, FAR_PLACES = 0.55, 15

#: So many places that move together, and this share of all, are no chance, however many matches
#: are wrong: of what agrees by chance, nothing moves together.
CERTAIN, NEARLY_ALL = 15, 0.6

#: Shuffled matches that are tried, unless so many places move together; and how many times as
#: many as the best of those there must be.
SHUFFLES, PLENTY, TIMES = 3, 50, 3

#: Samples that are drawn of shuffled matches, and of a rival, at most.
CHANCE_ITERATIONS = 2000

#: Of neighbours that move apart, the share that must look alike for a structure to be repeated:
#: 0.02 to 0.15 do in unrelated photographs, 0.3 to 0.9 on facades.
REPEATED = 0.25

#: What is left must have this share of the places of a geometry to be its rival, this share of
#: them in conflict with it: near its places (as a share of the diagonal) in one image alone.
RIVAL, CONFLICT, NEAR = 0.5, 0.5, 0.05

#: Share of the places of a geometry that look the same as others, from which a structure is
#: repeated: 0 to 0.05 in photographs, 0.95 and more where identical windows or bricks were drawn.
IDENTICAL = 0.5

#: The same where fewer than ``PLENTY`` places move together, and how near descriptors are then, as
#: :func:`mkdesc.matching.lookalikes.share_repeated` has it: 0.4 to 0.9 on windows lit or dark.
FEW_IDENTICAL, FEW_ALIKE = 0.4, 0.45

#: Fewer places off a plane are no depth where the plane has ``PLANE_SHARE`` of the matches: they
#: are a word or two that moved. In such pairs of deep scenes there are 16 and more.
DEEP_PLACES = 15

#: Share of what lies between the matches that looks different, from which the two are things of
#: one make: 0.04 at most in 284 pairs of photographs of one scene, 0.16 where drawings were seen
#: twice, 0.36 and more in different QR codes.
DIFFERENT = 0.3

#: Share of the neighbourhoods of an epipolar geometry that are turned over, from which one
#: photograph is mirrored: of photographs that are not, 0 to 0.03 are.
TURNED_OVER = 0.15


#: Share of the places of an epipolar geometry that may change order with others on their lines: 0
#: to 0.24 do in photographs of one scene, in most of them under 0.05; of random ones half do.
REVERSED = 0.25


class Verdict(NamedTuple):
    """What is believed, and why.

    Attributes
    ----------
    name
        ``"verified"``: they show the same. ``"ambiguous"``: matches agree, but on structure that
        repeats itself. ``"unverified"``: nothing says that they show the same.
    reason
        In words.
    places
        Distinct places that agree and move together.
    flat
        Whether all that speaks for depth may have moved on a plane: one may be believed instead.
    """

    name: str
    reason: str
    places: int = 0
    flat: bool = False


def judge(
    matches: FrameMatches,
    found: Estimate,
    options: TwoViewOptions,
    features: tuple[LocalFeatures, LocalFeatures] | None = None,
    believed: float = BELIEVED,
) -> Verdict:
    """Whether to believe a geometry.

    Parameters
    ----------
    matches
        All of them.
    found
        The geometry, and which of them agree with it.
    options
        What was asked for.
    features
        All that was found in either photograph, with the rows of the matches. Without them,
        identical things elsewhere in a photograph are not looked for.
    believed
        log10 of how often chance may make as many matches agree. Infinite: few matches are no
        reason, neither on a geometry nor off its plane.
    """
    if found.geometry is None:
        return Verdict(UNVERIFIED, "too few matches agree on one geometry")
    agree = f"{found.inliers.sum()} matches agree on one geometry"
    moving = _coherent_inliers(matches, found, options)
    count = moving.coherent
    certain = count >= max(CERTAIN, NEARLY_ALL * moving.places)
    if not certain and _false_alarms(matches, found, options) >= believed:
        return Verdict(UNVERIFIED, f"{agree}, no more than chance explains")
    if found.geometry != "homography" and _is_mirrored(matches, found, options, certain):
        return Verdict(
            UNVERIFIED,
            f"{agree}, but one photograph mirrors the other, which this geometry excludes",
        )
    flat = found.geometry == "homography"
    few = count < FEWEST or (not flat and count < MOST * moving.places)
    if few and moving.repeated >= REPEATED:
        return Verdict(
            AMBIGUOUS,
            f"ambiguous, repeated structure: {agree}, but similar neighbours map to "
            f"different places",
        )
    chance = _by_chance(matches, found, options) if not few and count < PLENTY else 0
    if few or count < TIMES * chance:
        return Verdict(UNVERIFIED, f"{agree}, but only {count} places move with their neighbours")
    apart = (_along_lines if flat else _moves_apart)(matches, found, options)
    if apart is not None:
        return apart
    rival = _rival(matches, found, options, count)
    if rival:
        return Verdict(
            AMBIGUOUS,
            f"ambiguous, repeated structure: {count} places agree on one geometry, "
            f"but {rival} of the same places also agree on another",
        )
    if features is not None:
        alike = _only_alike(matches, found, options, features, count)
        if alike is not None:
            return alike
        fewest = DEEP_PLACES if believed < math.inf else 0
        if not flat and not _is_deep(matches, found, options, features, fewest):
            return Verdict(
                AMBIGUOUS,
                f"ambiguous, repeated structure: {agree}, but what is off a plane is little, "
                "looks the same elsewhere, or was moved as a whole",
                flat=True,
            )
    return Verdict(VERIFIED, f"{count} places agree and move together", count)


def _is_deep(
    matches: FrameMatches,
    found: Estimate,
    options: TwoViewOptions,
    features: tuple[LocalFeatures, LocalFeatures],
    fewest: int,
) -> bool:
    """Whether an epipolar geometry is one of depth, as far as there is a plane to compare with."""
    agree = matches.take(found.inliers)
    plane = verify(agree, "homography", options)
    if plane.matrix is None:
        return True
    far = transfer_errors(plane.matrix, *agree.positions) > OFF_PLANE * options.threshold
    if far.sum() < DEPTH_SHARE * plane.inliers.sum():  # a plane, whatever was asked for
        return True
    off = agree.take(far)
    few = len(distinct_places(*off.positions, options.sizes)) < fewest
    if few and plane.inliers.sum() >= PLANE_SHARE * len(agree.a):
        return False
    return tells_of_depth(plane.matrix, off, features, options.sizes)


def _only_alike(
    matches: FrameMatches,
    found: Estimate,
    options: TwoViewOptions,
    features: tuple[LocalFeatures, LocalFeatures],
    count: int,
) -> Verdict | None:
    """What to say if what agrees is elsewhere, too, or what lies between differs; else None."""
    agree = matches.take(found.inliers)
    few = count < PLENTY
    share = share_repeated(features, agree, options.sizes, FEW_ALIKE if few else ALIKE)
    if share >= (FEW_IDENTICAL if few else IDENTICAL):
        return Verdict(
            AMBIGUOUS,
            f"ambiguous, repeated structure: {share:.0%} of what agrees looks the same "
            "elsewhere in one of the photographs",
        )
    return one_make(features, agree)


def one_make(features: tuple[LocalFeatures, LocalFeatures], agree: FrameMatches) -> Verdict | None:
    """What to say if what lies between matches that agree looks different; else None.

    Features of several kinds are not judged: they are nearly everywhere, and where one of them
    is missing there is another one, of something else.
    """
    if max(len(one.all_kinds()) for one in features) > 1:
        return None
    share = share_different(features, agree)
    if share < DIFFERENT:
        return None
    return Verdict(
        AMBIGUOUS,
        f"ambiguous, perhaps two things of one make: {share:.0%} of what lies between the matches "
        "that agree looks different",
    )


def _coherent_inliers(
    matches: FrameMatches, found: Estimate, options: TwoViewOptions
) -> Coherence:
    """How the matches that agree move together."""
    return coherence(_agreeing(matches, found, options), options.sizes)


def _along_lines(
    matches: FrameMatches, found: Estimate, options: TwoViewOptions
) -> Verdict | None:
    """What to say of a plane that has few of the matches along rows that repeat; None: nothing.

    ``geometry="auto"`` takes no such plane.
    """
    flat = int(found.inliers.sum())
    if options.geometry != "homography" or flat >= PLANE_SHARE * len(matches.a):
        return None
    deep = verify(matches, "fundamental", options)
    if deep.matrix is None or flat >= PLANE_SHARE * deep.inliers.sum():
        return None
    share = share_reversed(deep.matrix, *matches.take(deep.inliers).positions)
    if share < REVERSED:
        return None
    return Verdict(
        AMBIGUOUS,
        f"ambiguous, repeated structure: {flat} matches agree on a plane, but "
        f"{deep.inliers.sum()} on lines, along which {share:.0%} change their order",
    )


def _moves_apart(
    matches: FrameMatches, found: Estimate, options: TwoViewOptions
) -> Verdict | None:
    """What to say of an epipolar geometry whose far places do not move together; None: they do."""
    agree = _agreeing(matches, found, options)
    far = far_coherence(agree, options.sizes)
    if far.places >= FAR_PLACES and far.share < FAR_TOGETHER:
        said = f"of {far.places} places far from each other only {far.share:.0%} move together"
    else:
        matrix, _ = of_pixels(found, options)
        share = share_reversed(matrix, *agree.positions)
        if share < REVERSED:
            return None
        said = f"{share:.0%} of the places on an epipolar line change their order along it"
    if far.repeated < REPEATED:
        return Verdict(UNVERIFIED, said)
    return Verdict(AMBIGUOUS, f"ambiguous, repeated structure: {said}")


def _agreeing(matches: FrameMatches, found: Estimate, options: TwoViewOptions) -> FrameMatches:
    """The matches that agree with a geometry; those behind a camera do not."""
    agree = matches.take(found.inliers)
    if found.matrix is not None:
        matrix, kind = of_pixels(found, options)
        here, there = agree.positions
        if kind == "fundamental":
            agree = agree.take(in_front(matrix, here, there))
        elif mirrors(matrix, here):
            agree = agree.mirrored()
    return agree


def _is_mirrored(
    matches: FrameMatches, found: Estimate, options: TwoViewOptions, certain: bool
) -> bool:
    """Whether matches of an epipolar geometry are those of a mirror image.

    Either a homography that mirrors explains them, or neighbourhoods are turned over. Where it is
    certain that most places move together, the few that do not say nothing.
    """
    agree = matches.take(found.inliers)
    if certain:
        agree = agree.take(coherence(agree, options.sizes).support >= MAJORITY)
    places = distinct_places(*agree.positions, options.sizes)
    if share_turned_over(*(xy[places] for xy in agree.positions)) >= TURNED_OVER:
        return True
    return mirrored_homography(*agree.positions, options.threshold) is not None


def _false_alarms(matches: FrameMatches, found: Estimate, options: TwoViewOptions) -> float:
    """log10 of how often chance alone makes so many matches agree.

    In places alone, or in places and shapes: those of some detectors say little.
    """
    sample = SAMPLES[str(found.geometry)]
    flat = found.geometry == "homography"
    share = (disc_share if flat else strip_share)(options.threshold, *options.sizes)
    count, agree = len(found.inliers), int(found.inliers.sum())
    places = false_alarms(agree, count, share, sample)
    if found.matrix is None:
        return places
    matrix, _ = of_pixels(found, options)
    alike = (frames_agree if flat else frames_follow)(matrix, matches.a, matches.b)
    shapes = int((found.inliers & alike).sum())
    return min(places, false_alarms(shapes, count, SHAPE_BY_CHANCE * share, sample))


def _in_short(options: TwoViewOptions) -> TwoViewOptions:
    """The same with a search that is short: for what chance or a repetition may find."""
    search = replace(options.estimator, max_iterations=CHANCE_ITERATIONS)
    return options._replace(estimator=search)


def _by_chance(matches: FrameMatches, found: Estimate, options: TwoViewOptions) -> int:
    """The most places that move together when matches are shuffled and verified as they were."""
    rng = np.random.default_rng(0)
    options = _in_short(options)
    most = 0
    for _ in range(SHUFFLES):
        shuffled = matches._replace(b=matches.b[rng.permutation(len(matches.b))])
        other = verify(shuffled, str(found.geometry), options)
        most = max(most, _coherent_inliers(shuffled, other, options).coherent)
    return most


def _rival(matches: FrameMatches, found: Estimate, options: TwoViewOptions, coherent: int) -> int:
    """Places of another geometry that goes elsewhere from the same places; 0: there is none."""
    rest = matches.take(~found.inliers)
    least = max(FEWEST, RIVAL * coherent)
    if len(rest.a) < least:
        return 0
    other = verify(rest, str(found.geometry), _in_short(options))
    places = _coherent_inliers(rest, other, options).coherent if other.geometry else 0
    if places < least:
        return 0
    near = [
        distance_to_nearest(known, xy) < NEAR * np.hypot(*size)
        for known, xy, size in zip(
            matches.take(found.inliers).positions,
            rest.take(other.inliers).positions,
            options.sizes,
            strict=True,
        )
    ]
    return places if (near[0] != near[1]).mean() >= CONFLICT else 0

"""The table of checks: each compares one measure with one bound. docs/matching.md shows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from mkdesc.belief.evidence import Evidence

#: The verdicts there are.
VERIFIED, AMBIGUOUS, UNVERIFIED = "verified", "ambiguous", "unverified"

#: A plane is taken instead of depth, if one is believed; otherwise the next check decides.
PLANE = "plane"


class Check(NamedTuple):
    """One reason not to believe a geometry.

    Attributes
    ----------
    name
        Of what is checked.
    measure
        A number of the evidence.
    least, most
        The measure may not be below, or not above; None: no such bound.
    verdict
        Of a pair that fails.
    words
        What to tell people; ``{value}`` is the measure, ``{e}`` all the evidence.
    calibrated
        What the bound was set on, and what lies on both sides of it.
    of_depth
        Whether it speaks against depth alone: a plane may still be believed.
    mapping
        Whether a reconstruction needs it, too: there, other photographs speak about weak pairs.
    """

    name: str
    measure: Callable[[Evidence], float]
    verdict: str
    words: str
    calibrated: str
    least: float | None = None
    most: float | None = None
    of_depth: bool = False
    mapping: bool = False

    def fails(self, value: float) -> bool:
        """Whether a value of the measure is out of bounds."""
        return (self.least is not None and value < self.least) or (
            self.most is not None and value > self.most
        )


CHECKS = (
    Check(
        "agreement",
        lambda e: e.strength,
        UNVERIFIED,
        "{e.n_inliers} matches agree on one geometry, no more than chance explains",
        "data/photos at 1,024 px, 2,000 keypoints: 183 of 238 pairs of one scene are above, the "
        "highest of 3,000 others is at 6.6",
        least=6.9,
        mapping=True,
    ),
    Check(
        "beside an overlay",
        lambda e: e.strength if e.pair.n_overlaid else math.inf,
        UNVERIFIED,
        "{e.n_inliers} matches beside what lies over both photographs agree, too few to tell "
        "a scene from a word that both have",
        "goods of one brand: 10.2 at most; photographs of one scene under a logo: 13 in most",
        least=10.5,
    ),
    Check(
        "mirror image",
        lambda e: e.mirrored,
        UNVERIFIED,
        "one photograph mirrors the other",
        "nearest neighbours on a plane in a mirror, as a share of those on this geometry: 0.05 at "
        "most, 0.5 in a portrait and its mirror image",
        most=0.25,
        mapping=True,
    ),
    Check(
        "contradiction",
        lambda e: e.contradicted,
        AMBIGUOUS,
        "ambiguous: between the matches that agree, {value:.0%} of the keypoints fit the other "
        "photograph elsewhere, as in copies of one template, pieces that moved, or repeated "
        "structure",
        "data/photos: 0.06 at most in 183 pairs of one scene; 0.07 to 0.4 in two tables, sudokus, "
        "crosswords, pages of code, clouds of words",
        most=0.065,
        mapping=True,
    ),
    Check(
        "repeated structure",
        lambda e: e.repeated,
        AMBIGUOUS,
        "ambiguous, repeated structure: {value:.0%} of what agrees looks the same elsewhere in "
        "one of the photographs",
        "0 to 0.1 in photographs, 0.95 and more where identical windows or bricks were drawn, up "
        "to 0.9 in tables and charts that were seen twice",
        most=0.92,
        mapping=True,
    ),
    Check(
        "doubtful depth",
        lambda e: e.doubtful,
        AMBIGUOUS,
        "ambiguous, repeated structure: the matches are on no plane, {e.repeated:.0%} of them "
        "look the same elsewhere in one of the photographs, and {e.contradicted:.0%} of the "
        "keypoints between them contradict",
        "repeated share + twice the contradicting one. data/photos: 0.45 and less in 160 deep "
        "pairs, under 0.4 in all but one; 0.43 to 1 in two QR codes, plates, charts, calendars",
        most=0.4,
        of_depth=True,
        mapping=True,
    ),
    Check(
        "copies of one template",
        lambda e: e.different,
        AMBIGUOUS,
        "ambiguous, perhaps two copies of one template: {value:.0%} of what lies between the "
        "matches that agree looks different",
        "0.04 at most in 284 pairs of one scene, 0.36 and more in different QR codes",
        most=0.3,
    ),
    Check(
        "order",
        lambda e: e.reversed,
        PLANE,
        "ambiguous: {value:.0%} of the places on an epipolar line change their order along it",
        "two by two, places on one epipolar line that change their order: under 0.05 in most "
        "photographs of one scene, over 0.2 in 11 of 183; 0.23 where pictures changed places on a "
        "wall",
        most=0.2,
        of_depth=True,
        mapping=True,
    ),
)

"""The verdict on two photographs: the first check that fails decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mkdesc._support.check import check_choice
from mkdesc.belief.checks import AMBIGUOUS, CHECKS, PLANE, UNVERIFIED, VERIFIED
from mkdesc.belief.evidence import Evidence
from mkdesc.belief.pair import PhotoPair
from mkdesc.geometry.estimators.base import Estimate

#: How much is asked: by two photographs alone, by a reconstruction of many, or nothing.
BELIEFS = ("strict", "mapping", "off")


class Verdict(NamedTuple):
    """What is believed, and why.

    Attributes
    ----------
    name
        ``"verified"``: both show the same. ``"ambiguous"``: matches agree, but on something that
        occurs more than once. ``"unverified"``: nothing says that both show the same.
    reason
        For people.
    """

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class Judged:
    """A pair of photographs, the geometry that is believed, and the verdict.

    Attributes
    ----------
    pair
        The photographs and their matches.
    geometry
        What the inliers agree on; nothing unless the verdict is ``"verified"``.
    verdict
        What is believed, and why.
    """

    pair: PhotoPair
    geometry: Estimate
    verdict: Verdict


def judge(pair: PhotoPair, geometry: str = "auto", belief: str = "strict") -> Judged:
    """Whether to believe that two photographs show the same.

    Parameters
    ----------
    pair
        The photographs and their matches.
    geometry
        What matches must agree on; see :meth:`~mkdesc.belief.pair.PhotoPair.geometry`.
    belief
        ``"strict"``: all checks. ``"mapping"``: those that a reconstruction of many photographs
        needs. ``"off"``: none; matches need only agree on a geometry.
    """
    check_choice("belief", belief, BELIEFS)
    found = pair.geometry(geometry)
    verdict = _verdict(pair, found, belief)
    either = geometry == "auto" and found.geometry != "homography"
    if either and verdict.name in (AMBIGUOUS, PLANE):
        # What speaks against depth does not always speak against the plane.
        plane = pair.estimate("homography")
        flat = _verdict(pair, plane, belief)
        if flat.name == VERIFIED:
            found, verdict = plane, flat
    if verdict.name == PLANE:
        # Without a plane there must be depth, whatever changes its order. Where depth was asked
        # for, nobody can tell.
        verdict = _agreeing(pair, found) if either else Verdict(AMBIGUOUS, verdict.reason)
    kept = found if verdict.name == VERIFIED else pair.nothing()
    return Judged(pair, kept, with_overlay_note(verdict, pair.n_overlaid))


def _verdict(pair: PhotoPair, found: Estimate, belief: str) -> Verdict:
    if found.matrix is None:
        return Verdict(UNVERIFIED, "too few matches agree on one geometry")
    evidence = Evidence(pair, found)
    for check in CHECKS:
        if belief == "off" or (belief == "mapping" and not check.mapping):
            continue
        value = check.measure(evidence)
        if check.fails(value):
            return Verdict(check.verdict, check.words.format(value=value, e=evidence))
    return _agreeing(pair, found)


def _agreeing(pair: PhotoPair, found: Estimate) -> Verdict:
    evidence = Evidence(pair, found)
    where = f"{evidence.n_cells} parts of the photographs"
    return Verdict(VERIFIED, f"{evidence.n_inliers:,} matches in {where} agree")


def with_overlay_note(verdict: Verdict, n_overlaid: int) -> Verdict:
    """A verdict that also tells of matches on an overlay."""
    if not n_overlaid:
        return verdict
    said = f"{n_overlaid} matches on an overlay, such as a logo, a date or a frame, do not count"
    return verdict._replace(reason=f"{verdict.reason}; {said}")

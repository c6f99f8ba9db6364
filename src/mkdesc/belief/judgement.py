"""The verdict on two photographs: the first check that fails decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mkdesc._support.check import check_choice
from mkdesc.belief.checks import AMBIGUOUS, CHECKS, PLANE, UNVERIFIED, VERIFIED, Check
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
    failed = _first_failed(pair, found, belief)
    either = geometry == "auto" and found.geometry != "homography"
    if either and failed is not None and failed.of_depth:
        plane = pair.estimate("homography")
        if plane.matrix is not None and _first_failed(pair, plane, belief) is None:
            found, failed = plane, None
        elif failed.verdict == PLANE:  # without a plane there must be depth
            failed = None
    verdict = _verdict(pair, found, failed)
    kept = found if verdict.name == VERIFIED else pair.nothing()
    return Judged(pair, kept, with_overlay_note(verdict, pair.n_overlaid))


def _first_failed(pair: PhotoPair, found: Estimate, belief: str) -> Check | None:
    """The first check that a geometry fails; None: it is believed, if there is one."""
    if found.matrix is None:
        return None
    evidence = Evidence(pair, found)
    for check in CHECKS:
        asked = belief == "strict" or (belief == "mapping" and check.mapping)
        if asked and check.fails(check.measure(evidence)):
            return check
    return None


def _verdict(pair: PhotoPair, found: Estimate, failed: Check | None) -> Verdict:
    if found.matrix is None:
        return Verdict(UNVERIFIED, "too few matches agree on one geometry")
    evidence = Evidence(pair, found)
    if failed is None:
        where = f"{evidence.n_cells} parts of the photographs"
        return Verdict(VERIFIED, f"{evidence.n_inliers:,} matches in {where} agree")
    name = AMBIGUOUS if failed.verdict == PLANE else failed.verdict
    return Verdict(name, failed.words.format(value=failed.measure(evidence), e=evidence))


def with_overlay_note(verdict: Verdict, n_overlaid: int) -> Verdict:
    """A verdict that also tells of matches on an overlay."""
    if not n_overlaid:
        return verdict
    said = f"{n_overlaid} matches on an overlay, such as a logo, a date or a frame, do not count"
    return verdict._replace(reason=f"{verdict.reason}; {said}")

"""Matching photographs taken from widely different viewpoints: views on demand, cheap ones first.

Each level looks at both photographs from further aside, adds what it sees to what was seen
before, grows all of its tentative matches and asks whether a geometry is believed (views on
demand as in MODS: Mishkin, Matas, Perdoch, 2015).
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress, no_progress
from mkdesc.belief.checks import AMBIGUOUS, UNVERIFIED, VERIFIED
from mkdesc.belief.judgement import Judged, Verdict, judge, with_overlay_note
from mkdesc.features.features import Features
from mkdesc.features.growing_pair import GrownPair, grow_pair
from mkdesc.features.view_features import features_in_views
from mkdesc.matching.frame_matches import LocalFeatures, join_features
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import Pyramid
from mkdesc.matching.two_view_geometry import TwoViewOptions
from mkdesc.matching.two_views import tentative_matches

#: Tilts of the views of one level after the other; 1: the photographs themselves.
TILTS = (1.0, 3.0, 6.0, 9.0)

#: Ratio of tentative matches.
RATIO = 0.85

#: Tentative matches to grow from, at most: those that stand out most.
MAX_TENTATIVE = 1500

Images = tuple[NDArray[np.uint8], NDArray[np.uint8]]
Both = tuple[LocalFeatures, LocalFeatures]


class FoundWide(NamedTuple):
    """What a search over views found.

    Attributes
    ----------
    grown
        The matches of the last level.
    judged
        What is believed.
    """

    grown: GrownPair
    judged: Judged


def match_wide(
    images: Images,
    pyramids: tuple[Pyramid, Pyramid],
    features: Features,
    options: TwoViewOptions,
    belief: str,
    how: GrowOptions,
    most: int,
    threads: int,
    progress: Progress = no_progress,
    limit: float = float("inf"),
) -> FoundWide:
    """Match two photographs from wherever they were taken.

    Parameters
    ----------
    images, pyramids
        Gray (H, W), uint8.
    features
        What describes; of one thread.
    options, belief, how
        What is asked of them, how much evidence, and what growing accepts.
    most
        Keypoints of a kind in a photograph, at most; views have their share of it.
    threads
        Views at a time.
    progress
        Called with how many views are done.
    limit
        Seconds after which no more views are tried.

    Returns
    -------
    FoundWide
        If nothing is believed, the matches are those of the last level, and the verdict is that
        of a level that was ambiguous, if there is one.
    """
    end = time.monotonic() + limit
    known: list[Both] = []
    result: FoundWide | None = None
    ambiguous: Verdict | None = None
    for tilt in TILTS:
        found = _look(images, tilt, features, most, threads, progress, end)
        if found is None:
            assert result is not None  # the first level is always tried
            reason = f"not all views were tried: the time limit of {limit:g} s was over"
            over = result.judged.pair.n_overlaid
            result = _with_verdict(result, with_overlay_note(Verdict(UNVERIFIED, reason), over))
            break
        known.append(found)
        progress("matching what was seen", 0, 0)
        firsts, seconds = zip(*known, strict=True)
        seen = join_features(firsts), join_features(seconds)
        tentative = tentative_matches(*seen, RATIO).take(slice(MAX_TENTATIVE))
        grown = grow_pair(pyramids, seen, tentative, options, how, threads)
        result = FoundWide(grown, judge(grown.pair, options.geometry, belief))
        verdict = result.judged.verdict
        if verdict.name == VERIFIED:
            return result
        if verdict.name == AMBIGUOUS:
            ambiguous = verdict
        if not all(len(one.frames) for one in seen):
            break  # of nothing there are no views either
    assert result is not None
    return result if ambiguous is None else _with_verdict(result, ambiguous)


def _with_verdict(found: FoundWide, verdict: Verdict) -> FoundWide:
    pair = found.grown.pair
    return FoundWide(found.grown, Judged(pair, pair.nothing(), verdict))


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

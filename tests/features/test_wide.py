"""Looking from aside: how far, in which order, and that rows stay rows of what was seen."""

from dataclasses import replace
from itertools import pairwise

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.belief.checks import AMBIGUOUS, UNVERIFIED, VERIFIED
from mkdesc.belief.judgement import Verdict
from mkdesc.features import wide
from mkdesc.matching.frame_matches import LocalFeatures
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import make_pyramid
from mkdesc.matching.two_view_geometry import TwoViewOptions

SIZE = (120, 160)
IMAGES = (np.zeros(SIZE, np.uint8), np.zeros(SIZE, np.uint8))
OPTIONS = TwoViewOptions((SIZE, SIZE))
PYRAMIDS = tuple(map(make_pyramid, IMAGES))


def search(**options):
    return wide.match_wide(
        *(IMAGES, PYRAMIDS, None, OPTIONS, "strict", GrowOptions(), 100, 1), **options
    )


@pytest.fixture
def looked_at(monkeypatch):
    """The tilts that are looked at, of photographs in which something different is seen each."""
    tilts, rng = [], np.random.default_rng(0)

    def see(gray, tilt, features, most, threads, tell):
        tilts.append(tilt)
        tell(1, 1)
        frames = np.zeros((20, 2, 3)) + 5 * np.eye(2, 3)
        frames[:, :, 2] = rng.uniform(0, 120, (20, 2))
        described = rng.normal(size=(20, 16)).astype(np.float32)
        return LocalFeatures(frames, described, np.zeros(20, np.uint8))

    monkeypatch.setattr(wide, "features_in_views", see)
    return tilts


def test_the_photographs_come_first_and_no_slant_is_left_out(looked_at):
    """A view helps up to twice its tilt, or half of it: together they reach beyond 80 degrees."""
    found = search()
    assert found.judged.verdict.name == UNVERIFIED
    tilts = looked_at[::2]
    assert looked_at[1::2] == tilts  # both photographs
    assert tilts[0] == 1
    assert all(1 < high / low < 4 for low, high in pairwise(tilts))
    assert tilts[-1] > 1 / np.cos(np.deg2rad(80))
    assert len(found.grown.pair.features[0].frames) == 20 * len(tilts)  # all of it is matched


def test_when_the_time_is_over_no_more_is_tried(looked_at):
    found = search(limit=1e-9)
    assert looked_at[:2] == [1, 1]  # the photographs themselves are always looked at
    assert len(looked_at) == 3
    assert found.judged.verdict.name == UNVERIFIED
    assert "time limit of 1e-09 s was over" in found.judged.verdict.reason


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([UNVERIFIED, VERIFIED], (VERIFIED, 2)),
        ([AMBIGUOUS, VERIFIED], (VERIFIED, 2)),
        ([AMBIGUOUS, UNVERIFIED, UNVERIFIED, UNVERIFIED], (AMBIGUOUS, 4)),
        ([UNVERIFIED] * 4, (UNVERIFIED, 4)),
    ],
)
def test_what_is_believed_ends_it_and_doubts_are_kept(looked_at, monkeypatch, levels, expected):
    monkeypatch.setattr(wide, "TILTS", (1.0, 2.0, 4.0, 8.0))
    judge = wide.judge

    def as_told(*arguments):
        name = levels[len(looked_at) // 2 - 1]
        return replace(judge(*arguments), verdict=Verdict(name, name))

    monkeypatch.setattr(wide, "judge", as_told)
    found = search()
    assert (found.judged.verdict.name, len(looked_at) // 2) == expected


def texture(seed, shape=(200, 260)):
    rng = np.random.default_rng(seed)
    noise = sum(cv2.GaussianBlur(rng.normal(size=shape), (0, 0), s) * s for s in (1.5, 3, 6))
    return cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)


def test_pairs_are_rows_of_all_that_was_seen():
    image = texture(0)
    squeeze = np.array([[0.4, 0, 60], [0, 1.2, -20], [0, 0, 1.0]])
    blurred = cv2.GaussianBlur(image, (0, 0), sigmaX=1.5, sigmaY=0.01)
    other = cv2.warpPerspective(blurred, squeeze, (260, 200))
    found = mkdesc.match_images(image, other, mkdesc.Features(200), wide=True)
    assert found.verified
    rows = found.pairs[(found.pairs >= 0).all(axis=1)]
    assert rows.max(axis=0).tolist() < [len(found.keypoints_a), len(found.keypoints_b)]
    off = cv2.perspectiveTransform(found.points_a[None], squeeze)[0] - found.points_b
    assert (np.linalg.norm(off[found.inliers], axis=1) < 2).mean() > 0.95

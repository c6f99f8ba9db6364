"""Looking from aside: how far, in which order, and that rows stay rows of what was seen."""

from itertools import pairwise

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.features import wide
from mkdesc.matching.frame_matches import LocalFeatures
from mkdesc.matching.judging import AMBIGUOUS, UNVERIFIED, VERIFIED, Verdict
from mkdesc.matching.two_view_geometry import TwoViewOptions

SIZE = (120, 160)
IMAGES = (np.zeros(SIZE, np.uint8), np.zeros(SIZE, np.uint8))
OPTIONS = TwoViewOptions((SIZE, SIZE))


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
    found = wide.match_wide(IMAGES, None, OPTIONS, 100, 1)
    assert found.verdict.name == UNVERIFIED
    tilts = looked_at[::2]
    assert looked_at[1::2] == tilts  # both photographs
    assert tilts[0] == 1
    assert all(1 < high / low < 4 for low, high in pairwise(tilts))
    assert tilts[-1] > 1 / np.cos(np.deg2rad(80))
    assert len(found.features[0].frames) == 20 * len(tilts)  # all of it is matched


def test_when_the_time_is_over_no_more_is_tried(looked_at):
    found = wide.match_wide(IMAGES, None, OPTIONS, 100, 1, limit=1e-9)
    assert looked_at[:2] == [1, 1]  # the photographs themselves are always looked at
    assert len(looked_at) == 3
    assert found.verdict.name == UNVERIFIED
    assert "time limit of 1e-09 s was over" in found.verdict.reason


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
    judged = wide._judged

    def judge(*arguments):
        name = levels[len(looked_at) // 2 - 1]
        return judged(*arguments)._replace(verdict=Verdict(name, name))

    monkeypatch.setattr(wide, "_judged", judge)
    found = wide.match_wide(IMAGES, None, OPTIONS, 100, 1)
    assert (found.verdict.name, len(looked_at) // 2) == expected


def texture(seed, shape=(200, 260)):
    rng = np.random.default_rng(seed)
    noise = sum(cv2.GaussianBlur(rng.normal(size=shape), (0, 0), s) * s for s in (1.5, 3, 6))
    return cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)


def test_pairs_are_rows_of_all_that_was_seen():
    """What both photographs show side by side comes after what was seen in either."""
    image = texture(0)
    squeeze = np.array([[0.4, 0, 60], [0, 1.2, -20], [0, 0, 1.0]])
    blurred = cv2.GaussianBlur(image, (0, 0), sigmaX=1.5, sigmaY=0.01)
    other = cv2.warpPerspective(blurred, squeeze, (260, 200))
    found = mkdesc.match_images(image, other, mkdesc.Features(200), wide=True)
    assert found.geometry == "homography"  # not all that matches off a plane would agree on
    assert "wide" in found.timings
    np.testing.assert_array_equal(found.keypoints_a[found.pairs[:, 0], :2], found.points_a)
    np.testing.assert_array_equal(found.keypoints_b[found.pairs[:, 1], :2], found.points_b)
    off = cv2.perspectiveTransform(found.points_a[None], squeeze)[0] - found.points_b
    assert (np.linalg.norm(off[found.inliers], axis=1) < 4).mean() > 0.95

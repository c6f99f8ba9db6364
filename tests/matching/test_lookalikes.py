"""Identical windows, drawn: whatever agrees, nobody can say which window is which."""

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.features.image_pair import match_images
from mkdesc.images.frames import frames_from_points
from mkdesc.matching.frame_matches import FrameMatches, plain_features
from mkdesc.matching.lookalikes import share_repeated


def window(rng, side=64):
    drawn = np.full((side, side), 90, np.uint8)
    cv2.rectangle(drawn, (6, 4), (side - 8, side - 6), 30, -1)
    cv2.line(drawn, (side // 2, 4), (side // 2, side - 6), 200, 3)
    for x, y in rng.integers(8, side - 10, (12, 2)).tolist():
        cv2.circle(drawn, (x, y), int(rng.integers(1, 4)), int(rng.integers(0, 255)), -1)
    return drawn


def facade(rng, same):
    """Six rows of twelve windows, 96 px apart; all the same, or each another one."""
    wall = np.full((6 * 96, 12 * 96), 150, np.float32)
    only = window(rng)
    for y in range(16, wall.shape[0], 96):
        for x in range(16, wall.shape[1], 96):
            wall[y : y + 64, x : x + 64] = only if same else window(rng)
    return wall


def seen(rng, wall, left, noise):
    view = cv2.GaussianBlur(wall[:, left : left + 700], (0, 0), 0.7)
    return np.clip(view + rng.normal(0, noise, view.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("geometry", ["auto", "homography"])
@pytest.mark.parametrize(("shift", "noise"), [(192, 0), (205, 1), (328, 3)])
def test_a_shift_of_a_regular_facade_is_not_believed(geometry, shift, noise):
    rng = np.random.default_rng(0)
    wall = facade(rng, same=True)
    views = [seen(rng, wall, left, noise) for left in (0, shift)]
    found = match_images(*views, mkdesc.Features(2000), geometry=geometry)
    assert found.verdict != "verified"


def another_facade(seed):
    """A facade of the same windows in a layout of its own, seen a little from aside."""
    rng = np.random.default_rng(seed)
    wall = (170 + rng.normal(0, 3, (700, 900))).astype(np.uint8)
    for x in range(40 + int(rng.integers(0, 60)), 840, int(rng.integers(80, 130))):
        for y in range(30 + int(rng.integers(0, 60)), 620, int(rng.integers(110, 150))):
            cv2.rectangle(wall, (x, y), (x + 45, y + 70), 60, -1)
            cv2.rectangle(wall, (x, y), (x + 45, y + 70), 240, 3)
            cv2.line(wall, (x + 22, y), (x + 22, y + 70), 240, 3)
            cv2.line(wall, (x, y + 25), (x + 45, y + 25), 240, 3)
    corners = np.array([[0, 0], [900, 0], [900, 700], [0, 700]], np.float32)
    moved = corners + np.outer([1, 1, -1, -1], [0, 1]) * rng.integers(0, 60, (4, 1))
    aside = cv2.getPerspectiveTransform(corners, moved.astype(np.float32))
    return cv2.warpPerspective(wall, aside, (900, 700), borderMode=cv2.BORDER_REPLICATE)


def test_facades_of_the_same_windows_are_not_one_facade():
    found = match_images(another_facade(3), another_facade(5), mkdesc.Features(2000))
    assert found.verdict != "verified"


def test_a_facade_of_windows_that_differ_is_believed():
    rng = np.random.default_rng(0)
    wall = facade(rng, same=False)
    views = [seen(rng, wall, left, noise=3) for left in (0, 328)]
    found = match_images(*views, mkdesc.Features(1000))
    moved = (found.points_a - found.points_b)[found.inliers]
    np.testing.assert_allclose(np.median(moved, axis=0), [328, 0], atol=0.1)


def test_how_much_is_repeated_does_not_depend_on_how_descriptors_are_kept():
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(0, 500, (60, 2)), np.full(60, 2.0), np.zeros(60)])
    unit = rng.normal(size=(60, 64))
    unit[20:40] = unit[:20] + rng.normal(0, 0.01, (20, 64))  # twenty things are there twice
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    rows = np.repeat(np.arange(60)[:, None], 2, axis=1)
    for kept in (unit, unit * 512, np.rint(256 * unit + 128).astype(np.uint8)):
        features = plain_features(frames_from_points(points), kept)
        matches = FrameMatches.of(features, features, rows, np.zeros(60, np.float32))
        # Places that are near others are one, so a few of the sixty are not counted.
        share = share_repeated((features, features), matches, ((500, 500), (500, 500)))
        assert share == pytest.approx(40 / 60, abs=0.05)


def test_windows_that_are_lit_or_dark_are_not_one_tower():
    """Groups of them look alike elsewhere, at other windows, and few agree on a shift."""
    verdicts = []
    for number in range(6):
        rng = np.random.default_rng(number)
        towers = [_photographed(rng, _tower(rng)) for _ in range(2)]
        verdicts.append(match_images(*towers).verdict)
    assert "verified" not in verdicts


def _tower(rng):
    drawn = np.full((900, 1100), 25, np.uint8)
    for row, column in np.ndindex(16, 18):
        x, y = 80 + 53 * column, 50 + 52 * row
        light = int(rng.integers(150, 230)) if rng.random() < 0.45 else 42
        cv2.rectangle(drawn, (x, y), (x + 32, y + 38), light, -1)
        cv2.line(drawn, (x + 16, y), (x + 16, y + 38), 20, 2)
    return drawn


def _photographed(rng, drawn):
    noisy = cv2.GaussianBlur(drawn, (0, 0), 0.7) + rng.normal(0, 3, drawn.shape)
    _, data = cv2.imencode(".jpg", np.clip(noisy, 0, 255), [cv2.IMWRITE_JPEG_QUALITY, 75])
    return cv2.imdecode(data, cv2.IMREAD_GRAYSCALE)

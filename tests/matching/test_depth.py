"""Depth that is not there: printed things that differ or moved, on the plane of one layout."""

from pathlib import Path

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc import images
from mkdesc.images import read_gray
from mkdesc.matching.depth import tells_of_depth
from mkdesc.matching.frame_matches import FrameMatches, plain_features

CORNERS = np.array([[0, 0], [800, 0], [800, 600], [0, 600]], np.float32)


def write(drawn, text, where, size):
    cv2.putText(drawn, text, where, cv2.FONT_HERSHEY_TRIPLEX, size, 20, 2, cv2.LINE_AA)


def chart(rng):
    """Bars of other heights, on the same axes: their tops move along one direction."""
    drawn = np.full((600, 800), 250, np.uint8)
    write(drawn, "Revenue by quarter (million)", (130, 50), 0.9)
    for k in range(11):
        cv2.line(drawn, (90, 520 - 42 * k), (760, 520 - 42 * k), 200, 1)
        write(drawn, f"{10 * k}", (40, 526 - 42 * k), 0.5)
    for k in range(8):
        x, top = 110 + 80 * k, int(rng.uniform(110, 490))
        cv2.rectangle(drawn, (x, top), (x + 50, 520), 90 + 20 * (k % 3), -1)
        cv2.rectangle(drawn, (x, top), (x + 50, 520), 20, 2)
        write(drawn, f"{(520 - top) / 4.2:.1f}", (x, top - 8), 0.5)
        write(drawn, f"Q{k % 4 + 1} {2024 + k // 4}", (x - 8, 545), 0.4)
    return drawn


def slide(rng):
    """Other words on the same template, along the same lines."""
    drawn = np.full((600, 800), 250, np.uint8)
    for y in (0, 560):
        cv2.rectangle(drawn, (0, y), (800, y + 80), 60, -1)
    cv2.putText(drawn, "Institute of Applied Optics", (20, 52), cv2.FONT_HERSHEY_TRIPLEX, 1, 240)
    for row in range(6):
        y = 150 + 68 * row
        cv2.circle(drawn, (50, y - 8), 7, 60, -1)
        words = "".join(rng.choice(list("etaoinshrdlucmfwypvbgk      "), 38))
        cv2.putText(drawn, words, (75, y), cv2.FONT_HERSHEY_SIMPLEX, 0.9, 20, 2, cv2.LINE_AA)
    return drawn


def textures(count, shape):
    rng = np.random.default_rng(5)
    noise = [cv2.GaussianBlur(rng.random(shape), (0, 0), 1.5) for _ in range(count)]
    return [cv2.normalize(one, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8) for one in noise]


def wall(order):
    """Framed pictures, in this order."""
    drawn = np.full((600, 800), 190, np.uint8)
    pictures = textures(6, (200, 200))
    for place, which in enumerate(order):
        y, x = 60 + 270 * (place // 3), 60 + 240 * (place % 3)
        cv2.rectangle(drawn, (x - 8, y - 8), (x + 207, y + 207), 60, -1)
        drawn[y : y + 200, x : x + 200] = pictures[which]
    return drawn


def seen(rng, drawn, far):
    """The drawing as a camera sees it, and the homography that brings it there."""
    moved = CORNERS + rng.uniform(-far, far, (4, 2)).astype(np.float32)
    matrix = cv2.getPerspectiveTransform(CORNERS, moved)
    view = cv2.warpPerspective(drawn, matrix, (800, 600), borderMode=cv2.BORDER_REPLICATE)
    noisy = cv2.GaussianBlur(view, (0, 0), 0.7) + rng.normal(0, 2, view.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8), matrix


def pairs(draw, far):
    """Pairs of two drawings of one layout, with the homography of the layout."""
    for number in range(6):
        rng = np.random.default_rng(number)
        (a, one), (b, other) = (seen(rng, draw(rng), far) for _ in range(2))
        yield a, b, other @ np.linalg.inv(one)


@pytest.mark.parametrize("far", [8, 60])
@pytest.mark.parametrize("draw", [chart, slide])
def test_what_differs_on_one_layout_is_no_depth(draw, far):
    for a, b, layout in pairs(draw, far):
        found = mkdesc.match_images(a, b)
        if found.verified:
            here, there = found.points_a[found.inliers], found.points_b[found.inliers]
            off = np.linalg.norm(cv2.perspectiveTransform(here[None], layout)[0] - there, axis=1)
            assert (off > 8).mean() < 0.05


def test_depth_that_was_asked_for_is_ambiguous():
    said = []
    for a, b, _ in pairs(chart, 8):
        found = mkdesc.match_images(a, b, geometry="fundamental")
        assert found.verdict != "verified"
        said.append(found.reason)
    assert any("on no plane" in reason for reason in said)


@pytest.mark.parametrize("far", [8, 60])
def test_pictures_that_changed_places_are_a_plane(far):
    rng = np.random.default_rng(1)
    a, _ = seen(rng, wall([0, 1, 2, 3, 4, 5]), far)
    b, _ = seen(rng, wall([1, 0, 2, 4, 3, 5]), far)
    found = mkdesc.match_images(a, b)
    assert found.geometry == "homography"


def test_a_curved_thing_before_a_plane_has_depth():
    wall, thing = textures(2, (600, 800))
    views = []
    for side in (-1, 1):
        x, y = np.meshgrid(np.arange(800, dtype=np.float32), np.arange(600, dtype=np.float32))
        nearer = side * 15 * (1 + np.cos((x - 400) / 130)) * (abs(x - 400) < 200)
        before = cv2.remap(thing, x + nearer, y, cv2.INTER_LINEAR)
        views.append(np.where((abs(x - 400) < 180) & (abs(y - 300) < 200), before, wall))
    found = mkdesc.match_images(*views)
    assert found.geometry == "fundamental"


def test_what_occurs_once_and_bends_tells_of_depth(rng):
    frames = np.zeros((60, 2, 3)) + 4 * np.eye(2, 3)
    frames[:, :, 2] = rng.uniform(0, 300, (60, 2))
    there = frames.copy()
    there[:, 0, 2] += 60 + frames[:, 0, 2] / 5
    numbers = rng.normal(size=(60, 32))
    both = plain_features(frames, numbers), plain_features(there, numbers)
    rows = np.repeat(np.arange(0, 60, 2)[:, None], 2, axis=1)
    sizes = (300, 400), (300, 400)
    off = FrameMatches.of(*both, rows, np.zeros(30, np.float32))
    assert tells_of_depth(np.eye(3), off, both, sizes)
    twice = numbers.copy()
    twice[1::2] = twice[::2]  # each thing is seen once more, elsewhere
    repeated = both[0]._replace(descriptors=twice), both[1]
    assert not tells_of_depth(np.eye(3), off, repeated, sizes)
    there[:, 0, 2] = frames[:, 0, 2] + 60
    moved = both[0], plain_features(there, numbers)
    off = FrameMatches.of(*moved, rows, np.zeros(30, np.float32))
    assert not tells_of_depth(np.eye(3), off, moved, sizes)


@pytest.mark.parametrize("length", [9, 15])
@pytest.mark.parametrize("name", ["street_a", "street_b", "town_a", "town_b", "portrait"])
def test_what_motion_blurs_is_no_depth(name, length):
    """Blurred along 27 px, everything is seen somewhere along 27 px: on an epipolar line."""
    photograph = read_gray(Path(images.__file__).parent / "photographs" / f"{name}.jpg")
    line = np.zeros((length, length), np.float32)
    cv2.line(line, (0, length // 3), (length - 1, 2 * length // 3), 1)
    noise = np.random.default_rng(0).normal(0, 2, photograph.shape)
    blurred = cv2.filter2D(photograph.astype(float), -1, line / line.sum()) + noise
    found = mkdesc.match_images(photograph, np.clip(blurred, 0, 255).astype(np.uint8))
    assert found.geometry in (None, "homography")

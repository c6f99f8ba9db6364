"""Photographs of noise, with a logo or a frame over them: what lies over both proves nothing."""

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.features.image_pair import match_images
from mkdesc.matching.frame_matches import FrameMatches, plain_features
from mkdesc.matching.overlays import overlaid

SIZE = (480, 640)
#: A turn about the middle of the image, and a zoom.
TURN = np.vstack([cv2.getRotationMatrix2D((320, 240), 15, 1.1), [0, 0, 1]])


def scene(seed, matrix=None):
    """Blobs of noise of several sizes; seen through a homography."""
    rng = np.random.default_rng(seed)
    noise = sum(cv2.GaussianBlur(rng.normal(size=SIZE), (0, 0), s) * s for s in (1.5, 3, 6))
    image = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
    if matrix is None:
        return image
    return cv2.warpPerspective(image, matrix, SIZE[::-1], borderMode=cv2.BORDER_REFLECT)


def with_logo(image, x=400, y=370):
    image = image.copy()
    image[y : y + 90, x : x + 220] = scene(99)[:90, :220]
    return image


def with_frame(image):
    framed = scene(98)
    framed[40:-40, 40:-40] = image[40:-40, 40:-40]
    return framed


def matched(a, b, **options):
    return match_images(a, b, mkdesc.Features(1000), **options)


@pytest.mark.parametrize(
    ("over", "wide"), [(with_logo, False), (with_frame, False), (with_logo, True)]
)
def test_strangers_with_the_same_logo_or_frame_are_strangers(over, wide):
    found = matched(over(scene(0)), over(scene(1)), wide=wide, limit=1e-3)
    assert found.verdict == "unverified"
    assert "on an overlay, such as a logo" in found.reason


@pytest.mark.parametrize(("over", "wide"), [(with_frame, False), (with_logo, True)])
def test_noise_moves_some_of_it(over, wide):
    """What is left of a frame that noise moved by a pixel or two is no scene either."""
    rng = np.random.default_rng(5)
    for seed in range(1, 5):
        a, b = (
            np.clip(over(scene(k)) + rng.normal(0, 20, SIZE), 0, 255).astype(np.uint8)
            for k in (0, seed)
        )
        assert matched(a, b, wide=wide, limit=1e-3).verdict == "unverified"


def test_a_logo_is_known_by_its_corner_where_sizes_differ():
    small = scene(1)[:400, :560]
    found = matched(with_logo(scene(0)), with_logo(small, 560 - 240, 400 - 110))
    assert found.verdict == "unverified"
    assert "on an overlay" in found.reason


@pytest.mark.parametrize("over", [with_logo, with_frame])
def test_one_scene_under_the_same_logo_or_frame_is_found(over):
    found = matched(over(scene(0)), over(scene(0, TURN)))
    assert found.verdict == "verified"
    expected = cv2.perspectiveTransform(found.points_a[found.inliers][None], TURN)[0]
    assert np.linalg.norm(found.points_b[found.inliers] - expected, axis=1).max() < 4


def test_what_a_camera_that_stands_still_sees_is_believed():
    still = scene(0)
    still[:, :300] = scene(1)[:, :300]  # nearly half of it is new
    found = matched(scene(0), still)
    assert found.verdict == "verified"
    moved = (found.points_b - found.points_a)[found.inliers]
    np.testing.assert_allclose(np.median(moved, axis=0), 0, atol=0.01)


@pytest.mark.parametrize("rows", [slice(0, 160), slice(-160, None)])
def test_a_piece_from_the_corner_of_a_photograph_is_found_in_it(rows):
    """It does not move either, and has most of its keypoints where the whole has none."""
    found = matched(scene(0), scene(0)[rows, :200])
    assert found.verdict == "verified"
    moved = (found.points_b - found.points_a)[found.inliers]
    np.testing.assert_allclose(np.median(moved, axis=0), [0, -(rows.start % 480)], atol=0.1)


def test_a_logo_in_another_place_is_a_thing_that_both_show():
    found = matched(with_logo(scene(0)), with_logo(scene(1), 30, 20))
    assert found.verdict == "verified"
    moved = (found.points_b - found.points_a)[found.inliers]
    np.testing.assert_allclose(np.median(moved, axis=0), [-370, -350], atol=0.1)


@pytest.mark.parametrize(("around", "expected"), [(0, 30), (30, 0)])
def test_what_moves_a_little_around_it_is_no_overlay(around, expected):
    """Far away nothing moves, a little nearer a little: that is what a camera sees."""
    rng = np.random.default_rng(0)
    here = rng.uniform(0, 640, (1000, 2))
    there = here + rng.uniform(50, 200, here.shape)
    corner = rng.uniform(0, 100, (30 + around, 2))
    here[: 30 + around], there[: 30 + around] = corner, corner
    there[30 : 30 + around] += 2
    frames = [np.dstack([np.tile(8 * np.eye(2), (1000, 1, 1)), xy]) for xy in (here, there)]
    features = [plain_features(one, np.zeros((1000, 8))) for one in frames]
    rows = np.repeat(np.arange(1000)[:, None], 2, axis=1)
    matches = FrameMatches.of(*features, rows, np.zeros(1000, np.float32))
    found = overlaid(tuple(features), matches, ((640, 640), (840, 840)))
    assert found.sum() == expected
    assert not found[30:].any()


def package(rng):
    """A brand, a picture, and how much it weighs."""
    drawn = np.full((800, 600), 70, np.uint8)
    cv2.ellipse(drawn, (300, 150), (190, 100), 0, 0, 360, 250, -1)
    cv2.putText(drawn, "BELLINI", (165, 165), cv2.FONT_HERSHEY_TRIPLEX, 2, 40, 3, cv2.LINE_AA)
    cv2.putText(drawn, "since 1921", (230, 215), cv2.FONT_HERSHEY_COMPLEX, 0.8, 20, 1, cv2.LINE_AA)
    picture = cv2.GaussianBlur(rng.random((350, 500)), (0, 0), 2.0)
    drawn[270:620, 50:550] = cv2.normalize(picture, None, 0, 255, cv2.NORM_MINMAX)
    weight = f"{125 * rng.integers(1, 10)} gramme"
    cv2.putText(drawn, weight, (60, 740), cv2.FONT_HERSHEY_TRIPLEX, 1.4, 240, 2, cv2.LINE_AA)
    noisy = drawn + rng.normal(0, 2, drawn.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8)


def test_one_word_beside_a_layout_is_no_scene():
    """Other goods of one brand: the layout does not count, and a unit is not what they show."""
    for number in range(8):
        rng = np.random.default_rng(number)
        found = match_images(package(rng), package(rng))
        assert not found.verified

"""Pyramids against SciPy's filters, and what is refused."""

import cv2
import numpy as np
import pytest
from scipy.ndimage import correlate1d

from mkdesc.matching.growing.pyramid import Pyramid, make_pyramid, taps_of


def blurred(image, sigma, reach):
    for axis in (0, 1):
        image = correlate1d(image, taps_of(sigma, reach), axis, mode="nearest")
    return image


@pytest.mark.parametrize("shape", [(100, 201), (97, 50), (150, 49)])
def test_levels_are_blurred_and_halved(rng, shape):
    image = rng.integers(0, 256, shape).astype(np.uint8)
    expected = blurred(image.astype(float), 0.6, 2)
    pyramid = make_pyramid(image)
    for number in range(len(pyramid.levels)):
        np.testing.assert_allclose(pyramid.level(number), expected, atol=1e-3)
        height, width = (side // 2 for side in expected.shape)
        parts = blurred(expected, 1.0, 4)[: 2 * height, : 2 * width]
        expected = parts.reshape(height, 2, width, 2).mean(axis=(1, 3))
    assert min(pyramid.level(-1).shape) <= 48


def test_about_as_opencv_blurs_and_halves(rng):
    image = cv2.resize(rng.integers(0, 256, (20, 30)).astype(np.uint8), (240, 160))
    level = cv2.GaussianBlur(image.astype(np.float32), (0, 0), 0.6)
    pyramid = make_pyramid(image)
    np.testing.assert_allclose(pyramid.level(0)[8:-8, 8:-8], level[8:-8, 8:-8], atol=0.5)
    half = cv2.resize(cv2.GaussianBlur(level, (0, 0), 1), (120, 80), interpolation=cv2.INTER_AREA)
    np.testing.assert_allclose(pyramid.level(1)[8:-8, 8:-8], half[8:-8, 8:-8], atol=0.5)


def test_a_ramp_says_where_pixels_of_levels_are():
    x = np.arange(0, 200)
    image = np.tile(x.astype(np.uint8), (200, 1))
    for number in range(3):
        row = make_pyramid(image).level(number)[20]
        places = (np.arange(len(row)) + 0.5) * 2**number - 0.5
        np.testing.assert_allclose(row[10:-10], places[10:-10], atol=1e-3)


def test_types_mean_the_same(rng):
    image = rng.integers(0, 256, (60, 70)).astype(np.uint8)
    expected = make_pyramid(image)
    for other in (image.astype(np.uint16) * 257, image / 255, np.dstack(3 * [image])):
        np.testing.assert_allclose(make_pyramid(other).pixels, expected.pixels, atol=1e-3)
    assert make_pyramid(expected) is expected


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (2, 2), (3, 100), (49, 49)])
def test_tiny_images_stay_what_they_are(shape):
    pyramid = make_pyramid(np.full(shape, 77, np.uint8))
    assert isinstance(pyramid, Pyramid)
    for number in range(len(pyramid.levels)):
        np.testing.assert_allclose(pyramid.level(number), 77, rtol=1e-6)
    assert len(pyramid.pixels) > pyramid.levels[-1, 0] + pyramid.level(-1).size + shape[1] // 2


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.full((9, 9), np.nan), "image: has NaN"),
        (np.full((9, 9), 200.0), "divide by 255"),
        (np.zeros((0, 9), np.uint8), "at least one pixel"),
        (np.zeros(9, np.uint8), "expected"),
        (None, "image: expected an array"),
        (np.broadcast_to(np.uint8(0), (1, 2**23 + 1)), "pixels a side"),
    ],
)
def test_what_is_no_photograph_is_refused(image, message):
    with pytest.raises(ValueError, match=message):
        make_pyramid(image)

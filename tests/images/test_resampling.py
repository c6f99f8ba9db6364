"""Smaller and warped images, against OpenCV's."""

import cv2
import numpy as np
import pytest

from mkdesc.images.resampling import blur, homography_between, reduced, shrunk, warp


@pytest.fixture(scope="module")
def image():
    noise = np.random.default_rng(0).integers(0, 256, (119, 163), np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 1.2)


def difference(mine, theirs):
    assert mine.shape == theirs.shape
    assert mine.dtype == theirs.dtype == np.uint8
    return np.abs(mine.astype(int) - theirs)


@pytest.mark.parametrize("shape", [(60, 81), (119, 100), (1, 1), (13, 163), (119, 163)])
@pytest.mark.parametrize("colours", [False, True])
def test_areas_are_averaged_as_opencv_does(image, shape, colours):
    picture = np.dstack([image, 255 - image, image // 2]) if colours else image
    theirs = cv2.resize(picture, shape[::-1], interpolation=cv2.INTER_AREA)
    found = difference(shrunk(picture, shape), theirs)
    assert found.max() <= 1  # halves are rounded either way
    assert found.mean() < 1e-3


def test_the_longer_side_is_what_counts(image):
    assert reduced(image, 81).shape == (59, 81)
    assert reduced(image, 163) is image
    assert reduced(image, None) is image
    assert reduced(np.zeros((3, 900, 3), np.uint8), 90).shape == (1, 90, 3)


def test_a_homography_leads_to_pixels_as_with_opencv(image):
    height, width = image.shape
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    moved = np.array([[20, 10], [150, 0], [170, 130], [-5, 90]], np.float32)
    homography = homography_between(corners, moved)
    np.testing.assert_allclose(homography, cv2.getPerspectiveTransform(corners, moved), atol=1e-9)
    theirs = cv2.warpPerspective(image, homography, (140, 150))
    found = difference(warp(image, homography, (150, 140)), theirs)
    assert found.max() <= 4  # OpenCV has 32 steps between pixels
    assert found.mean() < 0.2
    back = warp(warp(image, homography, (150, 180), 3), np.linalg.inv(homography), (119, 163), 3)
    assert np.abs(back.astype(int) - image)[10:-30, 10:-10].mean() < 3


def test_blur_is_opencvs(image):
    found = difference(blur(image, 0.8), cv2.GaussianBlur(image, (0, 0), 0.8))
    assert found.max() <= 1

import cv2
import numpy as np
import pytest

from mkdesc.kernels.preparation import PAPER, STANDARD


@pytest.mark.parametrize("size", [8, 33, 64])
def test_the_papers_smoothing_is_opencvs(rng, size):
    patch = rng.random((size, size))
    sigma = 1.4 * size / 64
    expected = cv2.GaussianBlur(patch, (5, 5), sigma, borderType=cv2.BORDER_REPLICATE)
    np.testing.assert_allclose(PAPER.prepare(patch), expected, atol=1e-9)


def test_the_standard_preparation_by_opencv(rng):
    patch = rng.integers(0, 256, (64, 64), np.uint8)
    small = cv2.resize(patch / 255, (32, 32), interpolation=cv2.INTER_AREA)
    smooth = cv2.GaussianBlur(small, (9, 9), 1.5, borderType=cv2.BORDER_REPLICATE)
    expected = (smooth - smooth.mean()) / (smooth.std() + 1e-3)
    np.testing.assert_allclose(STANDARD.prepare(patch, 1 / 255), expected, atol=1e-9)


def test_flat_and_symmetric_neighbourhoods_stay_so():
    stripes = np.tile(np.abs(np.arange(-8, 9)) / 255, (17, 1))
    smooth = PAPER.prepare(stripes)
    np.testing.assert_array_equal(smooth, smooth[:, ::-1])
    assert np.all(np.ptp(smooth, axis=0) == 0)


def test_sizes_that_cannot_be_reduced_are_refused():
    with pytest.raises(ValueError, match="'standard' takes multiples of 32 px, got 65"):
        STANDARD.prepare(np.zeros((65, 65)))
    assert STANDARD.prepare(np.zeros((96, 96))).shape == (32, 32)

import cv2
import numpy as np
import pytest

from mkdesc.gradients import gradients, magnitude, smoothing_taps


@pytest.mark.parametrize("size", [8, 33, 64])
def test_same_as_opencv(rng, size):
    patch = rng.random((size, size))
    sigma = 1.4 * size / 64
    smooth = cv2.GaussianBlur(patch, (5, 5), sigma, borderType=cv2.BORDER_REPLICATE)
    expected = [
        cv2.filter2D(smooth, -1, k, borderType=cv2.BORDER_REPLICATE)
        for k in (np.array([[1.0, 0, -1]]), np.array([[1.0], [0], [-1]]))
    ]
    np.testing.assert_allclose(gradients(patch), expected, atol=1e-9)


def test_taps_are_a_normalised_gaussian():
    taps = smoothing_taps(64)
    assert taps @ [1, 2, 2] == pytest.approx(1)
    assert np.log(taps[2] / taps[0]) == pytest.approx(4 * np.log(taps[1] / taps[0]))


def test_flat_and_symmetric_neighbourhoods_have_no_gradient():
    stripes = np.tile(np.abs(np.arange(-8, 9)) / 255, (17, 1))
    gx, gy = gradients(stripes)
    assert np.all(gx[:, 8] == 0)
    assert np.all(gy == 0)


def test_magnitude_is_never_zero():
    assert magnitude(np.zeros(1), np.zeros(1))[0] == pytest.approx(1e-4)

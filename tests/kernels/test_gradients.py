import cv2
import numpy as np
import pytest

from mkdesc.kernels.gradients import angle, gradients, second_order

FIRST = np.array([[1.0, 0, -1]])
SECOND = np.array([[1.0, -2, 1]])


def filtered(image, kernel):
    return cv2.filter2D(image, -1, kernel, borderType=cv2.BORDER_REPLICATE)


@pytest.mark.parametrize("size", [8, 33])
def test_same_as_opencv(rng, size):
    image = rng.random((size, size))
    expected = filtered(image, FIRST), filtered(image, FIRST.T)
    np.testing.assert_allclose(gradients(image), expected, atol=1e-12)
    xx, yy = filtered(image, SECOND), filtered(image, SECOND.T)
    xy = filtered(image, FIRST.T @ FIRST / 4)
    np.testing.assert_allclose(second_order(image), (xx + yy, xx - yy, 2 * xy), atol=1e-12)


def test_no_gradient_has_the_angle_zero():
    tiny = np.array([0.0, 1e-40, -1.0])
    np.testing.assert_array_equal(angle(tiny, -0.0 * tiny, 1e-36), [0, 0, np.pi])

import cv2
import numpy as np
import pytest


@pytest.fixture(scope="module")
def image():
    noise = np.random.default_rng(0).integers(0, 256, (200, 240)).astype(np.float32)
    return cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2), None, 0, 255, 32).astype(np.uint8)

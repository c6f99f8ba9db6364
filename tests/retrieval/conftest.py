"""Small photographs of noise: three places, three views of each."""

import cv2
import numpy as np
import pytest


def make_view(seed, angle=0.0, zoom=1.0):
    rng = np.random.default_rng(seed)
    noise = sum(cv2.GaussianBlur(rng.normal(size=(200, 240)), (0, 0), s) * s for s in (1.5, 3, 6))
    image = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
    turn = cv2.getRotationMatrix2D((120, 100), angle, zoom)
    return cv2.warpAffine(image, turn, (240, 200), borderMode=cv2.BORDER_REFLECT)


@pytest.fixture
def view():
    return make_view


@pytest.fixture
def places(tmp_path):
    folder = tmp_path / "photos"
    for place in range(3):
        (folder / str(place)).mkdir(parents=True)
        for number, (angle, zoom) in enumerate([(0, 1), (25, 1.1), (-40, 0.9)]):
            cv2.imwrite(str(folder / f"{place}/{number}.png"), make_view(place, angle, zoom))
    return folder

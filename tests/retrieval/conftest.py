"""Small photographs of noise: three scenes, three views of each."""

import shutil

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.features.settings import Settings

FEW = Settings(max_keypoints=300, output="uint8")


def make_view(seed, angle=0.0, zoom=1.0):
    rng = np.random.default_rng(seed)
    noise = sum(cv2.GaussianBlur(rng.normal(size=(200, 240)), (0, 0), s) * s for s in (1.5, 3, 6))
    image = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
    turn = cv2.getRotationMatrix2D((120, 100), angle, zoom)
    return cv2.warpAffine(image, turn, (240, 200), borderMode=cv2.BORDER_REFLECT)


@pytest.fixture
def view():
    return make_view


@pytest.fixture(scope="session")
def indexed(tmp_path_factory):
    """The folder of ``photos`` of three scenes and their ``index``, for tests to copy."""
    root = tmp_path_factory.mktemp("indexed")
    for scene in range(3):
        (root / "photos" / str(scene)).mkdir(parents=True)
        for number, (angle, zoom) in enumerate([(0, 1), (25, 1.1), (-40, 0.9)]):
            file = root / "photos" / f"{scene}/{number}.png"
            cv2.imwrite(str(file), make_view(scene, angle, zoom))
    mkdesc.build_index(root / "photos", root / "index", FEW)
    return root


@pytest.fixture
def scenes(indexed, tmp_path):
    return shutil.copytree(indexed / "photos", tmp_path / "photos")


@pytest.fixture
def index(indexed, scenes, tmp_path):
    shutil.copytree(indexed / "index", tmp_path / "index")
    mkdesc.build_index(scenes, tmp_path / "index")  # it was made of photographs elsewhere
    return mkdesc.Index(tmp_path / "index")

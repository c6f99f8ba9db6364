"""Where OpenCV is not installed: Pillow or arrays are enough to detect, describe and match."""

import subprocess
import sys

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.images.demo import photograph, warped
from mkdesc.images.reading import read_gray

HIDDEN = "import sys; sys.modules['cv2'] = None\n"


def run(code, *words):
    return subprocess.run(
        [sys.executable, "-c", HIDDEN + code, *map(str, words)], capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("photos")
    cv2.imwrite(str(made / "a.png"), photograph())
    cv2.imwrite(str(made / "b.png"), warped(photograph())[0])
    return made


ARRAYS = """
import numpy as np, mkdesc
from mkdesc.images.reading import read_gray
images = [read_gray(name) for name in sys.argv[1:3]]
for detector in ("learned", "dog"):
    found = [mkdesc.Features(detector, 300).extract(image) for image in images]
    matches = mkdesc.match_descriptors(found[0][1], found[1][1])
    np.savez(f"{sys.argv[3]}/{detector}.npz", points=found[0][0].points, pairs=len(matches.pairs))
features = mkdesc.Features("learned", 300)
try:
    features.detectAndCompute(images[0])
except ImportError as error:
    print(error)
try:
    mkdesc.match_images(*images, features=features)
except ImportError as error:
    print(error)
"""


def test_arrays(folder, tmp_path):
    done = run(ARRAYS, folder / "a.png", folder / "b.png", tmp_path)
    assert done.returncode == 0, done.stderr
    objects, geometry = done.stdout.splitlines()
    assert objects.startswith("cv2.KeyPoint (Features.extract gives arrays) needs OpenCV")
    assert geometry.startswith("the geometry of matches needs OpenCV")
    for detector in ("learned", "dog"):
        with_opencv, _ = mkdesc.Features(detector, 300).extract(read_gray(folder / "a.png"))
        saved = np.load(tmp_path / f"{detector}.npz")
        np.testing.assert_allclose(saved["points"], with_opencv.points, atol=1e-6)
        assert saved["pairs"] > 30


@pytest.mark.parametrize("detector", ["learned", "dog"])
def test_the_command_for_features(folder, tmp_path, detector):
    words = ["features", folder, "-o", tmp_path / "out.h5", "--format", "hloc"]
    words += ["--keypoints", 200, "--detector", detector]
    done = run("from mkdesc.cli import main; main()", *words)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.h5").is_file()


def test_the_command_for_matches_says_what_it_needs(folder):
    code = "from mkdesc.cli import main; main()"
    done = run(code, "match", folder / "a.png", folder / "b.png")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "geometry of matches needs OpenCV" in done.stderr

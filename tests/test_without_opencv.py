"""Where OpenCV is not installed: the first commands of README, and what still needs it says so."""

import os
import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

import mkdesc

REPOSITORY = Path(__file__).parents[1]
HIDDEN = "import sys; sys.modules['cv2'] = None\n"
COMMAND = "from mkdesc.cli import main; main()"


def run(place, code, *words):
    return subprocess.run(
        [sys.executable, "-c", HIDDEN + code, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=place,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    )


def command(place, line):
    return run(place, COMMAND, *line.split())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the demo's photographs, made without OpenCV."""
    made = tmp_path_factory.mktemp("place")
    done = command(made, "demo")
    assert done.returncode == 0, done.stderr
    return made


def test_the_first_commands_of_readme(place):
    lines = re.findall(r"^\$ mkdesc (.+)$", (REPOSITORY / "README.md").read_text(), re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["demo", "match"]
    for line in lines:
        done = command(place, line)
        assert done.returncode == 0, done.stderr
    assert int(re.search(r"(\d+) of them verified", done.stdout)[1]) > 100
    picture = cv2.imread(str(place / "matches.jpg"))
    assert picture.shape[1] > 2 * cv2.imread(str(place / "demo/street_a.jpg")).shape[1]


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("features demo/views -o features.h5 --keypoints 200", "features.h5"),
        ("features demo/views -o dog --keypoints 200 --detector dog", "dog/features.json"),
        ("features demo/street_a.jpg -o keypoints.png", "keypoints.png"),
        ("index demo -o photographs.index", "photographs.index"),
    ],
)
def test_other_commands(place, line, made):
    done = command(place, line)
    assert done.returncode == 0, done.stderr
    assert (place / made).exists()


def test_reconstruction(place):
    pytest.importorskip("pycolmap")
    done = command(place, "sfm demo/views -o model")
    assert done.returncode == 0, done.stderr
    assert (place / "model").is_dir()


LIBRARY = """
import numpy as np, mkdesc
from mkdesc.images import read_gray
names = ("demo/street_a.jpg", "demo/street_b.jpg")
for detector in ("learned", "dog"):
    found = [mkdesc.Features(detector, 300).extract(read_gray(name)) for name in names]
    pairs = mkdesc.match_descriptors(found[0][1], found[1][1]).pairs
    np.savez(f"{detector}.npz", points=found[0][0].points, pairs=len(pairs))
try:
    mkdesc.Features(300).detectAndCompute(read_gray(names[0]))
except ImportError as error:
    print(error)
"""


def test_arrays(place):
    done = run(place, LIBRARY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cv2.KeyPoint (Features.extract gives arrays) needs OpenCV")
    for detector in ("learned", "dog"):
        gray = cv2.imread(str(place / "demo/street_a.jpg"), cv2.IMREAD_GRAYSCALE)
        with_opencv, _ = mkdesc.Features(detector, 300).extract(gray)
        saved = np.load(place / f"{detector}.npz")
        np.testing.assert_allclose(saved["points"], with_opencv.points, atol=1e-6)
        assert saved["pairs"] > 30


IMAGES = """
import mkdesc
found = mkdesc.match_images("demo/street_a.jpg", "demo/street_b.jpg")
assert found.verified
assert found.draw().shape[2] == 3
for name in ("found.png", "found.svg", "found.json"):
    found.save(name)
"""


def test_photographs_are_matched_and_drawn(place):
    done = run(place, IMAGES)
    assert done.returncode == 0, done.stderr
    assert all((place / f"found.{kind}").stat().st_size for kind in ("png", "svg", "json"))


@pytest.mark.parametrize(
    "line",
    [
        "match demo/town_a.jpg demo/town_b.jpg --wide",
        "features demo/views -o sift --detector sift",
        "learn photos demo/views -o mine.safetensors",
    ],
)
def test_what_needs_opencv_says_so_in_a_line(place, line):
    done = command(place, line)
    assert done.returncode == 2
    (message,) = [text for text in done.stderr.splitlines() if text.startswith("error: ")]
    what = "a search with shapes and views (wide)" if "--wide" in line else "the detector sift"
    assert message.startswith(f"error: {what} needs OpenCV")
    assert message.endswith("pip install 'mkdesc[images]'")
    assert "Traceback" not in done.stderr

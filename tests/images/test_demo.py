"""The photographs that come with the package, against OpenCV's own SIFT and geometry."""

import re
import shlex
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from mkdesc.cli.app import make_app
from mkdesc.datasets.hpatches.make_strips import read_sequence
from mkdesc.images import demo
from mkdesc.images.demo import photograph, scene_views, slanted, warped, write_demo
from mkdesc.images.exif import focal_length

PHOTOGRAPHS = Path(demo.__file__).with_name("photographs")


def sift_matches(a, b):
    sift = cv2.SIFT_create(2000)
    (here, x), (there, y) = (sift.detectAndCompute(image, None) for image in (a, b))
    pairs = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(x, y)
    return (
        np.array([here[m.queryIdx].pt for m in pairs]),
        np.array([there[m.trainIdx].pt for m in pairs]),
    )


def test_the_homography_leads_to_the_copy():
    image = photograph()
    copy, homography = warped(image)
    here, there = sift_matches(image, copy)
    found, inliers = cv2.findHomography(here, there, cv2.RANSAC, 3)
    assert inliers.sum() > 100
    corners = np.float64([[[100, 100], [400, 100], [400, 500], [100, 500]]])
    expected, seen = (cv2.perspectiveTransform(corners, matrix) for matrix in (homography, found))
    np.testing.assert_allclose(seen, expected, atol=2)


def test_the_slanted_copy_is_beyond_plain_sift():
    here, there = sift_matches(photograph(), slanted(photograph()))
    inliers = cv2.findHomography(here, there, cv2.RANSAC, 3)[1]
    assert inliers.sum() < 12


def test_views_are_of_one_scene_that_is_not_flat():
    first, last = scene_views()[2], scene_views()[4]
    assert np.linalg.norm(last.centre - first.centre) > 1
    here, there = sift_matches(first.image, last.image)
    epipolar = cv2.findFundamentalMat(here, there, cv2.FM_RANSAC, 1)[1].sum()
    planar = cv2.findHomography(here, there, cv2.RANSAC, 1)[1].sum()
    assert epipolar > 200
    assert epipolar > 1.5 * planar


def read_pair(place):
    names = (f"{place}_a.jpg", f"{place}_b.jpg")
    return [cv2.imread(str(PHOTOGRAPHS / name), cv2.IMREAD_GRAYSCALE) for name in names]


def test_the_street_is_one_place_and_the_town_another():
    """SIFT says so, too."""
    (a, b), (other, _) = read_pair("street"), read_pair("town")
    agreeing = [
        cv2.findFundamentalMat(*sift_matches(a, image), cv2.FM_RANSAC, 1)[1].sum()
        for image in (b, other)
    ]
    assert agreeing[0] > 100 > 3 * agreeing[1]


def test_cameras_of_the_street_say_their_focal_length():
    """29 mm in terms of 35 mm film, which is 36 mm wide; and nothing says where it was."""
    for name in ("street_a.jpg", "street_b.jpg"):
        data = (PHOTOGRAPHS / name).read_bytes()
        assert focal_length(data, 751) == pytest.approx(29 / 36 * 751)
        with Image.open(PHOTOGRAPHS / name) as opened:
            assert 0x8825 not in opened.getexif()  # the folder of GPS


def test_the_photographs_are_small_and_said_to_be_from_somewhere():
    sources = (PHOTOGRAPHS / "SOURCES.md").read_text(encoding="utf-8")
    for path in PHOTOGRAPHS.glob("*.jpg"):
        assert f"`{path.name}`" in sources
        assert path.stat().st_size < 100_000


def test_files_that_are_there_stay(tmp_path):
    (tmp_path / "photo.png").write_text("mine")
    files = write_demo(tmp_path)
    assert (tmp_path / "photo.png").read_text() == "mine"
    assert all(path.is_file() for path in files)
    whole = [path for path in files if path.suffix in (".jpg", ".png") and path.stem != "photo"]
    assert len(whole) == 26
    assert all(cv2.imread(str(path)) is not None for path in whole)


def test_the_homographies_of_the_sequences_lead_to_their_images(tmp_path):
    write_demo(tmp_path)
    for sequence in ("v_turn", "i_light"):
        images, homographies = read_sequence(tmp_path / "sequences" / sequence)
        here, there = sift_matches(images[0], images[5])
        right = cv2.perspectiveTransform(here[None], homographies[4])[0] - there
        assert (np.linalg.norm(right, axis=1) < 2).mean() > 0.5


def test_the_command_says_what_can_be_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = CliRunner().invoke(make_app(), ["demo"]).stdout
    lines = re.findall(r"^  mkdesc (.*?)(?: {2,}#.*)?$", printed, re.MULTILINE)
    assert len(lines) == 5
    for line in lines:
        named = [word for word in shlex.split(line) if word.startswith("demo")]
        assert named
        assert all(Path(word).exists() for word in named)

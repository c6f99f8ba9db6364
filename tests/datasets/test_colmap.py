"""COLMAP's pixels against cameras whose pictures are known."""

import subprocess
import sys

import cv2
import numpy as np
import pytest

from mkdesc.datasets.colmap import read_model, read_observations
from mkdesc.features.folder import extract_features
from mkdesc.features.settings import Settings
from mkdesc.features.stores.colmap_database import add_features

pycolmap = pytest.importorskip("pycolmap")

WIDTH, HEIGHT = 101, 81


@pytest.fixture
def model(tmp_path):
    """A camera that looks along z, one point ahead of it and one to the lower right."""
    made = pycolmap.Reconstruction()
    camera = pycolmap.Camera.create_from_model_name(1, "PINHOLE", 50.0, WIDTH, HEIGHT)
    made.add_camera_with_trivial_rig(camera)
    ahead = np.array([[0, 0, 5.0], [1.0, 0.5, 5.0]])
    image = pycolmap.Image("view.png", camera.img_from_cam(ahead), 1, 1)
    made.add_image_with_trivial_frame(image, pycolmap.Rigid3d())
    for index, xyz in enumerate(ahead):
        track = pycolmap.Track()
        track.add_element(1, index)
        made.add_point3D(xyz, track)
    folder = tmp_path / "sparse"
    folder.mkdir()
    made.write(folder)
    return folder


def test_pictures_can_be_written_after_pycolmap():
    """pycolmap and OpenCV bring a zlib each: whose is loaded first decides who crashes."""
    code = """
from mkdesc.datasets.colmap import pycolmap_module
pycolmap_module()
import cv2, numpy
cv2.imencode(".png", numpy.zeros((9, 9), numpy.uint8))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_point_straight_ahead_is_seen_in_the_middle(model):
    xy, points = read_observations(model)["view.png"]
    # Of 101 pixels, counted from 0, the one in the middle has the number 50.
    middle = [(WIDTH - 1) / 2, (HEIGHT - 1) / 2]
    np.testing.assert_allclose(xy, [middle, [middle[0] + 10, middle[1] + 5]])
    assert len(set(points)) == 2


def test_a_dot_in_the_middle_is_written_to_the_middle(tmp_path):
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    dot = np.exp(-((x - WIDTH // 2) ** 2 + (y - HEIGHT // 2) ** 2) / (2 * 4.0**2))
    (tmp_path / "in").mkdir()
    cv2.imwrite(str(tmp_path / "in" / "dot.png"), np.rint(255 * dot).astype(np.uint8))
    settings = Settings("sift", max_keypoints=1, sensitive=True)
    images = {"dot.png": tmp_path / "in" / "dot.png"}
    extract_features(images, tmp_path / "features", settings=settings)
    base = tmp_path / "d.db"
    add_features(base, tmp_path / "features", ["dot.png"], settings.to_json(), tmp_path / "in")
    with pycolmap.Database.open(base) as file:
        image = file.read_image_with_name("dot.png")
        camera = file.read_camera(image.camera_id)
        (found,) = np.array(file.read_keypoints(image.image_id))
    # COLMAP puts the principal point of a new camera into the middle, as it counts.
    middle = [camera.principal_point_x, camera.principal_point_y]
    np.testing.assert_allclose(found[:2], middle, atol=0.1)


def test_folders_without_a_model_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"no COLMAP model \(points3D.txt or points3D.bin\)"):
        read_model(tmp_path)


@pytest.mark.parametrize("name", ["cameras", "images", "points3D", "rigs", "frames"])
def test_counts_that_the_file_cannot_hold_are_refused_at_once(model, name):
    """COLMAP itself goes on reading where the file has ended, for minutes."""
    path = model / f"{name}.bin"
    whole = path.read_bytes()
    for damaged in ((2**40).to_bytes(8, "little") + whole[8:], whole[:-1], whole + b"\0"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"{name}\.bin: damaged"):
            read_model(model)
    path.write_bytes(whole)
    read_model(model)


def test_points_that_announce_too_many_views_are_refused(model):
    path = model / "points3D.bin"
    data = bytearray(path.read_bytes())
    data[8 + 43 : 8 + 43 + 8] = (2**33).to_bytes(8, "little")
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"points3D\.bin: damaged"):
        read_model(model)


def test_models_of_all_cameras_can_be_read(tmp_path):
    kinds = [kind for kind in pycolmap.CameraModelId.__members__ if kind != "INVALID"]
    made = pycolmap.Reconstruction()
    for number, kind in enumerate(kinds, 1):
        camera = pycolmap.Camera.create_from_model_name(number, kind, 50.0, 100, 50)
        made.add_camera_with_trivial_rig(camera)
    made.write_binary(tmp_path)
    assert len(read_model(tmp_path).cameras) == len(kinds)

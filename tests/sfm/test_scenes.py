"""Which images of a database belong together, and which of them share a camera."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from mkdesc.belief.checks import UNVERIFIED, VERIFIED
from mkdesc.sfm.grown_pairs import PairMatches, make_table, write_pair
from mkdesc.sfm.scenes import certain_pairs, scenes_among, share_cameras, with_weakly_tied

pytest.importorskip("cv2")  # before pycolmap, see mkdesc.datasets.colmap.pycolmap_module
pycolmap = pytest.importorskip("pycolmap")

SMALL, LARGE = (640, 480), (1600, 1067)


def make_database(path, sizes, agreeing, focal=None):
    """A database of images and of pairs: of so many matches so many agree."""
    with pycolmap.Database.open(path) as base:
        for number, (name, (width, height)) in enumerate(sizes.items(), 1):
            camera = pycolmap.Camera.create_from_model_name(
                number, "SIMPLE_RADIAL", 1.2 * width, width, height
            )
            camera.has_prior_focal_length = name in (focal or {})
            if camera.has_prior_focal_length:
                camera.params = [focal[name], *camera.params[1:]]
            base.write_camera(camera, use_camera_id=True)
            rig = pycolmap.Rig(rig_id=number)
            rig.add_ref_sensor(camera.sensor_id)
            base.write_rig(rig, use_rig_id=True)
            image = pycolmap.Image(name=name, camera_id=number, image_id=number)
            base.write_image(image, use_image_id=True)
            base.write_keypoints(number, np.zeros((2000, 2), np.float32))
            frame = pycolmap.Frame(frame_id=number, rig_id=number)
            frame.add_data_id(image.data_id)
            base.write_frame(frame, use_frame_id=True)
        names = list(sizes)
        for (a, b), (agree, matches) in agreeing.items():
            one, other = names.index(a) + 1, names.index(b) + 1
            pairs = np.repeat(np.arange(matches, dtype=np.uint32)[:, None], 2, axis=1)
            base.write_matches(one, other, pairs)
            found = pycolmap.TwoViewGeometry()
            found.config = pycolmap.TwoViewGeometryConfiguration.UNCALIBRATED
            found.inlier_matches = pairs[:agree]
            base.write_two_view_geometry(one, other, found)
    return path


def cameras(path):
    """The camera of each image; they, frames and rigs must tell the same."""
    with pycolmap.Database.open(path) as base:
        images = base.read_all_images()
        assert {image.camera_id for image in images} == {
            c.camera_id for c in base.read_all_cameras()
        }
        rigs = {rig.rig_id: rig.ref_sensor_id.id for rig in base.read_all_rigs()}
        frames = {
            data.id: (rigs[frame.rig_id], data.sensor_id.id)
            for frame in base.read_all_frames()
            for data in frame.data_ids
        }
        assert frames == {image.image_id: (image.camera_id,) * 2 for image in images}
        assert set(rigs.values()) == {image.camera_id for image in images}
        return {image.name: image.camera_id for image in images}


def test_what_agrees_by_chance_connects_nothing(tmp_path):
    sizes = dict.fromkeys("abcd", SMALL)
    # 200 matches at random have 40 that agree now and then; 15 of 15 do not.
    agreeing = {"ab": (40, 200), "bc": (15, 15), "cd": (100, 250)}
    base = make_database(tmp_path / "a.db", sizes, {tuple(k): v for k, v in agreeing.items()})
    assert certain_pairs(base) == [("c", "d"), ("b", "c")]


def test_random_matches_are_not_certain(tmp_path, rng):
    """COLMAP's own verification of scenes that have nothing to do with each other."""
    path = make_database(tmp_path / "a.db", dict.fromkeys("abcdef", SMALL), {})
    with pycolmap.Database.open(path) as base:
        base.clear_keypoints()
        for image in range(1, 7):
            base.write_keypoints(image, rng.uniform(0, SMALL, (250, 2)).astype(np.float32))
        rows = np.repeat(np.arange(250, dtype=np.uint32)[:, None], 2, axis=1)
        for one in range(1, 7):
            for other in range(one + 1, 7):
                base.write_matches(one, other, rows)
    pycolmap.geometric_verification(path)
    with pycolmap.Database.open(path) as base:
        assert base.num_verified_image_pairs() > 10  # COLMAP takes them for pairs
    assert certain_pairs(path) == []


def test_what_was_judged_is_not_judged_again(tmp_path):
    base = make_database(tmp_path / "a.db", dict.fromkeys("abc", SMALL), {("a", "b"): (15, 900)})
    assert certain_pairs(base) == []  # by chance
    rows = np.zeros((15, 2), np.uint32)
    for verdict, expected in ((VERIFIED, [("a", "b")]), (UNVERIFIED, [])):
        with closing(sqlite3.connect(base)) as file:
            make_table(file)
            shifts = np.zeros((15, 6), np.float32)
            write_pair(file, (1, 2), PairMatches(rows, shifts, verdict, ""))
        assert certain_pairs(base) == expected


def test_images_that_only_weak_pairs_tie_are_tried_with_the_scene_of_most():
    scenes = [["a", "b"], ["x", "y"]]
    counts = {("a", "n"): 20, ("n", "x"): 12, ("n", "y"): 12, ("m", "n"): 90, ("a", "x"): 16}
    found = with_weakly_tied(scenes, counts, "abxynm")
    assert found == [["a", "b"], ["x", "y", "n"]]  # m is tied to nothing but n
    assert scenes == [["a", "b"], ["x", "y"]]


def test_scenes_are_connected_parts():
    pairs = [("a", "b"), ("b", "c"), ("x", "y")]
    assert scenes_among("abcxyz", pairs) == [["a", "b", "c"], ["x", "y"]]
    assert scenes_among("acxyz", pairs) == [["x", "y"]]
    assert scenes_among("", pairs) == []


def test_images_of_a_scene_share_a_camera(tmp_path):
    sizes = {**dict.fromkeys("abcd", SMALL), "e": LARGE, "f": LARGE, "g": SMALL, "h": SMALL}
    certain = dict.fromkeys([("a", "b"), ("c", "d"), ("d", "e"), ("f", "h")], (150, 200))
    base = make_database(tmp_path / "a.db", sizes, certain)
    share_cameras(base)
    found = cameras(base)
    assert found["a"] == found["b"]
    assert len(set(found.values())) == 7  # of two sizes, or of no scene: one each
    share_cameras(base)
    assert cameras(base) == found


def test_images_of_one_focal_length_share_a_camera(tmp_path):
    sizes = {**dict.fromkeys("abcde", SMALL), "f": LARGE}
    certain = dict.fromkeys(["ab", "bc", "cd", "de", "ef"], (150, 200))
    focal = {"a": 700.0, "b": 700.0, "c": 900.0}
    base = make_database(tmp_path / "a.db", sizes, certain, focal)
    share_cameras(base)
    found = cameras(base)
    assert found["a"] == found["b"]
    assert len(set(found.values())) == 5

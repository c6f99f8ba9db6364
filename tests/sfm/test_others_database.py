"""Databases of anybody's: what COLMAP would fail on is refused, by name, before it reads them."""

import shutil
import sqlite3
from contextlib import closing

import cv2
import numpy as np
import pytest

pycolmap = pytest.importorskip("pycolmap")

from mkdesc.features.settings import Settings  # noqa: E402
from mkdesc.sfm.options import SfmOptions  # noqa: E402
from mkdesc.sfm.others_database import copy_database  # noqa: E402
from mkdesc.sfm.pipeline import map_database, match_images  # noqa: E402
from mkdesc.sfm.scenes import certain_pairs  # noqa: E402


@pytest.fixture(scope="module")
def matched(tmp_path_factory):
    """A database of two views, 40 px apart, and the folder of the views."""
    folder = tmp_path_factory.mktemp("matched")
    rng = np.random.default_rng(0)
    noise = cv2.GaussianBlur(rng.integers(0, 256, (200, 300), np.uint8), (0, 0), 2)
    scene = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX)
    (folder / "in").mkdir()
    for number in range(2):
        cv2.imwrite(str(folder / "in" / f"{number}.png"), scene[:, 40 * number :][:, :240])
    options = SfmOptions(Settings(max_keypoints=200))
    with pytest.MonkeyPatch.context() as patch:
        for module in ("mkdesc.sfm.mapping", "mkdesc.features.stores.colmap_database"):
            patch.setattr(f"{module}.run_isolated", lambda call, *given: call(*given))
        base = match_images(folder / "in", folder / "out", options).database
    with closing(sqlite3.connect(base)) as file:
        assert file.execute("SELECT rows > 15 FROM two_view_geometries").fetchall() == [(1,)]
    return base, folder / "in"


@pytest.fixture
def theirs(matched, tmp_path):
    """A copy of the database that SQL can change, and a function that checks it."""

    def change(*queries):
        file = tmp_path / "theirs.db"
        shutil.copy(matched[0], file)
        with closing(sqlite3.connect(file)) as base:
            for query in queries:
                base.execute(query)
            base.commit()
        return file

    return change


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("UPDATE cameras SET width = 0", "camera 1: 0 x 200 px"),
        ("UPDATE cameras SET height = 'tall'", "camera 1: 240 x 'tall' px"),
        ("UPDATE cameras SET model = 77", "camera 1: no camera model 77"),
        ("UPDATE cameras SET params = x'00'", "camera 1: expected 4 parameters"),
        ("UPDATE images SET camera_id = 9", "images: camera_id 9 is not in cameras"),
        ("UPDATE images SET name = x'ff' WHERE image_id = 1", "image 1: its name is no text"),
        ("UPDATE matches SET pair_id = 5", "matches: pair_id 5 is of no two images"),
        ("UPDATE two_view_geometries SET pair_id = -5", "pair_id -5 is of no two images"),
        ("DROP TABLE images", "keypoints: image_id 1 is not in images"),
        ("DROP TABLE keypoints", "keypoints that its images have not"),
        ("DROP TABLE frame_data", "image 1: in no frame"),
        ("DELETE FROM frame_data WHERE data_id = 2", "image 2: in no frame"),
        ("UPDATE rigs SET ref_sensor_type = 1", "image 1: its rig has not its camera"),
        ("UPDATE frames SET rig_id = 9", "frames: rig_id 9 is not in rigs"),
        ("UPDATE keypoints SET rows = 2147483647", "image_id 1 has 2147483647 x 4 numbers in"),
        ("UPDATE matches SET data = x'0102'", r"x 2 numbers in 2 bytes"),
        ("UPDATE descriptors SET data = NULL", r"x 128 numbers in 0 bytes"),
        ("UPDATE matches SET rows = cols, cols = rows", r"has rows of \d+ numbers"),
        ("UPDATE two_view_geometries SET F = x'01'", "expected 9 numbers as F"),
        ("INSERT INTO pose_priors VALUES (1, 1, 1, 0, x'01', NULL, NULL, 0)", "as position"),
    ],
)
def test_what_cannot_be_mapped_is_refused_by_name(matched, theirs, tmp_path, query, fault):
    file = theirs(query)
    out = tmp_path / "out"
    with pytest.raises(ValueError, match=rf"theirs\.db: not a COLMAP database .*{fault}") as found:
        map_database(file, matched[1], out)
    assert "\n" not in str(found.value)
    assert not (out / "database.db").exists()


@pytest.mark.parametrize(
    ("table", "numbers", "fault"),
    [
        ("keypoints", np.float32(np.nan), "has numbers that are not finite"),
        ("matches", np.uint32(2**31), "keypoints that its images have not"),
        ("two_view_geometries", np.uint32(200), "keypoints that its images have not"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(theirs, tmp_path, table, numbers, fault):
    file = theirs()
    with closing(sqlite3.connect(file)) as base:
        (data,) = base.execute(f"SELECT data FROM {table}").fetchone()
        base.execute(f"UPDATE {table} SET data = ?", (numbers.tobytes() + data[4:],))
        base.commit()
    with pytest.raises(ValueError, match=f"theirs.*{fault}"):
        copy_database(file, tmp_path / "copy.db", tmp_path / "copy.db")


NAN = np.full(9, np.nan).tobytes().hex()


@pytest.mark.parametrize(
    "queries",
    [
        (),
        ("DELETE FROM descriptors",),
        ("DELETE FROM matches",),
        ("DELETE FROM two_view_geometries",),
        # As older COLMAPs have it; and what they do not know of a prior.
        [f"DROP TABLE {name}" for name in ("frame_data", "frames", "rig_sensors", "rigs")],
        (f"INSERT INTO pose_priors VALUES (1, 1, 1, 0, NULL, x'{NAN}', NULL, 0)",),
        ("UPDATE two_view_geometries SET F = NULL, E = NULL, H = NULL",),
    ],
)
def test_what_others_need_not_have_is_not_missed(theirs, tmp_path, queries):
    copy = tmp_path / "copy.db"
    counts = copy_database(theirs(*queries), copy, copy)
    assert counts.images == 2
    certain_pairs(copy)

"""What other programs find in the files: hloc's groups, COLMAP's keypoints, pairs."""

import sqlite3
from contextlib import closing
from pathlib import Path

import cv2
import numpy as np
import pytest

from mkdesc.features.folder import Settings, extract_features, load_features
from mkdesc.features.stores import colmap_database as database
from mkdesc.features.stores import hloc
from mkdesc.images.listing import find_images
from mkdesc.retrieval.pairs import all_pairs, read_pairs

SETTINGS = Settings(max_keypoints=25)


@pytest.fixture
def described(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for name in ("a.png", "sub/b.png"):
        noise = cv2.GaussianBlur(rng.integers(0, 256, (90, 120), np.uint8), (0, 0), 1.5)
        cv2.imwrite(str(tmp_path / "in" / name), cv2.normalize(noise, None, 0, 255, 32))
    images = find_images([tmp_path / "in"])
    extract_features(images, tmp_path / "features", SETTINGS)
    return tmp_path


def test_hlocs_groups(described):
    h5py = pytest.importorskip("h5py")
    path, made = described / "f.h5", SETTINGS.to_json()
    hloc.add_features(path, described / "features", ["a.png"], made)
    hloc.add_features(path, described / "features", ["sub/b.png"], made)
    assert hloc.stored_names(path, made) == {"a.png", "sub/b.png"}
    expected = load_features(described / "features", "sub/b.png")
    with h5py.File(path) as file:
        group = file["sub/b.png"]
        np.testing.assert_array_equal(group["keypoints"], expected.keypoints[:, :2])
        np.testing.assert_array_equal(group["descriptors"], expected.descriptors.T)
        np.testing.assert_array_equal(group["scales"], expected.keypoints[:, 2])
        assert group["image_size"][:].tolist() == [120, 90]
        assert group["scores"].shape == group["oris"].shape == (25,)
    with pytest.raises(ValueError, match="other settings"):
        hloc.stored_names(path, Settings(upright=True).to_json())
    path.write_text("something else")
    with pytest.raises(ValueError, match="not an HDF5 file"):
        hloc.stored_names(path, made)


def test_colmaps_database(described):
    pycolmap = pytest.importorskip("pycolmap")
    path, made = described / "d.db", SETTINGS.to_json()
    for name in ("a.png", "sub/b.png"):
        database.add_features(path, described / "features", [name], made, described / "in")
    assert database.stored_names(path, made) == {"a.png", "sub/b.png"}
    with pycolmap.Database.open(path) as base:
        image = base.read_image_with_name("sub/b.png")
        stored = np.array(base.read_keypoints(image.image_id))
        camera = base.read_camera(image.camera_id)
    expected = load_features(described / "features", "sub/b.png").keypoints
    np.testing.assert_allclose(stored[:, :2], expected[:, :2] + 0.5)
    assert (camera.width, camera.height) == (120, 90)
    with pytest.raises(ValueError, match="cameras: expected one of auto"):
        database.add_features(path, described, ["x"], made, described, cameras="many")
    with pytest.raises(ValueError, match="camera_model: expected one of"):
        database.add_features(path, described, ["x"], made, described, camera_model="EYE")
    (described / "text.db").write_text("something else, longer than a header of sqlite")
    with pytest.raises(ValueError, match="not a COLMAP database written by mkdesc"):
        database.stored_names(described / "text.db", made)
    for settings in ([], [(None,)]):
        with closing(sqlite3.connect(path)) as base, base:
            base.execute("DELETE FROM mkdesc")
            base.executemany("INSERT INTO mkdesc VALUES (?)", settings)
        with pytest.raises(ValueError, match=r"d\.db: does not say how its features were made"):
            database.stored_names(path, made)
    sqlite3.connect(described / "other.db").execute("CREATE TABLE images (name TEXT)")
    with pytest.raises(ValueError, match="not a COLMAP database written by mkdesc"):
        database.stored_names(described / "other.db", made)


def test_colmap_wants_one_folder():
    with pytest.raises(ValueError, match=r"COLMAP expects all images below one folder"):
        database.common_folder({"a.png": Path("x/a.png"), "b.png": Path("y/b.png")})


def test_all_pairs_come_once_and_in_reach():
    names = [f"{i:03d}" for i in range(150)]
    pairs = list(all_pairs(names))
    assert len(pairs) == len(set(pairs)) == 150 * 149 // 2
    assert all(a < b for a, b in pairs)


def test_pairs_from_a_file(tmp_path):
    file = tmp_path / "pairs.txt"
    file.write_text("# comment\nb.jpg a.jpg\n\na.jpg b.jpg\na.jpg c.jpg\nc.jpg c.jpg\n")
    expected = [("a.jpg", "b.jpg"), ("a.jpg", "c.jpg")]
    assert read_pairs(file, {"a.jpg", "b.jpg", "c.jpg"}) == expected
    for text, message in (
        ("a.jpg d.jpg", r"line 1: no image 'd\.jpg'"),
        ("a.jpg", "line 1: expected two names"),
        ("\n", "no pairs"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_pairs(file, {"a.jpg", "b.jpg"})

"""What other programs find in the files: hloc's groups, COLMAP's keypoints, pairs."""

import sqlite3
from contextlib import closing
from pathlib import Path

import cv2
import numpy as np
import pytest

from mkdesc.features.folder import extract_features
from mkdesc.features.image_features import load_features
from mkdesc.features.settings import Settings
from mkdesc.features.stores import colmap_database as database
from mkdesc.features.stores import hloc
from mkdesc.images.listing import find_images
from mkdesc.matching.nearest import match_descriptors

pytestmark = pytest.mark.usefixtures("colmap_here")

SETTINGS = Settings(max_keypoints=25)


@pytest.fixture
def described(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for name in ("a.png", "sub/b.png"):
        noise = cv2.GaussianBlur(rng.integers(0, 256, (90, 120), np.uint8), (0, 0), 1.5)
        cv2.imwrite(str(tmp_path / "in" / name), cv2.normalize(noise, None, 0, 255, 32))
    images = find_images([tmp_path / "in"])
    extract_features(images, tmp_path / "features", settings=SETTINGS)
    return tmp_path


def test_hlocs_groups(described):
    h5py = pytest.importorskip("h5py")
    path, made = described / "f.h5", SETTINGS.to_json()
    hloc.add_features(path, described / "features", ["a.png"], made)
    hloc.add_features(path, described / "features", ["sub/b.png"], made)
    assert hloc.stored_images(path, made).keys() == {"a.png", "sub/b.png"}
    expected = load_features(described / "features", "sub/b.png")
    with h5py.File(path) as file:
        group = file["sub/b.png"]
        np.testing.assert_array_equal(group["keypoints"], expected.keypoints[:, :2])
        np.testing.assert_array_equal(group["descriptors"], expected.descriptors.T)
        np.testing.assert_array_equal(group["scales"], expected.keypoints[:, 2])
        assert group["image_size"][:].tolist() == [120, 90]
        assert group["scores"].shape == group["oris"].shape == (25,)
    with pytest.raises(ValueError, match="other settings"):
        hloc.stored_images(path, Settings(upright=True).to_json())
    path.write_text("something else")
    with pytest.raises(ValueError, match="not an HDF5 file"):
        hloc.stored_images(path, made)


def test_colmaps_database(described):
    pycolmap = pytest.importorskip("pycolmap")
    path, made = described / "d.db", SETTINGS.to_json()
    for name in ("a.png", "sub/b.png"):
        database.add_features(path, described / "features", [name], made, described / "in")
    assert database.stored_images(path, made).keys() == {"a.png", "sub/b.png"}
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
        database.stored_images(described / "text.db", made)
    for settings in ([], [(None,)]):
        with closing(sqlite3.connect(path)) as base, base:
            base.execute("DELETE FROM mkdesc")
            base.executemany("INSERT INTO mkdesc VALUES (?)", settings)
        with pytest.raises(ValueError, match=r"d\.db: has no record of how it was made"):
            database.stored_images(path, made)
    sqlite3.connect(described / "other.db").execute("CREATE TABLE images (name TEXT)")
    with pytest.raises(ValueError, match="not a COLMAP database written by mkdesc"):
        database.stored_images(described / "other.db", made)


@pytest.mark.parametrize("output", ["float32", "uint8"])
def test_colmaps_matcher_matches_our_descriptors(shared, tmp_path, output):
    """Its pairs are those of our matcher under the same tests, but for what bytes round."""
    pycolmap = pytest.importorskip("pycolmap")
    folder = shared / "data" / "multiview" / "fountain-P11" / "images"
    names = ["0004.jpg", "0005.jpg"]
    (tmp_path / "in").mkdir()
    for name in names:
        image = cv2.imread(str(folder / name), 0)
        cv2.imwrite(str(tmp_path / "in" / name), cv2.resize(image, None, fx=0.5, fy=0.5))
    settings = Settings(max_keypoints=800, output=output)
    extract_features(find_images([tmp_path / "in"]), tmp_path / "features", settings=settings)
    base = tmp_path / "d.db"
    made = settings.to_json()
    database.add_features(base, tmp_path / "features", names, made, tmp_path / "in")
    options = pycolmap.FeatureMatchingOptions(use_gpu=False)
    pycolmap.match_exhaustive(base, options, device=pycolmap.Device.cpu)
    with pycolmap.Database.open(base) as file:
        ids = [file.read_image_with_name(name).image_id for name in names]
        lengths = np.linalg.norm(np.float64(file.read_descriptors(ids[0]).data), axis=1)
        theirs = {tuple(pair) for pair in np.array(file.read_matches(*ids)).tolist()}
        assert file.num_verified_image_pairs() == 1
    assert (abs(lengths - 512) < 30).all()
    here, there = (load_features(tmp_path / "features", name).descriptors for name in names)
    ours = {tuple(pair) for pair in match_descriptors(here, there, ratio=0.8).pairs.tolist()}
    assert len(ours) > 150
    assert len(ours & theirs) > 0.9 * len(ours | theirs)


def test_colmap_wants_one_folder():
    with pytest.raises(ValueError, match=r"COLMAP expects all images below one folder"):
        database.common_folder({"a.png": Path("x/a.png"), "b.png": Path("y/b.png")})

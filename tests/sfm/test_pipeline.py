"""A reconstruction of real photographs, small ones, against the true cameras."""

import itertools
import json

import cv2
import numpy as np
import pytest

from mkdesc.images.batch import Settings
from mkdesc.sfm.pipeline import Mapping, reconstruct

pycolmap = pytest.importorskip("pycolmap")

HOW = Mapping(Settings(max_keypoints=1200, sensitive=True))


@pytest.fixture
def images(shared, tmp_path):
    """Six views of a half of their size."""
    folder = shared / "data" / "multiview" / "fountain-P11" / "images"
    (tmp_path / "images").mkdir()
    for file in sorted(folder.iterdir())[2:8]:
        image = cv2.imread(str(file), 0)
        small = cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
        cv2.imwrite(str(tmp_path / "images" / file.name), small)
    return tmp_path / "images"


def test_cameras_are_where_they_were(shared, images, tmp_path):
    (images / "broken.jpg").write_bytes(b"\xff\xd8")
    out = tmp_path / "model"
    steps = []
    report = reconstruct(images, out, HOW, progress=lambda *step: steps.append(step))
    assert (report.images, report.registered, report.models) == (6, 6, 1)
    assert report.points > 800
    assert report.reprojection_error < 0.6
    assert list(report.bad) == ["broken.jpg"]
    assert {step for step, *_ in steps} == {"describing", "matching", "verifying", "mapping"}

    cameras = shared / "data" / "multiview" / "fountain-P11" / "cameras"
    model = pycolmap.Reconstruction(str(out / "sparse" / "0"))
    found, true = {}, {}
    for image in model.images.values():
        found[image.name] = image.cam_from_world().rotation.matrix()
        numbers = (cameras / f"{image.name}.camera").read_text().split()
        true[image.name] = np.array(numbers[12:21], float).reshape(3, 3).T
    errors = [
        np.linalg.norm(cv2.Rodrigues(found[b] @ found[a].T @ true[a] @ true[b].T)[0])
        for a, b in itertools.combinations(found, 2)
    ]
    assert np.rad2deg(np.median(errors)) < 0.5
    assert (out / "sparse" / "0" / "points.ply").read_bytes().startswith(b"ply")
    assert json.loads((out / "report.json").read_text())["points"] == report.points

    # A second run has nothing left to do; other settings are refused.
    steps.clear()
    stamp = (out / "sparse" / "0" / "points3D.bin").stat().st_mtime_ns
    assert reconstruct(images, out, HOW, progress=lambda *step: steps.append(step)) == report
    assert {step for step, *_ in steps} <= {"describing"}
    assert (out / "sparse" / "0" / "points3D.bin").stat().st_mtime_ns == stamp
    with pytest.raises(ValueError, match=r"other settings \(ratio 0.95 instead of 0.8\)"):
        reconstruct(images, out, Mapping(HOW.settings, ratio=0.8))


def test_scenes_that_have_nothing_in_common(tmp_path, rng):
    (tmp_path / "in").mkdir()
    for name in "ab":
        noise = cv2.GaussianBlur(rng.integers(0, 256, (90, 120), np.uint8), (0, 0), 1.5)
        cv2.imwrite(str(tmp_path / "in" / f"{name}.png"), cv2.normalize(noise, None, 0, 255, 32))
    with pytest.raises(ValueError, match="no model could be made"):
        reconstruct(tmp_path / "in", tmp_path / "out", HOW)
    assert not (tmp_path / "out" / "sparse").exists()
    assert not list((tmp_path / "out").glob(".*"))
    (tmp_path / "in" / "b.png").unlink()
    with pytest.raises(ValueError, match="expected two usable images, got 1"):
        reconstruct(tmp_path / "in", tmp_path / "other", HOW)

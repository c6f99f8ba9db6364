"""Pairs of a database that are not believed, and images that a report has doubts about."""

import json

import numpy as np
import pytest

from mkdesc._support.progress import no_progress
from mkdesc.features.image_features import ImageFeatures
from mkdesc.sfm.doubtful_pairs import ambiguous_pairs, drop_doubtful_pairs, frames_of
from mkdesc.sfm.mapping import verify_pairs
from mkdesc.sfm.report import SfmReport, _weak

pytest.importorskip("cv2")  # before pycolmap, see mkdesc.datasets.colmap.pycolmap_module
pycolmap = pytest.importorskip("pycolmap")

#: Rectified cameras: a match stays in its row.
ROWS = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])


def make_database(path, keypoints):
    """Images of keypoints; the matches of the first one with the others agree on ROWS."""
    with pycolmap.Database.open(path) as base:
        for number, points in enumerate(keypoints, 1):
            camera = pycolmap.Camera.create_from_model_name(number, "SIMPLE_RADIAL", 900, 800, 600)
            base.write_camera(camera, use_camera_id=True)
            image = pycolmap.Image(name=f"{number}.jpg", camera_id=number, image_id=number)
            base.write_image(image, use_image_id=True)
            base.write_keypoints(number, points.astype(np.float32))
        rows = np.repeat(np.arange(len(keypoints[0]), dtype=np.uint32)[:, None], 2, axis=1)
        for other in range(2, len(keypoints) + 1):
            base.write_matches(1, other, rows)
            found = pycolmap.TwoViewGeometry()
            found.config = pycolmap.TwoViewGeometryConfiguration.UNCALIBRATED
            found.F, found.inlier_matches = ROWS, rows
            base.write_two_view_geometry(1, other, found)


def agreeing(path):
    """Matches that agree, and all of them, of the first image with either of the others."""
    with pycolmap.Database.open(path) as base:
        pairs = [(1, 2), (1, 3)]
        agree = [len(base.read_two_view_geometry(*pair).inlier_matches) for pair in pairs]
        return agree, [len(base.read_matches(*pair)) for pair in pairs]


@pytest.mark.parametrize("columns", [4, 2])
def test_pairs_without_coherence_are_dropped(tmp_path, rng, columns):
    """One image shows the same, shifted; one has matches anywhere on their lines."""
    base = tmp_path / "d.db"
    x, y = (axis.ravel() for axis in np.meshgrid(np.arange(40, 780, 60), np.arange(40, 580, 50)))
    first = np.column_stack([x, y, np.full(len(x), 5), np.zeros(len(x))]).astype(float)
    moved, mixed = first.copy(), first.copy()
    moved[:, 0] += 30 + 0.1 * first[:, 1]
    mixed[:, 0] = rng.uniform(10, 790, len(x))
    mixed[:, 3] = rng.uniform(0, 6, len(x))
    make_database(base, [points[:, :columns] for points in (first, moved, mixed)])
    drop_doubtful_pairs(base, no_progress)
    agree, matches = agreeing(base)
    # Positions alone, as others write them, say nothing of how neighbours move.
    assert agree == [len(x), 0 if columns == 4 else len(x)]
    assert matches == [len(x)] * 2  # these stay


def shifted_pairs():
    """Three views, (117, 4) each, of places that move together."""
    x, y = (axis.ravel() for axis in np.meshgrid(np.arange(40, 780, 60), np.arange(40, 580, 50)))
    first = np.column_stack([x, y, np.full(len(x), 5), np.zeros(len(x))]).astype(float)
    return [first + [shift, 0, 0, 0] * (1 + first[:, 1:2] / 600) for shift in (0, 20, -20)]


@pytest.mark.parametrize("where", ["folder", "database", "nowhere"])
def test_shifts_of_identical_windows_are_dropped_and_named(tmp_path, rng, where):
    """The third image shows eleven things again and again; those of the others all differ."""
    base = tmp_path / "d.db"
    keypoints = shifted_pairs()
    count = len(keypoints[0])
    make_database(base, keypoints)
    own = rng.integers(0, 120, (count, 128), np.uint8)
    windows = own[np.arange(count) % 11] + rng.integers(0, 3, own.shape, np.uint8)
    for number, data in enumerate((own, own, windows), 1):
        if where == "folder":
            scores, size = np.zeros(count, np.float32), np.array([800, 600])
            points = keypoints[number - 1].astype(np.float32)
            found = ImageFeatures(points, scores, data.astype(np.float32), size)
            np.savez(tmp_path / f"{number}.jpg.npz", **vars(found))
        elif where == "database":
            described = pycolmap.FeatureDescriptors(pycolmap.FeatureExtractorType.SIFT, data)
            with pycolmap.Database.open(base) as file:
                file.write_descriptors(number, described)
    features = tmp_path if where == "folder" else None
    drop_doubtful_pairs(base, no_progress, features)
    lost = where != "nowhere"
    assert agreeing(base) == ([count, 0 if lost else count], [count, count])
    assert ambiguous_pairs(base) == ([("1.jpg", "3.jpg")] if lost else [])
    # COLMAP verifies it anew, as in a run that goes on, and it is dropped anew.
    verify_pairs(base, 0, no_progress)
    drop_doubtful_pairs(base, no_progress, features)
    assert ambiguous_pairs(base) == ([("1.jpg", "3.jpg")] if lost else [])


def test_frames_of_keypoints():
    known = np.array([[10, 20, 2, np.pi / 2]], np.float32)
    (frame,) = frames_of(known)
    np.testing.assert_allclose(frame[:, 2], [10, 20])
    np.testing.assert_allclose(frame[:, 0] / np.linalg.norm(frame[:, 0]), [0, 1], atol=1e-6)
    shaped = frames_of(np.array([[10, 20, 1, 2, 3, 4]], np.float32))
    np.testing.assert_allclose(shaped, [[[1, 2, 10], [3, 4, 20]]])
    assert frames_of(np.array([[10, 20]], np.float32)) is None
    assert frames_of(np.array([[10, 20, 1, 2, 2, 4]], np.float32)) is None  # flat


def test_an_image_that_hangs_on_one_weak_pair_is_doubtful():
    counts = {("a", "b"): 500, ("a", "c"): 99, ("b", "d"): 100, ("d", "x"): 20, ("e", "f"): 30}
    # c has one weak pair; d a strong one (x is of no model); e and f are all of their model.
    assert _weak([{"a", "b", "c", "d"}, {"e", "f"}], counts) == {"c": ("a", 99)}


def test_a_report_names_who_is_missing_or_doubtful():
    report = SfmReport(
        5, 3, 10, 30, 3.0, 0.5, 1, 6, 4, 900, 700,
        unregistered=["d.jpg", "e.jpg"], weak={"c.jpg": ("a.jpg", 40)},
        ambiguous=[("a.jpg", "d.jpg")],
    )  # fmt: skip
    text = "\n".join(report.lines())
    assert "not registered: d.jpg, e.jpg" in text
    assert "doubtful: c.jpg hangs on 40 matches with a.jpg alone" in text
    assert "ambiguous, not used: a.jpg and d.jpg" in text
    written = report.to_dict({})
    assert SfmReport.from_dict(json.loads(json.dumps(written)), {}) == report
    assert written["unregistered"] == ["d.jpg", "e.jpg"]
    assert written["weak"] == {"c.jpg": ("a.jpg", 40)}

import cv2
import numpy as np
import pytest
from layouts import draw_pairs, write_sequence, write_subset

from mkdesc import MKD
from mkdesc.datasets.colmap import Observations, read_observations
from mkdesc.datasets.hpatches.layout import IMAGES
from mkdesc.heads.whitening import Whitening
from mkdesc.learn import (
    learn_colmap,
    learn_hpatches,
    learn_patches,
    learn_photos,
    learn_phototourism,
)
from mkdesc.learn.colmap import colmap_blocks
from mkdesc.learn.photos import Recipe
from mkdesc.learn.shards import held_out


def noisy_points(rng, points, views, size):
    """Views of smooth random points, view by view for each point."""
    smooth = np.stack(
        [cv2.GaussianBlur(p, (0, 0), size / 12) for p in rng.random((points, size, size))]
    )
    smooth = (smooth - 0.5) * 4 + 0.5
    patches = np.repeat(smooth, views, axis=0) + rng.normal(0, 0.03, (points * views, size, size))
    return (255 * np.clip(patches, 0, 1)).astype(np.uint8)


def whitening():
    return Whitening("gda", 16, ridge=1e-3)


def test_labelled_patches(tmp_path, rng):
    patches = noisy_points(rng, 80, 3, 16)
    names = np.repeat([f"point {i}" for i in range(80)], 3)
    np.savez(tmp_path / "a.npz", patches=patches, labels=names)
    seen = []
    learned = learn_patches(
        tmp_path / "a.npz", None, whitening=whitening(), progress=lambda *news: seen.append(news)
    )
    assert learned.mkd.patch_size == 16
    assert learned.report.points == 80
    assert seen[-1] == ("learning", 240, 240)
    assert learned.source["source"] == "labelled patches a.npz"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"patches": np.zeros((4, 16, 16))}, "expected a .npz with arrays 'patches' and 'labels'"),
        ({"patches": np.zeros((4, 16, 16)), "labels": np.zeros(3, int)}, "labels: expected 4"),
        ({"patches": np.zeros((4, 16, 16)), "labels": np.zeros(4)}, "labels: expected 4 integers"),
        ({"labels": np.zeros(4, int)}, "patches: expected"),
    ],
)
def test_bad_labelled_patches(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=rf"a\.npz: {message}"):
        learn_patches(tmp_path / "a.npz")


def test_phototourism(tmp_path, rng):
    labels = np.repeat(np.arange(60), 3)
    patches = noisy_points(rng, 60, 3, 64)
    pairs = draw_pairs(labels, 100)
    write_subset(tmp_path / "tower", patches, labels, pairs={100: pairs})
    mkd = MKD("cartesian")
    learned = learn_phototourism(tmp_path / "tower", mkd, whitening=whitening())
    assert learned.report.patches == 180
    assert 0 < learned.report.pairs <= 50
    assert learned.source["source"] == "Phototourism tower"
    with pytest.raises(ValueError, match="no file of 7 pairs"):
        learn_phototourism(tmp_path / "tower", mkd, whitening=whitening(), pairs=7)
    (tmp_path / "tower/m50_100_100_0.txt").unlink()
    learned = learn_phototourism(tmp_path / "tower", mkd, whitening=whitening())
    assert learned.report.pairs == (~held_out(np.arange(60))).sum() * 3


def test_hpatches(tmp_path, rng):
    for name in ("i_one", "v_two"):
        views = noisy_points(rng, 20, 16, 65).reshape(20, 16, 65, 65)
        write_sequence(tmp_path, name, {image: views[:, k] for k, image in enumerate(IMAGES)})
    mine = MKD("cartesian", 32)
    learned = learn_hpatches(tmp_path, mine, whitening=whitening())
    assert not mine.resize  # the caller's stays as it is
    assert learned.report.points == 40
    assert learned.report.pairs == (~held_out(np.arange(40))).sum() * 16 * 15 // 2
    assert learned.source["sequences"] == 2
    (tmp_path / "splits.json").write_text(
        '{"a": {"name": "a", "test": ["i_one"], "train": ["v_two"]}}'
    )
    learned = learn_hpatches(
        tmp_path,
        MKD("cartesian", 32),
        whitening=whitening(),
        split="a",
        splits_file=tmp_path / "splits.json",
    )
    assert learned.report.points == 20


def write_texture(path, rng):
    picture = cv2.GaussianBlur(rng.random((240, 320)), (0, 0), 2)
    picture = cv2.normalize(picture, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
    cv2.imwrite(str(path), picture)


def test_photos(tmp_path, rng):
    for i in range(3):
        write_texture(tmp_path / f"{i}.png", rng)
    recipe = Recipe(views=("plain", "hard", "tough"), keypoints_per_photo=150, patch_size=32)
    mkd = MKD("cartesian", 32)
    learned = [
        learn_photos(tmp_path, mkd, whitening=whitening(), recipe=recipe, seed=seed)
        for seed in (0, 0, 1)
    ]
    first, again, other = (found.mkd.whitening.head_.linear().matrix for found in learned)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3
    assert learned[0].source["photographs"] == 3
    assert learned[0].report.fpr95_learned < learned[0].report.fpr95_raw


@pytest.mark.filterwarnings("ignore:skipped")
def test_the_progress_reaches_its_end_without_the_photographs_that_are_skipped(tmp_path, rng):
    for name in ("0.png", "2.png"):
        write_texture(tmp_path / name, rng)
    (tmp_path / "1.png").write_bytes(b"no image")
    cv2.imwrite(str(tmp_path / "3.png"), np.zeros((50, 50), np.uint8))
    recipe = Recipe(views=("plain", "easy"), keypoints_per_photo=40, patch_size=16)
    told = []
    learn_photos(
        tmp_path,
        MKD("cartesian", 16),
        whitening=whitening(),
        progress=lambda *news: told.append(news),
        recipe=recipe,
    )
    assert told[-1] == ("learning", 4, 4)


def test_colmap_with_a_damaged_photograph(tmp_path, rng):
    write_texture(tmp_path / "good.png", rng)
    (tmp_path / "bad.png").write_bytes(b"no image")
    seen = Observations(rng.uniform(20, 200, (500, 2)), np.arange(500))
    with pytest.warns(RuntimeWarning, match=r"skipped: .*bad\.png"):
        (block,) = colmap_blocks({"bad.png": seen, "good.png": seen}, tmp_path)
    assert len(block.patches)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_colmap(shared, tmp_path):
    """Of three of twelve photographs."""
    pytest.importorskip("pycolmap")
    folder = shared / "data/multiview/lund-door"
    for photograph in sorted((folder / "images").iterdir())[:3]:
        (tmp_path / photograph.name).symlink_to(photograph)
    learned = learn_colmap(
        folder / "sparse", tmp_path, mkd=MKD("cartesian", 32), whitening=whitening()
    )
    report = learned.report
    assert report.points > 4000
    assert report.pairs > 5000
    assert report.fpr95_learned < 10 < report.fpr95_raw


def test_colmap_one_folder_deeper(shared, tmp_path):
    pytest.importorskip("pycolmap")
    sparse = shared / "data/multiview/lund-door/sparse"
    (tmp_path / "0").symlink_to(sparse)
    assert read_observations(tmp_path).keys() == read_observations(sparse).keys()


def test_colmap_that_is_not(tmp_path):
    with pytest.raises(ValueError, match="no COLMAP model"):
        learn_colmap(tmp_path, tmp_path)
    pytest.importorskip("pycolmap")
    for name in ("cameras", "images", "points3D"):
        (tmp_path / f"{name}.txt").write_text("garbage of no kind\n")
    with pytest.raises(ValueError, match=r"COLMAP model|no image of this model"):
        learn_colmap(tmp_path, tmp_path)


def test_colmap_without_its_photographs(shared, tmp_path):
    pytest.importorskip("pycolmap")
    with (
        pytest.warns(UserWarning, match="does not exist; left out"),
        pytest.raises(ValueError, match="no keypoint is near any observation"),
    ):
        learn_colmap(shared / "data/multiview/lund-door/sparse", tmp_path)

"""Photographs alone give matching patches, the same for the same seed."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from mkdesc.images.jitter import Jitter, Photometric
from mkdesc.learn.photos import VIEWS, Recipe, list_photos, photo_blocks

PHOTOS = Path(__file__).parents[3] / "shared" / "data" / "photos"

SMALL = Recipe(keypoints_per_photo=30, patch_size=32)


def write_photo(path, seed, shape=(200, 260)):
    noise = np.random.default_rng(seed).integers(0, 256, shape).astype(np.float32)
    smooth = cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 3), None, 0, 255, cv2.NORM_MINMAX)
    cv2.imwrite(str(path), smooth.astype(np.uint8))
    return path


@pytest.fixture
def folder(tmp_path):
    for i in range(3):
        write_photo(tmp_path / f"photo{i}.png", i)
    (tmp_path / "notes.txt").write_text("not a photo")
    return tmp_path


def test_shapes_labels_and_order(folder):
    blocks = list(photo_blocks(folder, SMALL))
    assert [block.path.name for block in blocks] == [f"photo{i}.png" for i in range(3)]
    assert [block.index for block in blocks] == [0, 1, 2]
    labels = np.concatenate([block.labels for block in blocks])
    points = [(index << 32) + point for index in range(3) for point in range(30)]
    np.testing.assert_array_equal(labels, np.repeat(points, len(VIEWS)))
    for block in blocks:
        assert block.patches.shape == (30 * len(VIEWS), 32, 32)
        assert block.patches.dtype == np.uint8


def test_the_seed_decides_and_threads_do_not(folder):
    one = [block.patches for block in photo_blocks(folder, SMALL, seed=1, n_threads=1)]
    same = [block.patches for block in photo_blocks(folder, SMALL, seed=1, n_threads=3)]
    other = [block.patches for block in photo_blocks(folder, SMALL, seed=2)]
    for a, b, c in zip(one, same, other, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a[:: len(VIEWS)], c[:: len(VIEWS)])  # the plain views
        assert (a[1] != c[1]).any()


def test_views_look_alike_and_stronger_changes_less_so(folder):
    patches = np.concatenate([b.patches for b in photo_blocks(folder, SMALL)]).astype(float)
    flat = patches.reshape(-1, len(VIEWS), 32 * 32)
    flat = flat - flat.mean(axis=2, keepdims=True)
    flat /= np.linalg.norm(flat, axis=2, keepdims=True) + 1e-9
    alike = np.median((flat[:, :1] * flat).sum(axis=2), axis=0)
    by_level = {level: alike[i] for i, level in enumerate(VIEWS)}
    assert by_level["plain"] > 0.999
    assert by_level["easy"] > 0.8
    assert by_level["easy"] > by_level["hard"] > by_level["tough"]
    strangers = np.median((flat[:-1, 0] * flat[1:, 0]).sum(axis=1))
    assert by_level["tough"] > strangers + 0.2


def test_no_change_at_all_gives_the_same_patch(folder):
    still = Photometric(0, 0, 0, 0, 0, 100)
    none = replace(SMALL, views=["plain", Jitter(0, 0, 0, 0)], photometric=still)
    for block in photo_blocks(folder, none):
        np.testing.assert_array_equal(block.patches[::2], block.patches[1::2])


def test_bad_photos_are_skipped_with_a_warning(folder):
    (folder / "a_broken.jpg").write_bytes(b"no image")
    cv2.imwrite(str(folder / "b_flat.png"), np.zeros((50, 50), np.uint8))
    with pytest.warns(RuntimeWarning, match="skipped: ") as caught:
        blocks = list(photo_blocks(folder, SMALL))
    assert len(caught) == 2
    assert "a_broken.jpg" in str(caught[0].message)
    assert "b_flat.png: no keypoint" in str(caught[1].message)
    assert [block.index for block in blocks] == [2, 3, 4]
    assert blocks[0].labels[0] == blocks[0].index << 32


def test_none_usable_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no images"):
        list_photos(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        list_photos(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="an empty list"):
        list_photos([])
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    with (
        pytest.warns(RuntimeWarning, match="skipped"),
        pytest.raises(ValueError, match=r"none of 1 could be used.*broken\.jpg"),
    ):
        list(photo_blocks(tmp_path))


def test_stopping_early_is_harmless(folder):
    blocks = photo_blocks(folder, SMALL)
    next(blocks)
    blocks.close()


def test_large_photos_are_reduced(tmp_path):
    write_photo(tmp_path / "large.png", 0, (400, 1000))
    block, whole = (
        next(photo_blocks(tmp_path, replace(SMALL, max_size=side))) for side in (250, None)
    )
    assert (block.patches[0] != whole.patches[0]).any()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("views", ["plain"]),
        ("views", ["plain", "brutal"]),
        ("keypoints_per_photo", 0),
        ("max_size", 5),
    ],
)
def test_bad_recipes_are_refused(name, value):
    with pytest.raises(ValueError, match="expected"):
        Recipe(**{name: value})


@pytest.mark.skipif(not PHOTOS.is_dir(), reason="needs the photographs in ../shared/data/photos")
def test_real_photos():
    block = next(photo_blocks(list_photos(PHOTOS)[:1], SMALL))
    assert block.patches.std() > 10

"""Learning in pieces: however the data are cut and wherever they are described, one model."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context

import cv2
import numpy as np
import pytest
from layouts import draw_pairs, write_sequence, write_subset
from safetensors.numpy import save_file

from mkdesc import MKD, Statistics
from mkdesc._support.files import read_safetensors
from mkdesc.datasets.hpatches.layout import IMAGES
from mkdesc.heads.whitening import Whitening
from mkdesc.learn import (
    TrainingBlock,
    learn_hpatches,
    learn_model,
    learn_patches,
    learn_photos,
    learn_phototourism,
    sources,
)
from mkdesc.learn.file_shards import RowShard, pairs_among, whole_points
from mkdesc.learn.learner import work_folder
from mkdesc.learn.photos import Recipe
from mkdesc.learn.shards import Part, held_out


@dataclass(frozen=True)
class Noise:
    """Points first..last, three views each, in two blocks."""

    first: int
    last: int

    def blocks(self):
        for half in (range(self.first, self.last, 2), range(self.first + 1, self.last, 2)):
            views = []
            for point in half:
                rng = np.random.default_rng(point)
                smooth = cv2.GaussianBlur(rng.random((12, 12)), (0, 0), 1)
                views += [smooth + rng.normal(0, 0.02, (12, 12)) for _ in range(3)]
            patches = (255 * np.array(views).clip(0, 1)).astype(np.uint8)
            yield TrainingBlock(patches, np.repeat(np.array(half), 3))


def cut(n):
    bounds = np.linspace(0, 240, n + 1).astype(int).tolist()
    return [Noise(first, last) for first, last in pairwise(bounds)]


def head_of(learned):
    linear = learned.mkd.effective_head().linear()
    return np.vstack([linear.matrix, linear.centre @ linear.matrix])


@pytest.fixture
def mkd():
    return MKD("cartesian", 12)


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        yield executor


@pytest.mark.parametrize("method", ["gda", "lw", "pcawt"])
def test_one_model_however_data_are_cut(mkd, method):
    whitening = Whitening(method, 16, power=0.75)
    whole = learn_model(cut(1), mkd, whitening=whitening)
    for n in (2, 7):
        parts = learn_model(cut(n), mkd, whitening=whitening)
        np.testing.assert_allclose(
            abs(head_of(parts)), abs(head_of(whole)), atol=1e-6 * abs(head_of(whole)).max()
        )
        assert parts.report.pairs == whole.report.pairs
        assert parts.report.held_out_pairs == whole.report.held_out_pairs
        assert parts.report.fpr95_raw == whole.report.fpr95_raw


def test_processes_send_sums_through_files_and_go_on(mkd, processes, tmp_path):
    whitening = Whitening("lw", 16)
    alone = learn_model(cut(5), mkd, whitening=whitening)
    folder = tmp_path / "parts"
    for _ in range(2):
        found = learn_model(cut(5), mkd, whitening=whitening, workers=processes, parts=folder)
        np.testing.assert_array_equal(head_of(found), head_of(alone))
        assert len(list(folder.glob("part-*"))) == 5
        first = min(folder.glob("part-*"))
        stamp = first.stat().st_mtime_ns
        max(folder.glob("part-*")).unlink()  # killed before the last one
    assert first.stat().st_mtime_ns == stamp
    with pytest.raises(ValueError, match="made with other settings"):
        learn_model(cut(5), mkd, whitening=Whitening("gda", 16), workers=processes, parts=folder)
    with pytest.raises(ValueError, match="parts: expected a folder"):
        learn_model(cut(5), mkd, whitening=whitening, workers=processes)
    (folder / "mine.txt").write_text("of somebody else")
    work_folder(folder).discard()
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]


@pytest.fixture
def part(tmp_path, rng):
    """A file of what is kept of a shard."""
    raw, labels = rng.normal(size=(20, 5)).astype(np.float32), np.repeat(np.arange(10), 2)
    file = tmp_path / "part.safetensors"
    Part(20, 10, Statistics(5).update(raw, labels), raw[:4], labels[:4], ("too small",)).save(file)
    return file


def test_parts_come_back(part, rng):
    found = Part.load(part, 1.0)
    assert (found.patches, found.points, found.statistics.n) == (20, 10, 20)
    assert found.skipped == ("too small",)
    np.testing.assert_array_equal(found.labels, [0, 0, 1, 1])
    assert [file.name for file in part.parent.iterdir()] == ["part.safetensors"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mean", np.zeros((5, 2))),
        ("scatter", np.zeros((5, 4))),
        ("differences", np.full((5, 5), np.nan)),
        ("raw", np.zeros((4, 6), np.float32)),
        ("raw", np.zeros((3, 5), np.float32)),
        ("raw", np.zeros((4, 5), np.int64)),
        ("labels", np.zeros((4, 1), np.int64)),
        ("labels", np.zeros(4)),
        ("counts", np.array([-1, 3])),
        ("seen", np.array([1, 2, 3])),
    ],
)
def test_damaged_parts_are_named(part, name, value):
    tensors, metadata = read_safetensors(part)
    save_file({**tensors, name: value}, part, metadata)
    with pytest.raises(ValueError, match=r"part\.safetensors: damaged; remove it"):
        Part.load(part, 1.0)


@pytest.mark.parametrize("skipped", ["[" * 100_000, "3", "[3]", '"text"', "no JSON"])
def test_damaged_notes_of_parts_are_named(part, skipped):
    tensors, _ = read_safetensors(part)
    save_file(tensors, part, {"skipped": skipped})
    with pytest.raises(ValueError, match=r"part\.safetensors: damaged; remove it"):
        Part.load(part, 1.0)


def test_parts_of_something_that_is_no_text(mkd, processes, tmp_path):
    (tmp_path / "mkdesc.json").write_bytes(b"\xff\xfe")
    (tmp_path / "part-000000.safetensors").touch()
    with pytest.raises(ValueError, match=r"mkdesc\.json: damaged, or not written by mkdesc"):
        learn_model(cut(2), mkd, workers=processes, parts=tmp_path)


def test_parts_of_another_version_are_not_mixed(mkd, processes, tmp_path, monkeypatch):
    learn_model(cut(2), mkd, workers=processes, parts=tmp_path)
    monkeypatch.setattr("mkdesc._support.workfolder.__version__", "0.0.9")
    with pytest.raises(ValueError, match=r"other settings \(mkdesc .* instead of 0\.0\.9\)"):
        learn_model(cut(2), mkd, workers=processes, parts=tmp_path)


def test_shards_that_differ_in_the_middle_of_an_array_are_others(mkd, processes, tmp_path, rng):
    np.savez(tmp_path / "a.npz", patches=smooth_points(rng, 600, 2, 12))
    rows, labels = np.arange(1200), np.repeat(np.arange(600), 2)
    parts = tmp_path / "parts"
    shard = RowShard(str(tmp_path / "a.npz"), rows, labels)
    learn_model([shard], mkd, workers=processes, parts=parts)
    labels = np.where(labels == 300, 301, labels)
    shard = RowShard(str(tmp_path / "a.npz"), rows, labels)
    with pytest.raises(ValueError, match="made with other settings"):
        learn_model([shard], mkd, workers=processes, parts=parts)


def test_millions_of_patches_leave_a_sample_for_the_score(mkd):
    whitening = Whitening("lw", 16)
    every = learn_model(cut(3), mkd, whitening=whitening)
    few = learn_model(cut(3), mkd, whitening=whitening, expected=4_000_000)
    np.testing.assert_array_equal(head_of(few), head_of(every))
    assert 0 < few.report.held_out_pairs < every.report.held_out_pairs


def test_held_out_depends_on_the_label_alone(rng):
    labels = rng.integers(0, 1 << 60, 5000)
    held = held_out(labels)
    assert 0.08 < held.mean() < 0.12
    order = rng.permutation(5000)
    np.testing.assert_array_equal(held_out(labels[order]), held[order])


def test_rows_of_whole_points(rng):
    labels = rng.integers(0, 40, 300)
    parts = list(whole_points(labels, 25))
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(300))
    assert len(parts) > 5
    seen = [set(labels[part]) for part in parts]
    assert sum(map(len, seen)) == len(set(labels))
    first = rng.permutation(300)[:50]
    second = np.array([rng.choice(np.flatnonzero(labels == labels[one])) for one in first])
    found = []
    for part in parts:
        a, b = pairs_among((first, second), part)
        found += zip(part[a], part[b], strict=True)
    assert sorted(found) == sorted(zip(first, second, strict=True))


def smooth_points(rng, points, views, size):
    smooth = [cv2.GaussianBlur(p, (0, 0), size / 12) for p in rng.random((points, size, size))]
    patches = np.repeat((np.stack(smooth) - 0.5) * 4 + 0.5, views, axis=0)
    patches = patches + rng.normal(0, 0.03, patches.shape)
    return (255 * np.clip(patches, 0, 1)).astype(np.uint8)


def photos(folder, rng):
    (folder / "photos").mkdir()
    for name in "abc":
        noise = cv2.GaussianBlur(rng.random((200, 240)), (0, 0), 2)
        image = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX)
        cv2.imwrite(str(folder / "photos" / f"{name}.png"), image.astype(np.uint8))
    (folder / "photos" / "d.png").write_bytes(b"")
    recipe = Recipe(keypoints_per_photo=30, patch_size=32)
    return lambda **who: learn_photos(
        folder / "photos",
        MKD("cartesian", 32),
        whitening=Whitening("gda", 8, ridge=0.01),
        recipe=recipe,
        **who,
    )


def patches(folder, rng):
    views = smooth_points(rng, 90, 3, 16)
    order = rng.permutation(270)
    labels = np.repeat(np.arange(90), 3)[order]
    np.savez(folder / "a.npz", patches=views[order], labels=labels)
    return lambda **who: learn_patches(
        folder / "a.npz", MKD("cartesian", 16), whitening=Whitening("gda", 8, ridge=0.01), **who
    )


def phototourism(folder, rng):
    labels = np.repeat(np.arange(100), 3)
    pairs = draw_pairs(labels, 600)
    write_subset(folder / "subset", smooth_points(rng, 100, 3, 64), labels, pairs={600: pairs})
    return lambda **who: learn_phototourism(
        folder / "subset", MKD("cartesian", 64), whitening=Whitening("gda", 8, ridge=0.01), **who
    )


def hpatches(folder, rng):
    (folder / "h").mkdir()
    for name in ("v_a", "v_b", "i_c"):
        points = smooth_points(rng, 40, 16, 65).reshape(40, 16, 65, 65).swapaxes(0, 1)
        write_sequence(folder / "h", name, dict(zip(IMAGES, points, strict=True)))
    return lambda **who: learn_hpatches(
        folder / "h", MKD("cartesian", 64), whitening=Whitening("gda", 8, ridge=0.01), **who
    )


#: A file of every source, to be replaced.
FILES = {photos: "photos/a.png", patches: "a.npz", phototourism: "subset/patches0000.bmp"}


@pytest.mark.filterwarnings("ignore:skipped")
@pytest.mark.parametrize("how", ["newer", "older", "same size and time"])
@pytest.mark.parametrize("source", [photos, patches, phototourism, hpatches])
def test_parts_of_data_that_were_replaced_are_not_used(
    source, how, tmp_path, rng, processes, monkeypatch, replace_file
):
    monkeypatch.setattr(sources, "SHARD", 100)
    learn = source(tmp_path, rng)
    learn(workers=processes, parts=tmp_path / "parts")
    file = tmp_path / FILES.get(source, "h/v_a/ref.png")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 255
    (tmp_path / "other").write_bytes(data)
    replace_file(file, tmp_path / "other", how)
    with pytest.raises(ValueError, match=r"parts: its inputs have changed \(.*\)"):
        learn(workers=processes, parts=tmp_path / "parts")


@pytest.mark.filterwarnings("ignore:skipped")
@pytest.mark.parametrize("source", [photos, patches, phototourism, hpatches])
def test_every_source_gives_the_same_model_elsewhere(
    source, tmp_path, rng, processes, monkeypatch
):
    monkeypatch.setattr(sources, "SHARD", 100)
    learn = source(tmp_path, rng)
    here = learn()
    there = learn(workers=processes, parts=tmp_path / "parts")
    scale = abs(head_of(here)).max()
    np.testing.assert_allclose(abs(head_of(there)), abs(head_of(here)), atol=1e-5 * scale)
    for fact in ("patches", "points", "pairs", "held_out_pairs"):
        assert getattr(there.report, fact) == getattr(here.report, fact)
    assert there.source == here.source
    assert len(list((tmp_path / "parts").glob("part-*"))) > 1


def test_on_dask(mkd, cluster, tmp_path):
    whitening = Whitening("lw", 16)
    alone = learn_model(cut(4), mkd, whitening=whitening)
    parts = tmp_path / "parts"
    found = learn_model(cut(4), mkd, whitening=whitening, workers=cluster, parts=parts)
    np.testing.assert_array_equal(head_of(found), head_of(alone))

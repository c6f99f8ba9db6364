"""Strips made from sequences: the same surface in every row, whole, and the same for a seed."""

import json

import cv2
import numpy as np
import pytest

from mkdesc.datasets.homographies import read_homography
from mkdesc.datasets.hpatches.make_strips import (
    make_sequence,
    read_sequence,
    thin,
)
from mkdesc.images.cutting import cut_patches
from mkdesc.images.frames import as_frames, frames_from_points
from mkdesc.images.jitter import jitter_homographies
from mkdesc.images.writing import encode_image

STRIPS = ["ref"] + [f"{level}{k}" for level in "eht" for k in range(1, 6)]


def write_sequence(folder, homography_name="H_1_{}", suffix=".png"):
    """A smooth random picture, and five homographies of it."""
    folder.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (340, 400)).astype(np.float32)
    image = cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2.5), None, 0, 255, cv2.NORM_MINMAX)
    image = cv2.merge([image] * 3) if suffix == ".ppm" else image
    cv2.imwrite(str(folder / f"1{suffix}"), image.astype(np.uint8))
    for k in range(2, 7):
        angle = np.deg2rad(6 * k)
        c, s = np.cos(angle), np.sin(angle)
        centre = np.array([200, 170])
        shift = centre - np.array([[c, -s], [s, c]]) @ centre + k
        homography = np.array([[c, -s, shift[0]], [s, c, shift[1]], [k * 4e-5, 0, 1]])
        warped = cv2.warpPerspective(image, homography, (400, 340), flags=cv2.INTER_CUBIC)
        cv2.imwrite(str(folder / f"{k}{suffix}"), np.clip(warped, 0, 255).astype(np.uint8))
        np.savetxt(folder / homography_name.format(k), homography)
    return folder


@pytest.fixture
def sequence(tmp_path):
    return write_sequence(tmp_path / "v_noise")


def read_strips(folder):
    return {name: cv2.imread(str(folder / f"{name}.png"), -1) for name in STRIPS}


def unit(strip):
    flat = strip.reshape(-1, 65 * 65).astype(float)
    flat -= flat.mean(axis=1, keepdims=True)
    return flat / np.linalg.norm(flat, axis=1, keepdims=True)


def test_layout(sequence, tmp_path):
    made = make_sequence(sequence, tmp_path / "out", seed=3, max_patches=25)
    assert made == tmp_path / "out" / "v_noise"
    strips = read_strips(made)
    settings = json.loads((made / "sequence.json").read_text())
    n = settings["patches"]
    assert n > 20
    assert settings["seed"] == 3
    assert all(
        strip.shape == (65 * n, 65) and strip.dtype == np.uint8 for strip in strips.values()
    )
    tables = {file.name for file in made.glob("*.csv")}
    assert tables == {"ref.keypoints.csv"} | {f"{name}.jitter.csv" for name in STRIPS[1:]}
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["v_noise"]  # nothing left


def test_rows_show_the_same_surface(sequence, tmp_path):
    strips = read_strips(make_sequence(sequence, tmp_path / "out", max_patches=60))
    reference = unit(strips["ref"])
    alike = {
        level: np.median([(reference * unit(strips[f"{level}{k}"])).sum(1) for k in range(1, 6)])
        for level in "eht"
    }
    assert alike["e"] > 0.85
    assert alike["e"] > alike["h"] > alike["t"] > 0.3
    strangers = (reference[:-1] * unit(strips["e1"])[1:]).sum(axis=1)
    assert np.abs(np.median(strangers)) < 0.2


def test_the_jitter_files_tell_where_patches_were_cut(sequence, tmp_path):
    made = make_sequence(sequence, tmp_path / "out", max_patches=15)
    keypoints = np.loadtxt(made / "ref.keypoints.csv", delimiter=",", skiprows=1)
    assert keypoints.shape == (15, 5)
    assert (np.diff(keypoints[:, 4]) <= 0).all()
    frames = as_frames(frames_from_points(keypoints[:, :4], side=10))
    jitter = np.loadtxt(made / "t4.jitter.csv", delimiter=",", skiprows=1)
    drawn = np.column_stack([jitter, np.zeros((15, 2))])
    homography = read_homography(sequence / "H_1_5")
    image = cv2.imread(str(sequence / "5.png"), 0)
    patches = cut_patches(image, homography @ frames @ jitter_homographies(drawn), 65)
    difference = patches.reshape(-1, 65).astype(int) - read_strips(made)["t4"]
    assert np.abs(difference).max() <= 1  # the files have nine digits


def test_the_seed_and_the_name_decide(sequence, tmp_path):
    def strip(out, **keywords):
        return read_strips(make_sequence(sequence, tmp_path / out, max_patches=5, **keywords))

    one, same, other = strip("a", seed=1), strip("b", seed=1), strip("c", seed=2)
    renamed = strip("d", seed=1, name="i_noise")
    assert all((one[name] == same[name]).all() for name in STRIPS)
    assert one["h3"].shape == other["h3"].shape
    assert (one["h3"] != other["h3"]).any()
    assert (one["h3"] != renamed["h3"]).any()


def test_what_is_there_is_kept_unless_told_otherwise(sequence, tmp_path):
    make_sequence(sequence, tmp_path, name="strips", max_patches=4)
    with pytest.raises(FileExistsError, match="strips exists already"):
        make_sequence(sequence, tmp_path, name="strips")
    again = make_sequence(sequence, tmp_path, name="strips", max_patches=6, overwrite=True)
    assert read_strips(again)["ref"].shape == (6 * 65, 65)


@pytest.mark.parametrize("moment", ["before", "meanwhile"])
def test_files_of_others_among_the_strips_are_not_removed(sequence, tmp_path, monkeypatch, moment):
    made = make_sequence(sequence, tmp_path, name="strips", max_patches=4)
    before = {file.name: file.read_bytes() for file in made.iterdir()}
    notes = made / "notes.txt"
    if moment == "before":
        notes.write_text("mine")
    else:

        def encode(*given):
            notes.write_text("mine")
            return encode_image(*given)

        monkeypatch.setattr("mkdesc.datasets.hpatches.make_strips.encode_image", encode)
    with pytest.raises(FileExistsError, match=r"strips: .* for example notes\.txt"):
        make_sequence(sequence, tmp_path, name="strips", max_patches=6, overwrite=True)
    assert notes.read_text() == "mine"
    assert {name: (made / name).read_bytes() for name in before} == before
    assert {folder.name for folder in tmp_path.iterdir()} == {"strips", "v_noise"}


def test_a_failure_leaves_nothing_behind(sequence, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("mkdesc.datasets.hpatches.make_strips._write_table", fail)
    with pytest.raises(OSError, match="disk full"):
        make_sequence(sequence, tmp_path / "out", max_patches=5)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("name", ["H_1_{}", "H1to{}p", "H_1_{}.txt", "H1to{}p.txt"])
@pytest.mark.parametrize("suffix", [".png", ".ppm", ".jpg"])
def test_file_names(name, suffix, tmp_path):
    images, homographies = read_sequence(write_sequence(tmp_path / "s", name, suffix))
    assert len(images) == 6
    assert len(homographies) == 5
    assert images[0].shape == (340, 400)


def test_bad_sequences_are_named(sequence, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder"):
        make_sequence(tmp_path / "nowhere", tmp_path)
    with pytest.raises(ValueError, match="max_patches: expected"):
        make_sequence(sequence, tmp_path / "out", max_patches=0)
    with pytest.raises(ValueError, match="no patch is inside all images"):
        make_sequence(sequence, tmp_path / "out", side=500)
    (sequence / "H1to3p").write_text("1 0 0 0 1 0 0 0 1")
    with pytest.raises(ValueError, match="only one of H_1_3, H1to3p"):
        make_sequence(sequence, tmp_path / "out")
    (sequence / "H1to3p").unlink()
    for text, message in {
        "1 0 0 0 1": "expected 3 x 3 numbers, got 5",
        "a b c d e f g h i": "could not convert",
        "1 0 0 1 0 0 0 0 1": "not a homography",
        "1e200 0 0 0 1e200 0 0 0 1": "not a homography",
        "1 0 0 0 1 0 0 0 0": "not a homography",
    }.items():
        (sequence / "H_1_3").write_text(text)
        with pytest.raises(ValueError, match=f"H_1_3: {message}"):
            make_sequence(sequence, tmp_path / "out")
    (sequence / "H_1_3").unlink()
    with pytest.raises(FileNotFoundError, match="expected one of H_1_3, H1to3p"):
        make_sequence(sequence, tmp_path / "out")
    (sequence / "4.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"expected one of 4\.png"):
        make_sequence(sequence, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_thinning_keeps_the_first_of_those_that_overlap():
    points = np.array([[0, 0, 2, 0], [0, 0, 2, 90], [0, 0, 1, 0], [6, 0, 2, 0], [0.1, 0, 1.9, 0]])
    assert thin(points, 0.5, side=10).tolist() == [0, 2, 3]
    assert thin(points, 1.0, side=10).tolist() == [0, 1, 2, 3, 4]
    assert thin(points[:0]).tolist() == []


def test_a_real_sequence(shared, tmp_path):
    leuven = shared / "data" / "sequences" / "leuven"
    strips = read_strips(make_sequence(leuven, tmp_path, max_patches=60))
    alike = (unit(strips["ref"]) * unit(strips["e1"])).sum(axis=1)
    assert np.median(alike) > 0.8

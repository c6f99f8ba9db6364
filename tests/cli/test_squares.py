"""Commands with a model of two squares, and with bits."""

import json

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.batches import describe_file
from mkdesc.evaluation.contenders.registry import get_descriptor
from mkdesc.evaluation.photographs.base import Photograph
from mkdesc.evaluation.photographs.methods import get_method
from mkdesc.explorer.data import encode_model
from mkdesc.features.image_features import load_features
from mkdesc.retrieval import build_index
from mkdesc.visual.inspection_figure import inspect_pair
from mkdesc.visual.typical import typical_scores
from mkdesc.visual.whitenings import as_head


@pytest.fixture(scope="module")
def folder(tmp_path_factory, look_at):
    """Two photographs of one scene, and a model ``two.safetensors``."""
    root = tmp_path_factory.mktemp("squares")
    noise = np.random.default_rng(0).integers(0, 256, (200, 240)).astype(np.float32)
    image = cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2), None, 0, 255, 32).astype(np.uint8)
    (root / "photos").mkdir()
    cv2.imwrite(str(root / "photos/a.png"), image)
    cv2.imwrite(str(root / "photos/b.png"), image[10:, 20:])
    mkdesc.save_model(look_at(12, 30), root / "two.safetensors")
    return root


def test_features_of_a_folder(run, folder):
    model, out = folder / "two.safetensors", folder / "f"
    done = run("features", folder / "photos", "-o", out, "--model", model, "--keypoints", 50)
    assert done.returncode == 0, done.stderr
    image = cv2.imread(str(folder / "photos/a.png"), cv2.IMREAD_GRAYSCALE)
    expected = mkdesc.Features(50, model=model).extract(image)[1]
    np.testing.assert_array_equal(load_features(out, "a.png").descriptors, expected)
    again = ["features", folder / "photos", "-o", out, "--model", model, "--keypoints", 50]
    assert "2 of 2 images" in run(*again).stdout
    other = run(*again, "--side", "10,25")
    assert other.returncode == 2
    assert "made with other settings (side" in other.stderr
    wrong = run(*again[:-1], 50, "--side", "10")
    assert wrong.returncode == 2
    assert "side: expected 2 for this model, got 10" in wrong.stderr


def test_stacks_of_patches_in_files(run, folder, look_at):
    stacks = np.random.default_rng(0).integers(0, 256, (9, 2, 24, 24), np.uint8)
    expected = look_at(12, 30).transform(stacks)
    np.save(folder / "stacks.npy", stacks)
    np.save(folder / "fortran.npy", np.asfortranarray(stacks))
    np.savez_compressed(folder / "stacks.npz", patches=stacks)
    out = folder / "d.npy"
    for name in ("stacks.npy", "fortran.npy", "stacks.npz"):
        done = run("describe", folder / name, "-o", out, "--model", folder / "two.safetensors")
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(np.load(out), expected)
        out.unlink()
    np.save(folder / "single.npy", stacks[:, 0])
    done = run("describe", folder / "single.npy", "-o", out, "--model", folder / "two.safetensors")
    assert done.returncode == 2
    assert "has 1 square(s) of each keypoint, but the model looks at 2" in done.stderr
    done = run("describe", folder / "stacks.npy", "-o", out, "--model", "paper-64")
    assert done.returncode == 2
    assert not out.exists()


def test_stacks_in_zarr_arrays(folder, look_at):
    zarr = pytest.importorskip("zarr")
    stacks = np.random.default_rng(0).integers(0, 256, (9, 2, 24, 24), np.uint8)
    zarr.save(folder / "stacks.zarr", stacks)
    model = str(folder / "two.safetensors")
    assert describe_file(folder / "stacks.zarr", folder / "z.npy", model=model) == (9, 16)
    np.testing.assert_array_equal(np.load(folder / "z.npy"), look_at(12, 30).transform(stacks))


def test_a_card_names_its_sides(run, folder):
    assert "12 and 30 sigma" in run("models", folder / "two.safetensors").stdout


def test_an_index_finds_by_two_squares(folder, look_at, run):
    model = folder / "two.safetensors"
    for _ in range(2):  # the second run goes on from the settings that it stored
        done = run("index", folder / "photos", "-o", folder / "index", "--model", model)
        assert done.returncode == 0, done.stderr
    settings = mkdesc.features.settings.Settings(output="bits")
    with pytest.raises(ValueError, match=r"output: an index compares numbers; .* got bits"):
        build_index(folder / "photos", folder / "bits", settings)


def test_bits_in_commands(run, folder):
    pair = [folder / "photos/a.png", folder / "photos/b.png"]
    out = folder / "matches.json"
    done = run("match", *pair, "--dtype", "bits", "-o", out, "--keypoints", 200)
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["verdict"] == "verified"
    done = run("features", folder / "photos", "-o", folder / "b", "--dtype", "bits")
    assert done.returncode == 0, done.stderr
    found = load_features(folder / "b", "a.png").descriptors
    assert (found.dtype, found.shape[1]) == (np.uint8, 16)
    for name in ("f.h5", "f.db"):
        done = run("features", folder / "photos", "-o", folder / name, "--dtype", "bits")
        assert done.returncode == 2
        assert "compares numbers; expected float32, int8 or uint8, got bits" in done.stderr
        assert not (folder / name).exists()


def test_a_method_of_bits_has_their_hamming_distances(folder):
    photograph = Photograph("a", cv2.imread(str(folder / "photos/a.png"), 0))
    found = get_method("mkdesc+bits").extract(photograph, 40).descriptors
    packed = mkdesc.Features(40, output="bits").extract(photograph.gray)[1]
    differ = np.bitwise_count(packed[:, None] ^ packed).sum(axis=2)
    np.testing.assert_allclose(((found[:, None] - found) ** 2).sum(axis=2), differ)


def test_what_shows_one_square_says_so(folder, look_at):
    two, name = look_at(12, 30), str(folder / "two.safetensors")
    patch = np.random.default_rng(0).random((24, 24))
    for refused in (
        lambda: get_descriptor(name),
        lambda: encode_model("two", two, "file"),
        lambda: inspect_pair(patch, patch, two),
        lambda: as_head(two, "extended-24"),
    ):
        with pytest.raises(
            ValueError, match=r"looks at 2 squares of every keypoint, but .* shows"
        ):
            refused()
    found = typical_scores(look_at(12, 30, head=None))
    assert found.matches.median > found.others.high


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bits"])
def test_descriptors_of_bytes_and_bits_in_files(run, tmp_path, dtype):
    patches = np.random.default_rng(0).integers(0, 256, (9, 32, 32), np.uint8)
    np.save(tmp_path / "p.npy", patches)
    out = tmp_path / "d.npy"
    done = run("describe", tmp_path / "p.npy", "-o", out, "--dtype", dtype)
    assert done.returncode == 0, done.stderr
    model = mkdesc.load_model("extended").set_params(output=dtype)
    np.testing.assert_array_equal(np.load(out), model.transform(patches))
    assert run("describe", tmp_path / "p.npy", "-o", out).returncode == 0  # it is of its own kind
    assert np.load(out).dtype == np.float32
    np.save(out, model.transform(patches))  # the same numbers, but somebody else's file
    assert run("describe", tmp_path / "p.npy", "-o", out).returncode == 2
    assert np.load(out).dtype != np.float32

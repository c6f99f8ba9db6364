"""The command line as a user meets it."""

import re
import signal
import time
from importlib.util import find_spec

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.cli import info
from mkdesc.learn.shards import held_out
from mkdesc.models import read_card


@pytest.fixture
def patches(rng):
    return rng.integers(0, 256, (9, 16, 16), np.uint8)


def test_describe(tmp_path, patches, run):
    np.save(tmp_path / "in.npy", patches)
    done = run("describe", tmp_path / "in.npy", "-o", tmp_path / "out.npy", "--resize")
    assert done.returncode == 0, done.stderr
    expected = mkdesc.describe(patches, resize=True)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-5)


def test_describe_without_whitening(tmp_path, patches, run):
    np.savez(tmp_path / "in.npz", patches)
    spec = "rho(4,2)*theta(8,3)"
    done = run("describe", tmp_path / "in.npz", "-o", tmp_path / "out.npy", "--raw", spec)
    assert done.returncode == 0, done.stderr
    expected = mkdesc.MKD(spec, patch_size=16).transform(patches)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, patches, run):
    bad = patches / np.float32(255)
    bad[5, 0, 0] = np.nan
    np.save(tmp_path / "in.npy", bad)
    done = run("describe", tmp_path / "in.npy", "-o", tmp_path / "out.npy", "--resize")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1] == "error: patches[5] has NaN or infinity"
    assert [path.name for path in tmp_path.iterdir()] == ["in.npy"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.npy", "-o", "out.npy"], "error: missing.npy does not exist"),
        (["in.npy", "-o", "out.txt"], "error: --output: expected a name ending in .npy, .zarr"),
        (
            ["in.npy", "-o", "nowhere/out.npy", "--resize"],
            "error: --output: the folder nowhere",
        ),
        (["in.npy", "-o", "out.npy", "--threads", "0"], "error: --threads: expected"),
        (["in.npy", "-o", "out.npy", "--raw", "x"], "error: parametrization 'x'"),
        (["in.npy", "-o", "out.npy"], "error: patches: expected 64 x 64 px"),
        (["in.npy", "-o", "out.npy", "--model", "gone"], "error: no model 'gone': neither"),
        (["in.npy", "-o", "in.npy", "--resize"], "in.npy: is an input"),
        (["in.npy", "-o", "out.npy", "--threads", "x"], "error: Invalid value for '--threads'"),
        (["in.npy", "-o", "out.npy", "--bogus"], "error: No such option"),
        (
            ["in.npy", "-o", "out.npy", "--raw", "theta(8,99999999999)"],
            "error: parametrization 'theta(8,9999999",
        ),
        (["in.npy", "-o", "o.npy", "--raw", "polar", "--model", "polar"], "error: raw and model"),
    ],
)
def test_bad_arguments(tmp_path, patches, arguments, message, run):
    """One line each, and exit code 2."""
    np.save(tmp_path / "in.npy", patches)
    done = run("describe", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_after_ctrl_c_the_same_command_goes_on(tmp_path, run, start):
    patches = np.arange(256, dtype=np.uint8).repeat(320)[:80_000, None, None]
    patches = patches ^ np.arange(256, dtype=np.uint8).reshape(16, 16)
    np.save(tmp_path / "in.npy", patches)
    command = ("describe", "in.npy", "-o", "out.npy", "--resize")
    child = start("-m", "mkdesc", *command, cwd=tmp_path)
    parts = tmp_path / "out.npy.parts"
    for _ in range(400):  # until it has begun to write
        if list(parts.glob("part-*")) or child.poll() is not None:
            break
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Traceback" not in errors
    assert "interrupted; run the same command again to resume" in errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npy", "out.npy.parts"]
    before = {file: file.stat().st_mtime_ns for file in parts.glob("part-*")}
    assert 0 < len(before) < 5
    done = run(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npy", "out.npy"]
    found = np.load(tmp_path / "out.npy", mmap_mode="r")
    some = [0, 16_383, 16_384, 50_000, 79_999]
    np.testing.assert_allclose(found[some], mkdesc.describe(patches[some], resize=True), atol=1e-5)


def test_version_and_info(run):
    assert run("--version").stdout == f"mkdesc {mkdesc.__version__}\n"
    shown = run("info").stdout
    assert "numba" in shown
    backends = next(line for line in shown.splitlines() if line.startswith("backends"))
    torch = [", torch"] if find_spec("torch") else []
    assert backends.split(maxsplit=1)[1] == "".join(["cpu, numpy, reference", *torch])


def test_info_lists_the_backends_that_are_there(monkeypatch, capsys):
    monkeypatch.setattr("mkdesc.cli.info.find_spec", lambda name: None)
    info.command()
    assert capsys.readouterr().out.splitlines()[-1].split()[1:] == ["cpu,", "numpy,", "reference"]


def test_help_names_the_commands(run):
    assert "describe" in run("--help").stdout


def test_models(run):
    listed = run("models").stdout
    assert all(name in listed for name in mkdesc.bundled_models())
    shown = run("models", "photo").stdout
    assert "keypoints of photographs: what Features, match, index and sfm use" in shown
    assert "128 numbers each" in shown
    assert not re.search("power|l2|sha256|extended-24|gda", shown)  # words for those who ask
    shown = run("models", "paper", "--verbose").stdout
    lines = dict(line.split("  ", 1) for line in shown.splitlines())
    facts = {name.strip(): value.strip() for name, value in lines.items()}
    assert facts["head"] == "power 0.75, l2, 238 -> 128, l2"
    assert facts["whitening"] == "gda"
    assert facts["side"] == "24 sigma"
    assert "plain photographs" in shown
    missing = run("models", "nothing")
    assert missing.returncode == 2
    assert missing.stderr.startswith("error: no model 'nothing'")


@pytest.fixture
def labelled(tmp_path, rng):
    points = np.repeat(rng.random((120, 16, 16)), 3, axis=0)
    noisy = np.clip(points + rng.normal(0, 0.05, points.shape), 0, 1)
    file = tmp_path / "train.npz"
    np.savez(file, patches=(255 * noisy).astype(np.uint8), labels=np.repeat(np.arange(120), 3))
    return file


def test_learn_from_labelled_patches(tmp_path, labelled, patches, run):
    out = tmp_path / "model.safetensors"
    done = run("learn", "patches", labelled, "-o", out, "--dims", "24", "--ridge", "1e-3")
    assert done.returncode == 0, done.stderr
    pairs = 3 * (~held_out(np.arange(120))).sum()
    assert f"360 patches of 120 points, {pairs} matching pairs" in done.stdout
    assert f"held out: {2 * 120 - 2 * pairs // 3} matching pairs, FPR95" in done.stdout
    assert mkdesc.load_model(out).transform(patches).shape == (9, 24)
    again = tmp_path / "again.npy"
    np.save(tmp_path / "in.npy", patches)
    done = run("describe", tmp_path / "in.npy", "-o", again, "--model", out)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(again), mkdesc.load_model(out).transform(patches))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["photos", "nowhere", "-o", "m.safetensors"], "error: nowhere does not exist"),
        (["photos", ".", "-o", "m.safetensors"], "error: .: no images"),
        (["photos", ".", "-o", "m.pkl"], "error: --output: expected a name ending in .safe"),
        (["patches", "train.npz", "-o", "m.safetensors", "--method", "zca"], "error: --method: e"),
        (
            ["patches", "train.npz", "-o", "no/m.safetensors"],
            "error: no/m.safetensors: the folder no does not exist",
        ),
        (["patches", "train.npz", "-o", "m.safetensors", "--head", "cnn"], "error: --head: exp"),
        (["patches", "train.npz", "-o", "m.safetensors", "--steps", "9"], "error: --steps, --lim"),
        (["colmap", ".", ".", "-o", "m.safetensors"], "error: .: no COLMAP model"),
        (["phototourism", ".", "-o", "m.safetensors"], "error: .: no sheets"),
        (["hpatches", ".", "-o", "m.safetensors"], "error: "),
    ],
)
def test_nothing_to_learn_from(tmp_path, labelled, arguments, message, run):
    done = run("learn", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith(message)
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["train.npz"]


def test_learn_a_head_and_go_on(tmp_path, labelled, run):
    out, more = tmp_path / "m.safetensors", tmp_path / "more.safetensors"
    how = ["--ridge", "1e-3", "--dims", "24", "--device", "cpu"]
    head = ["--head", "mlp", "--hidden", "16", "--rank", "32", "--steps", "12"]
    done = run("learn", "patches", labelled, "-o", out, *how, *head)
    assert done.returncode == 0, done.stderr
    for name in ("raw", "linear", "trained"):
        assert f"% {name}" in done.stdout
    assert str(mkdesc.load_model(out).head) == (
        "power 0.75, l2, 238 -> 32, 32 -> 40, relu 24, 40 -> 24, l2"
    )
    learned = read_card(out).learned_from
    assert (learned["head"], learned["hidden"], learned["steps"]) == ("mlp", 16, 12)
    how += ["--steps", "5", "--from", out]
    done = run("learn", "patches", labelled, "-o", more, *how)
    assert done.returncode == 0, done.stderr
    assert str(mkdesc.load_model(more).head) == str(mkdesc.load_model(out).head)
    assert read_card(more).learned_from["began_as"] == str(mkdesc.load_model(out).head)


def test_interrupted_training_leaves_a_model(tmp_path, labelled, start, monkeypatch):
    out = tmp_path / "m.safetensors"
    how = ["--ridge", "1e-3", "--head", "linear", "--limit", "300", "--device", "cpu"]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with start("-m", "mkdesc", "learn", "patches", labelled, "-o", out, *how) as process:
        seen = ""
        while "loss" not in seen:  # it has begun
            news = process.stderr.read(1)
            assert news, seen
            seen += news
        process.send_signal(signal.SIGINT)
        seen += process.stderr.read() + process.stdout.read()
    assert process.returncode == 0, seen
    assert "this is the best until then" in seen
    assert mkdesc.load_model(out).effective_head().dims_out == 128
    assert read_card(out).learned_from["interrupted"] is True


def test_learn_as_another_model_was_learned(tmp_path, rng, run):
    for i in range(3):
        picture = cv2.GaussianBlur(rng.random((200, 260)), (0, 0), 2)
        picture = cv2.normalize(picture, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
        cv2.imwrite(str(tmp_path / f"{i}.png"), picture)
    out = tmp_path / "m.safetensors"
    few = ["--keypoints", "40", "--dims", "16"]
    done = run("learn", "photos", tmp_path, "-o", out, "--like", "photo", *few)
    assert done.returncode == 0, done.stderr
    mine, photo = read_card(out), read_card("photo")
    for name in ("parametrization", "patch_size"):
        assert getattr(mine, name) == getattr(photo, name)
    assert mine.method == "gda"  # which needs no PyTorch, for one square
    for name in ("power", "ridge"):
        assert mine.params[name] == photo.learned_from["head"][name]
    assert (mine.learned_from["side"], mine.side) == (24, 20)
    assert mine.dims == 16  # what is given counts
    assert mine.learned_from["keypoints"] == 40
    done = run("learn", "photos", tmp_path, "-o", out, "--like", "photo", *few, "--side", "16")
    assert done.returncode == 0, done.stderr
    assert read_card(out).side == read_card(out).learned_from["side"] == 16
    few = ["--dims", "16", "--use-side", "18"]
    done = run("learn", "photos", tmp_path, "-o", out, "--like", "photo", *few)
    assert done.returncode == 0, done.stderr
    assert (read_card(out).side, read_card(out).learned_from["side"]) == (18, 24)
    assert read_card(out).learned_from["keypoints"] == 1000


def test_only_models_of_photographs_can_be_followed(tmp_path, labelled, run):
    model = tmp_path / "m.safetensors"
    done = run("learn", "patches", labelled, "-o", model, "--dims", "24", "--ridge", "1e-3")
    assert done.returncode == 0, done.stderr
    done = run("learn", "photos", tmp_path, "-o", "x.safetensors", "--like", model)
    assert done.returncode == 2
    assert "m.safetensors was not learned from photographs" in done.stderr


@pytest.mark.parametrize("arguments", [["features", "", "-o", "out"], ["demo", ""]])
def test_empty_arguments_are_refused(run, tmp_path, arguments):
    """As ``"$PHOTOS"`` of a script that does not set it: it would mean the current folder."""
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: an argument is empty; is a variable of a script not set?\n"
    assert not list(tmp_path.iterdir())

"""``mkdesc match``, ``features`` and ``sfm`` as a user meets them."""

import json
import re
import shutil
import signal
import time

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from mkdesc.belief import judgement
from mkdesc.belief.judgement import Verdict
from mkdesc.cli.app import make_app
from mkdesc.sfm.report import SfmReport


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    noise = cv2.GaussianBlur(rng.integers(0, 256, (240, 300), np.uint8), (0, 0), 2)
    image = cv2.normalize(noise, None, 0, 255, 32)
    turn = cv2.getRotationMatrix2D((150, 120), 20, 0.9)
    cv2.imwrite(str(tmp_path / "a.png"), image)
    cv2.imwrite(str(tmp_path / "b.png"), cv2.warpAffine(image, turn, (300, 240)))
    cv2.imwrite(str(tmp_path / "flat.png"), np.full((50, 50), 9, np.uint8))
    other = cv2.GaussianBlur(rng.integers(0, 256, (60, 60), np.uint8), (0, 0), 1)
    cv2.imwrite(str(tmp_path / "other.png"), other)
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_match_counts_and_draws(folder, run):
    done = run("match", "a.png", "b.png", "-o", "m.png", "--geometry", "homography", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "keypoints" in lines[0]
    mutual, verified = (int(word) for word in lines[1].replace(",", "").split() if word.isdigit())
    assert mutual >= verified > 100
    assert lines[2] == "written: m.png"
    picture = cv2.imread(str(folder / "m.png"))
    assert picture.shape[1] > 600
    assert np.ptp(picture.astype(int), axis=2).max() > 100  # coloured lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["match", "a.png", "gone.png"], "gone.png"),
        (["match", "a.png", "broken.jpg"], "error: broken.jpg: truncated"),
        (["match", "gone.png", "b.png", "-o", "m.gif"], "error: m.gif: expected a name ending"),
        (["match", "gone.png", "b.png", "-o", "no/m.png"], "error: no/m.png: the folder no does"),
        (["match", "a.png", "b.png", "--max-pixels", "99"], "error: a.png: 300 x 240 px, exp"),
        (
            ["match", "a.png", "broken.jpg", "--box", "0,0,999,10", "-o", "m.png"],
            "error: --box: expected left < right <= 300 and top < bottom <= 240, all >= 0, got",
        ),
        (["match", "a.png", "b.png", "--geometry", "flat"], "error: --geometry: expected one of"),
        *(
            (["match", "a.png", "gone.png", "--threshold", value], "error: --threshold: expected")
            for value in ("-1", "0", "nan", "inf")
        ),
        (["match", "a.png", "gone.png", "--ratio", "2"], "error: --ratio: expected"),
        (["features", "empty", "-o", "f"], "error: empty: no images"),
        (["features", "broken.jpg", "-o", "f"], "error: none of 1 images is usable; broken"),
        (["features", "a.png", "./a.png", "-o", "f"], "error: a.png and a.png: two images"),
        (["features", "a.png", "-o", "f", "--format", "xml"], "error: --format: expected"),
        (["features", "a.png", "-o", "f.npz"], "error: --output: expected a folder, got f.npz"),
        (["features", "a.png", "-o", "f.h5", "--format", "npz"], "error: --output: expected a fo"),
        (
            ["features", "a.png", "-o", "f.db", "--format", "hloc"],
            "error: --output: expected a fi",
        ),
        (["sfm", "empty", "-o", "f"], "error: empty: no images"),
        (["sfm", "a.png", "-o", "f"], "error: a.png: expected two images or more, got 1"),
        (["learn", "in", "-o", "m.safetensors"], "No such command 'in'; expected one of photos, "),
        (
            ["features", "a.png", "-o", "f", "--cluster", "locl:2"],
            "error: --cluster: expected tcp://host:port, a scheduler file (.json) or local:N, got",
        ),
    ],
)
def test_bad_input_is_one_line(folder, arguments, message, run):
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not list(folder.glob("[fm].*"))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("flat.png", "no keypoints in flat.png"),
        ("other.png", "on one geometry; try --wide, which also matches synthetic views"),
    ],
)
def test_pictures_of_other_things_are_exit_code_one(folder, other, message, run):
    """One line, and yet the files that were asked for, with the tentative matches."""
    done = run("match", "a.png", other, "-o", "m.png", "-o", "m.csv", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.splitlines()[1].endswith(message)
    assert done.stderr == ""  # what they show is a result, and no error
    assert cv2.imread(str(folder / "m.png")).shape[1] > 300
    assert (folder / "m.csv").read_text().startswith("x_a,y_a,x_b,y_b,distance,")


def test_repeated_structure_is_exit_code_three(folder, monkeypatch):
    """The reason is in the message and in the files."""
    said = Verdict("ambiguous", "ambiguous, repeated structure; seen twice")
    monkeypatch.setattr(judgement, "_verdict", lambda *_: said)
    names = [str(folder / name) for name in ("a.png", "b.png", "m.json")]
    done = CliRunner().invoke(make_app(), ["match", *names[:2], "-o", names[2]])
    assert done.exit_code == 3
    assert "none verified: ambiguous, repeated structure; seen twice" in done.stdout
    written = json.loads((folder / "m.json").read_text())
    assert (written["verified"], written["verdict"]) == (False, "ambiguous")
    assert written["reason"] == said.reason


def test_match_goes_wide(folder, run):
    """A tilt of six: plain matching gives up, --wide does not."""
    image = cv2.imread(str(folder / "a.png"), 0)
    squeeze = np.array([[0.25, 0, 100], [0, 1.5, -60.0]])
    blurred = cv2.GaussianBlur(image, (0, 0), sigmaX=3.1, sigmaY=0.01)
    cv2.imwrite(str(folder / "c.png"), cv2.warpAffine(blurred, squeeze, (300, 240)))
    assert run("match", "a.png", "c.png", cwd=folder).returncode == 1
    done = run("match", "a.png", "other.png", "--wide", "--keypoints", "50", cwd=folder)
    assert done.returncode == 1
    assert "none verified: " in done.stdout
    assert "try --wide" not in done.stdout  # nothing more to try
    flat = ["--geometry", "homography", "-o", "m.json"]
    done = run("match", "a.png", "c.png", "--wide", *flat, cwd=folder)
    assert done.returncode == 0, done.stderr
    matrix = np.array(json.loads((folder / "m.json").read_text())["matrix"])
    np.testing.assert_allclose((matrix / matrix[2, 2])[:2, :2], squeeze[:, :2], atol=0.05)


@pytest.mark.parametrize(("kind", "out"), [("npz", "f"), ("hloc", "f.h5"), ("colmap", "f.db")])
def test_features_go_on_past_bad_files_and_resume(folder, kind, out, run):
    pytest.importorskip({"hloc": "h5py", "colmap": "pycolmap"}.get(kind, "cv2"))
    # The ending of the name says the format as well.
    arguments = ["-o", out, *(["--format", kind] if kind == "colmap" else []), "--keypoints", "50"]
    done = run("features", "a.png", "broken.jpg", *arguments, cwd=folder)
    assert done.returncode == 1, done.stderr  # one of them is missing
    assert "left out: broken.jpg: truncated" in done.stderr
    assert re.search(rf"{out}: 1 of 2 images \(1 new\) in \S+ s, \S+ s each", done.stdout)
    done = run("features", "a.png", "b.png", "broken.jpg", *arguments, cwd=folder)
    assert done.returncode == 1, done.stderr  # one of them is missing
    assert f"{out}: 2 of 3 images (1 new, 1 as before) in " in done.stdout
    done = run("features", "a.png", "b.png", *arguments, cwd=folder)
    assert done.stdout.endswith(f"{out}: 2 of 2 images (2 as before)\n")
    assert not (folder / f"{out}.parts").exists()
    done = run("features", "a.png", *arguments[:-1], "60", cwd=folder)
    assert done.returncode == 2
    assert "other settings (max_keypoints 50 instead of 60)" in done.stderr


def test_ctrl_c_loses_nothing(folder, run, start):
    pytest.importorskip("h5py")
    (folder / "in").mkdir()
    for index in range(200):
        shutil.copy(folder / "a.png", folder / "in" / f"{index:03d}.png")
    arguments = ["features", "in", "-o", "f.h5", "--keypoints", "50"]
    child = start("-m", "mkdesc", *arguments, cwd=folder)
    while len(list(folder.glob("f.h5.parts/*.npz"))) < 3 and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert errors.strip().endswith("interrupted; run the same command again to resume")
    described = set(folder.glob("f.h5.parts/*.npz"))
    assert 3 <= len(described) < 200
    assert not (folder / "f.h5").exists()
    for file in (folder / "in").iterdir():
        if folder / "f.h5.parts" / f"{file.name}.npz" not in described:
            file.unlink()
    done = run(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"f.h5: {len(described)} of {len(described)} images" in done.stdout
    assert not (folder / "f.h5.parts").exists()


def test_sfm_says_why_there_is_no_model(folder, run):
    pytest.importorskip("pycolmap")
    (folder / "in").mkdir()
    for name in ("a.png", "other.png", "broken.jpg"):
        (folder / name).rename(folder / "in" / name)
    done = run("sfm", "in", "-o", "model", cwd=folder)
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: in: ")
    assert "left out: " in last
    assert "broken.jpg" in last


def test_sfm_goes_on_past_bad_files_and_says_so(folder, run):
    pytest.importorskip("pycolmap")
    (folder / "in").mkdir()
    for name in ("a.png", "b.png", "broken.jpg"):
        (folder / name).rename(folder / "in" / name)
    done = run("sfm", "in", "-o", "model", "--stop-after", "matches", cwd=folder)
    assert done.returncode == 1, done.stderr
    assert "left out: in/broken.jpg: truncated" in done.stderr
    assert (folder / "model/database.db").exists()


def test_sfm_fails_where_most_photographs_are_lost(folder, run, monkeypatch):
    report = SfmReport(
        30, 2, 90, 180, 2.0, 0, 0.0, 0.4, 0.9, 1, 40, 3, 900, 70,
        unregistered=[f"{k}.jpg" for k in range(28)], seconds={"mapping": 1.25},
    )  # fmt: skip
    monkeypatch.setattr("mkdesc.sfm.pipeline.reconstruct", lambda *_, **__: report)
    done = run("sfm", "in", "-o", "model", cwd=folder)
    assert done.returncode == 1
    assert "2 of 30 images registered" in done.stdout
    assert "less than half of 30 photographs could be placed: add photographs" in done.stdout
    assert "time: mapping 1.2 s" in done.stdout


@pytest.mark.parametrize("out", ["f.h5", "f.db"])
def test_a_folder_of_someone_else_is_left_alone(folder, out, run):
    pytest.importorskip({"f.h5": "h5py", "f.db": "pycolmap"}[out])
    (folder / f"{out}.parts").mkdir()
    (folder / f"{out}.parts" / "thesis.txt").write_text("ten years")
    done = run("features", "a.png", "-o", out, "--keypoints", "50", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.strip().startswith(
        f"error: {out}.parts: has files that mkdesc did not write"
    )
    assert [file.name for file in (folder / f"{out}.parts").iterdir()] == ["thesis.txt"]
    assert not (folder / out).exists()


def test_names_are_printed_as_they_are(folder, run):
    (folder / "broken.jpg").rename(folder / "[red]bad:cat:.jpg")
    done = run("features", "a.png", "[red]bad:cat:.jpg", "-o", "o[bold]x:cat:", cwd=folder)
    assert done.returncode == 1, done.stderr
    assert "left out: [red]bad:cat:.jpg: truncated" in done.stderr
    assert "o[bold]x:cat:: 1 of 2 images" in done.stdout
    done = run("features", "a.png", "-o", "a[/bold]b", cwd=folder)
    assert done.returncode == 0, done.stderr


def test_an_empty_file_of_features_is_no_interruption(folder, run):
    arguments = ["features", "a.png", "-o", "f", "--keypoints", "50"]
    assert run(*arguments, cwd=folder).returncode == 0
    (folder / "f" / "a.png.npz").write_bytes(b"")
    done = run(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert np.load(folder / "f" / "a.png.npz")["descriptors"].shape == (50, 128)

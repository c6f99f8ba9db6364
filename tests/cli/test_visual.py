"""``mkdesc figures`` and ``inspect`` as a user meets them."""

import re
from importlib.resources import files

import cv2
import numpy as np
import pytest

from mkdesc import describe

pytest.importorskip("matplotlib")


@pytest.fixture
def folder(tmp_path, rng):
    image = cv2.GaussianBlur(rng.integers(0, 256, (70, 70), np.uint8), (0, 0), 2)
    cv2.imwrite(str(tmp_path / "a.png"), image[:64, :64])
    colours = cv2.cvtColor(image[3:67, 2:66], cv2.COLOR_GRAY2BGR)
    cv2.imwrite(str(tmp_path / "b.png"), colours)
    cv2.imwrite(str(tmp_path / "wide.png"), image[:20])
    cv2.imwrite(str(tmp_path / "tiny.png"), image[:5, :5])
    (tmp_path / "notes.txt").write_text("no image")
    return tmp_path


def test_inspect_prints_the_score_and_draws(folder, run):
    done = run("inspect", "a.png", "b.png", "-o", "why.png", cwd=folder)
    assert done.returncode == 0, done.stderr
    first, *parts, usual, last = done.stdout.splitlines()
    patches = np.stack([cv2.imread(str(folder / name), 0) for name in ("a.png", "b.png")])
    a, b = describe(patches)
    assert first == f"similarity {a @ b:.4f} (extended)"
    assert [line.split("*")[2].split(":")[0] for line in parts] == [
        "theta(8,3)",
        "intensity(2)",
        "shape",
        "intensity(1)",
    ]
    assert usual.startswith("usual for it: ")
    assert last == "written: why.png"
    assert min(cv2.imread(str(folder / "why.png")).shape[:2]) > 500


def test_inspect_says_what_is_usual_for_the_model(folder, run):
    """Whitened, patches that do not match score about nothing; raw ones much more."""
    others = {}
    for options in (["--model", "paper"], ["--parametrization", "polar"]):
        done = run("inspect", "a.png", "b.png", *options, cwd=folder)
        assert done.returncode == 0, done.stderr
        found = re.search(r"usual for it: (\S+) \(.*match, (\S+) \(", done.stdout)
        assert float(found[1]) > float(found[2])
        others[options[1]] = float(found[2])
    assert abs(others["paper"]) < 0.1 < others["polar"]


def test_inspect_a_head_with_a_hidden_layer(folder, run):
    done = run("inspect", "a.png", "b.png", "--model", "extended-net", cwd=folder)
    assert done.returncode == 0, done.stderr
    patches = np.stack([cv2.imread(str(folder / name), 0) for name in ("a.png", "b.png")])
    a, b = describe(patches, "extended-net")
    assert done.stdout.splitlines()[0] == f"similarity {a @ b:.4f} (extended-net)"


def test_inspect_takes_file_names_as_they_are(folder, run):
    name = "a$x_{$^.png"
    (folder / "a.png").rename(folder / name)
    (folder / "m$_{$").write_bytes((files("mkdesc.models") / "paper.safetensors").read_bytes())
    done = run("inspect", name, "b.png", "-o", "why.svg", "--model", "m$_{$", cwd=folder)
    assert done.returncode == 0, done.stderr
    drawn = (folder / "why.svg").read_text()
    assert f"<!-- {name} -->" in drawn
    assert "(m$_{$) -->" in drawn


def test_figures_writes_all_of_them(folder, run):
    done = run("figures", "-o", "new/out", cwd=folder)
    assert done.returncode == 0, done.stderr
    names = [line.removeprefix("written: ") for line in done.stdout.splitlines()]
    assert len(names) == 10
    for name in names[1::2]:
        assert (folder / name).read_bytes().startswith(b"%PDF-")
    for name in names[::2]:
        assert (folder / name).stat().st_size < 200_000
        assert cv2.imread(str(folder / name)).std() > 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "a.png", "gone.png"], "gone.png"),
        (["inspect", "a.png", "notes.txt"], "error: notes.txt: not an image"),
        (["inspect", "a.png", "wide.png"], "error: wide.png: expected a square patch of at least"),
        (["inspect", "a.png", "tiny.png"], "error: tiny.png: expected a square patch of at least"),
        (
            ["inspect", "a.png", "b.png", "--max-pixels", "99"],
            "error: a.png: 64 x 64 px, expected",
        ),
        (["inspect", "a.png", "b.png", "-o", "x.gif"], "error: --output: expected a name ending"),
        (
            ["inspect", "a.png", "b.png", "-o", "no/x.png"],
            "error: no/x.png: the folder no does not exist",
        ),
        (["inspect", "a.png", "b.png", "--model", "best"], "error: no model 'best'"),
        (["inspect", "a.png", "b.png", "--parametrization", "x"], "error: parametrization 'x'"),
        (
            ["inspect", "a.png", "b.png", "--model", "polar", "--parametrization", "polar"],
            "error: --model and --parametrization: expected one of them, got both",
        ),
        (["figures", "-o", "x", "--formats", "png,gif"], "error: --formats: expected any of"),
        (["figures", "-o", "x", "--whitening", "a.png"], "error: a.png: not a safetensors file"),
        (["figures", "-o", "a.png"], "error: a.png: is a file, expected a folder"),
    ],
)
def test_bad_input_is_one_line(folder, arguments, message, run):
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not list(folder.glob("x*"))

"""The commands around the benchmarks."""

import cv2
import numpy as np
import pytest
from layouts import draw_pairs, write_sequence, write_subset

from mkdesc.datasets.hpatches.csv_files import read_csv
from mkdesc.datasets.hpatches.layout import IMAGES
from mkdesc.evaluation.contenders.registry import get_descriptor


@pytest.fixture
def strips(tmp_path, rng):
    root = tmp_path / "strips"
    root.mkdir()
    for name in ("i_a", "v_b"):
        truth = rng.integers(0, 256, (20, 65, 65))
        noisy = {
            image: (truth + 30 * rng.standard_normal(truth.shape)).clip(0, 255).astype(np.uint8)
            for image in IMAGES
        }
        write_sequence(root, name, noisy)
    return root


def test_hpatches_export_and_csv_agree(tmp_path, strips, run):
    done = run("export", "hpatches-csv", strips, "--descriptor", "rootsift", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    patches = cv2.imread(str(strips / "v_b" / "h2.png"), 0).reshape(-1, 65, 65)
    expected = get_descriptor("rootsift").describe(patches)
    np.testing.assert_array_equal(read_csv(tmp_path / "rootsift", "v_b", "h2"), expected)
    names = f"rootsift,csv:{tmp_path / 'rootsift'}"
    done = run("evaluate", "hpatches", strips, "-d", names, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "run" / "table.md").read_text().splitlines()
    first, second = (line for line in rows if "rootsift |" in line and "| 128 |" in line)
    assert first.split("|")[2:] == second.split("|")[2:]
    again = run("evaluate", "hpatches", strips, "--seed", "7", "-d", names, "-o", tmp_path / "run")
    assert again.returncode == 2
    expected = "made with other settings (lists seed 42 instead of seed 7); remove it or choose"
    assert expected in again.stderr.splitlines()[-1]


def test_exported_descriptors_are_not_mixed(tmp_path, strips, run):
    def export(descriptor, *more):
        options = ("--name", "d", "--descriptor", descriptor, "-o", tmp_path, *more)
        return run("export", "hpatches-csv", strips, *options)

    def written():
        return read_csv(tmp_path / "d", "v_b", "h2")

    assert export("opencv-sift").returncode == 0
    first = written()
    assert export("opencv-sift").returncode == 0  # the same goes on
    file = tmp_path / "d" / "v_b" / "h2.csv"
    whole = file.read_text()
    for changed in ("my,notes\n", whole[:-9], whole.partition("\n")[2]):
        file.write_text(changed)
        again = export("opencv-sift")
        assert again.returncode == 2
        assert "h2.csv: is not what is written here" in again.stderr
    file.write_text(whole)
    other = export("rootsift")
    assert other.returncode == 2
    assert "made with other settings (descriptor opencv-sift instead of rootsift)" in other.stderr
    np.testing.assert_array_equal(written(), first)
    assert export("rootsift", "--overwrite").returncode == 0
    assert not np.array_equal(written(), first)
    assert export("rootsift").returncode == 0
    strip = strips / "v_b" / "h2.png"
    cv2.imwrite(str(strip), 255 - cv2.imread(str(strip), 0))
    stale = export("rootsift")
    assert stale.returncode == 2
    assert "its inputs have changed (v_b)" in stale.stderr


def test_phototourism_and_compare(tmp_path, rng, run):
    root = tmp_path / "sets"
    root.mkdir()
    for name in ("a", "b"):
        points = np.repeat(rng.integers(0, 256, (60, 64, 64)), 3, axis=0)
        patches = (points + 40 * rng.standard_normal(points.shape)).clip(0, 255).astype(np.uint8)
        labels = np.repeat(np.arange(60), 3)
        write_subset(root / name, patches, labels, pairs={100: draw_pairs(labels, 100)})
    for name in ("mkd-raw", "opencv-sift"):
        done = run("evaluate", "phototourism", root, "-d", name, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert name in done.stdout
    done = run("compare", tmp_path / "mkd-raw", tmp_path / "opencv-sift", "-o", tmp_path / "both")
    assert done.returncode == 0, done.stderr
    assert "opencv-sift: opencv-sift" in done.stdout
    assert (tmp_path / "both" / "report.html").exists()
    page = tmp_path / "mkd-raw" / "report.html"
    before = page.read_bytes()
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "report.html").symlink_to(page)
    done = run("compare", tmp_path / "mkd-raw", tmp_path / "opencv-sift", "-o", linked)
    assert done.returncode == 2
    assert "is an input" in done.stderr
    assert page.read_bytes() == before
    assert run("datasets", "check", root).stdout.startswith(f"{root}: 2 Phototourism subsets")


def test_make_hpatches_resumes(tmp_path, run):
    noise = np.random.default_rng(0).integers(0, 256, (200, 200), np.uint8)
    folder = tmp_path / "i_noise"
    folder.mkdir()
    for k in range(1, 7):
        cv2.imwrite(str(folder / f"{k}.png"), cv2.GaussianBlur(noise, (0, 0), 2))
        np.savetxt(folder / f"H_1_{k}", np.eye(3))
    arguments = ("make-hpatches", folder, "-o", tmp_path / "out", "--max-patches", 5)
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert "1 sequences made" in done.stdout
    made = (tmp_path / "out" / "i_noise" / "t5.png").read_bytes()
    assert "0 sequences made, 1 were there already" in run(*arguments).stdout
    assert "1 sequences made" in run(*arguments, "--overwrite").stdout
    assert (tmp_path / "out" / "i_noise" / "t5.png").read_bytes() == made
    other = run(*arguments, "--seed", 1)
    assert other.returncode == 2
    assert "made with other settings (seed 0 instead of 1)" in other.stderr
    cv2.imwrite(str(folder / "3.png"), cv2.GaussianBlur(noise, (0, 0), 3))
    other = run(*arguments)
    assert other.returncode == 2
    assert "made with other settings (inputs 3.png was another file)" in other.stderr
    assert (tmp_path / "out" / "i_noise" / "t5.png").read_bytes() == made
    twice = run("make-hpatches", folder, folder, "-o", tmp_path / "out")
    assert "'i_noise' twice" in twice.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "phototourism", "nowhere"], "error: nowhere: not a folder"),
        (["evaluate", "hpatches", "nowhere"], "error: nowhere: not a folder"),
        (["compare", "nowhere"], "error: RUNS: expected two or more, got 1"),
        (["datasets", "check", "nowhere"], "error: nowhere: not a folder"),
    ],
)
def test_bad_input_is_one_line(tmp_path, arguments, message, run):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == message
    assert "Traceback" not in done.stderr


def test_datasets_says_where(run):
    shown = run("datasets").stdout
    assert "BrownPhotoTour" in shown
    assert "Nothing is downloaded" in shown

"""``mkdesc align``: what it prints, writes and refuses."""

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.images.demo import photograph, warped


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photographs")
    image = photograph()
    cv2.imwrite(str(folder / "b.png"), np.dstack([image, image // 2, 255 - image]))
    cv2.imwrite(str(folder / "a.png"), warped(image)[0])
    noise = np.random.default_rng(0).integers(0, 256, (200, 300), np.uint8)
    cv2.imwrite(str(folder / "other.png"), noise)
    cv2.imwrite(str(folder / "line.png"), noise[:1])
    return folder


def test_it_writes_what_the_function_gives(run, files, tmp_path):
    out = [tmp_path / name for name in ("o.png", "b.gif", "d.png")]
    options = ["-o", out[0], "--blink", out[1], "--difference", out[2]]
    ended = run("align", files / "a.png", files / "b.png", *options)
    assert ended.returncode == 0
    found = mkdesc.align(files / "a.png", files / "b.png")
    assert ended.stdout.splitlines() == [found.summary(), *(f"written: {path}" for path in out)]
    assert found.by == "homography"
    for path, save in zip(out, (found.save, found.save_blink, found.save_difference), strict=True):
        save(tmp_path / f"own{path.suffix}", overwrite=True)
        assert path.read_bytes() == (tmp_path / f"own{path.suffix}").read_bytes()


def test_jpeg_has_no_transparency_and_says_so(run, files, tmp_path):
    out = tmp_path / "o.jpg"
    ended = run("align", files / "b.png", files / "a.png", "-o", out, "--by", "flow")
    assert ended.returncode == 0
    assert f"{out}: JPEG has no transparency; what B does not show is white" in ended.stdout


def test_codes_are_those_of_match(run, files, tmp_path):
    for other in ("other.png", "line.png"):
        ended = run("align", files / "a.png", files / other, "-o", tmp_path / "o.png")
        assert ended.returncode == 1
        assert ended.stdout.startswith("not aligned: ")
        ended = run("align", files / other, files / "a.png", "-o", tmp_path / "o.png")
        assert ended.returncode == 1
    assert not list(tmp_path.iterdir())


def test_two_copies_of_one_template_are_code_3(run, tmp_path):
    """Walls of windows, moved by one of them."""
    window = cv2.resize(np.random.default_rng(0).integers(0, 256, (12, 12), np.uint8), (40, 40))
    wall = np.tile(window, (8, 14))
    for name, left in (("a", 0), ("b", 20)):
        cv2.imwrite(str(tmp_path / f"{name}.png"), wall[:, left : left + 480])
    code = run("match", tmp_path / "a.png", tmp_path / "b.png").returncode
    ended = run("align", tmp_path / "a.png", tmp_path / "b.png", "-o", tmp_path / "o.png")
    assert ended.returncode == code != 0
    assert not (tmp_path / "o.png").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to write: expected --output, --blink or --difference"),
        (["-o", "o.gif"], "o.gif: expected a name ending in .png, .jpg, .jpeg"),
        (["--blink", "o.png"], "o.png: expected a name ending in .gif"),
        (["-o", "o.png", "--difference", "o.png"], "o.png: is named for two outputs"),
        (["-o", "nowhere/o.png"], "nowhere/o.png: the folder nowhere does not exist"),
        (["-o", "o.png", "--by", "magic"], "by: "),
        (["-o", "o.png", "--grid", "1"], "grid: expected an integer from 2 to 10000, got 1"),
        (["-o", "a.png"], "a.png: is an input and would be overwritten"),
        (["-o", "o.png", "--max-pixels", "100"], "expected at most 100 pixels"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, files, arguments, said):
    before = sorted(files.iterdir())
    ended = run("align", "a.png", "b.png", *arguments, cwd=files)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert sorted(files.iterdir()) == before


def test_a_grid_of_match_adds_matches(run, files, tmp_path):
    out = tmp_path / "m.npz"
    assert run("match", files / "a.png", files / "b.png", "--grid", "8", "-o", out).returncode == 0
    with np.load(out) as found:
        assert ((found["pairs"] == -1).all(axis=1)).sum() > 300
    ended = run("match", files / "a.png", files / "b.png", "--grid", "8", "--no-grow")
    assert (ended.returncode, "grid: grows matches" in ended.stderr) == (2, True)

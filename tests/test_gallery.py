"""The gallery's scripts: all are shown, pictures are there and small, what they find is right."""

import runpy
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from mkdesc.images.demo import photograph, write_demo

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import changes
import gallery
import panorama

REPOSITORY = gallery.REPOSITORY


def test_every_script_is_shown_with_a_picture():
    written = {path.stem for path in (REPOSITORY / "examples" / "gallery").glob("*.py")}
    assert written | {"panorama", "changes"} == {*gallery.NAMES}
    for script in gallery.scripts():
        assert script.picture.is_file(), script.path
        small = cv2.imread(str(gallery.PICTURES / "thumbnails" / f"{script.path.stem}.jpg"))
        assert small.shape == (200, 320, 3)
    kept = sum(path.stat().st_size for path in gallery.PICTURES.rglob("*.[jp][pn]g"))
    assert kept < 1_700_000


def test_pages_have_text_picture_code_and_a_download(tmp_path):
    folder = tmp_path / "gallery"
    folder.mkdir()
    gallery.write_pages(folder, tmp_path / "listing.md")
    listing = (tmp_path / "listing.md").read_text(encoding="utf-8")
    for script in gallery.scripts():
        page = (folder / f"{script.path.stem}.md").read_text(encoding="utf-8")
        assert script.text
        assert script.text in page
        assert f"({script.picture.name})" in page
        assert "{download}" in page
        begin = int(page.split(":lines: ")[1].split("-")[0])
        first = script.path.read_text(encoding="utf-8").splitlines()[begin - 1]
        assert first.startswith(("import ", "from "))
        assert f"(gallery/{script.path.stem}.md)" in listing


def turning_camera():
    """Three photographs (360, 300) of the portrait by a camera that turns, and its exposures."""
    portrait, focal = photograph(), 500.0
    lens = np.array([[focal, 0, 150], [0, focal, 180], [0, 0, 1]])
    wall = np.array([[focal, 0, 256], [0, focal, 300], [0, 0, 1]])  # seen from straight ahead
    seen = []
    for degrees, gain in ((-14, 0.75), (0, 1.0), (14, 1.2)):
        turn = cv2.Rodrigues(np.radians([3.0, -degrees, degrees / 4]))[0]
        image = cv2.warpPerspective(portrait, lens @ turn @ np.linalg.inv(wall), (300, 360))
        seen.append(np.clip(gain * image, 0, 255).astype(np.uint8))
    return seen


def test_a_panorama_shows_what_the_photographs_show():
    photographs = turning_camera()
    whole = panorama.stitch(photographs)
    found = cv2.matchTemplate(whole, photographs[1], cv2.TM_CCOEFF_NORMED).max()
    assert found > 0.95
    assert whole.shape[1] > 1.7 * photographs[1].shape[1]


def test_changes_are_found_and_nothing_else():
    before, after = changes.two_photographs()
    boxes = changes.changed_boxes(before, after)
    changed = np.array([[389, 506], [70, 330], [428, 81]])
    held = [
        [i for i, (x, y) in enumerate(changed) if left <= x <= left + w and top <= y <= top + h]
        for left, top, w, h in boxes
    ]
    assert sorted(held) == [[0], [1], [2]]
    assert changes.changed_boxes(before, photograph()) == []


@pytest.mark.parametrize("name", ["match", "keypoints", "patches", "patch_maps"])
def test_scripts_draw(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    write_demo(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    script = next(one for one in gallery.scripts() if one.path.stem == name)
    runpy.run_path(str(script.path))
    assert (tmp_path / script.picture.name).is_file()


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [("--help", 0, "usage: "), ("no.jpg", 2, "no.jpg: not a readable photograph")],
)
def test_the_panorama_is_a_command(word, code, said, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["panorama.py", word])
    with pytest.raises(SystemExit) as ended:
        panorama.main()
    assert ended.value.code == code
    assert said in "".join(capfd.readouterr())

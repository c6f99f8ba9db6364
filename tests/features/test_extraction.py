"""Features to the files of other programs: nothing lost, nothing left lying about."""

import os
import shutil
import subprocess
import sys
import threading
import time

import cv2
import numpy as np
import pytest

from mkdesc._support import workfolder
from mkdesc._support.files import own_folder
from mkdesc.features import extraction, folder, settings
from mkdesc.features.extraction import extract_to
from mkdesc.features.image_features import load_features
from mkdesc.features.settings import Settings

pytestmark = pytest.mark.usefixtures("colmap_here")

SETTINGS = Settings(max_keypoints=20, model="paper-64")
NAMES = ["a.png", "b.png", "sub/a.png"]
FILES = ["f.h5", "f.db"]


@pytest.fixture(params=["f", *FILES])
def output(request, tmp_path):
    pytest.importorskip({"f.h5": "h5py", "f.db": "pycolmap"}.get(request.param, "cv2"))
    return tmp_path / request.param


@pytest.fixture
def photos(tmp_path):
    rng = np.random.default_rng(0)
    for name in NAMES:
        file = tmp_path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        noise = cv2.GaussianBlur(rng.integers(0, 256, (90, 120), np.uint8), (0, 0), 1.5)
        cv2.imwrite(str(file), cv2.normalize(noise, None, 0, 255, 32))
    return tmp_path / "in"


def keypoints(output):
    """Positions by image, read by other programs, pixel centres at integers."""
    if output.suffix == ".h5":
        import h5py

        with h5py.File(output) as file:
            return {name: file[name]["keypoints"][:] for name in NAMES if name in file}
    if output.suffix == ".db":
        import pycolmap

        with pycolmap.Database.open(output) as file:
            images = {image.name: image.image_id for image in file.read_all_images()}
            found = {name: np.array(file.read_keypoints(i)) for name, i in images.items()}
        return {name: rows[:, :2] - 0.5 for name, rows in found.items()}
    stored = [name for name in NAMES if (output / f"{name}.npz").exists()]
    return {name: load_features(output, name).keypoints[:, :2] for name in stored}


def test_everything_is_there_once(photos, output):
    told = []
    found = extract_to(
        [photos], output, settings=SETTINGS, progress=lambda *news: told.append(news)
    )
    assert found == (NAMES, [], {})
    assert told == [("describing", n, 3) for n in range(4)]
    written = keypoints(output)
    features = SETTINGS.make()
    assert sorted(written) == NAMES
    for name, xy in written.items():
        detected = features.detect(cv2.imread(str(photos / name), 0))
        np.testing.assert_allclose(xy, [k.pt for k in detected], atol=1e-4)
    before = output.stat().st_mtime_ns
    assert extract_to([photos], output, settings=SETTINGS) == ([], NAMES, {})
    assert output.stat().st_mtime_ns == before
    assert {file.name for file in output.parent.iterdir()} == {"in", output.name}


def test_bad_images_are_tried_again_when_they_are_mended(photos, output):
    whole = (photos / "b.png").read_bytes()
    (photos / "b.png").write_bytes(b"nothing")
    found = extract_to([photos], output, settings=SETTINGS)
    assert (found.done, list(found.bad)) == (["a.png", "sub/a.png"], ["b.png"])
    (photos / "b.png").write_bytes(whole)
    assert extract_to([photos], output, settings=SETTINGS) == (
        ["b.png"],
        ["a.png", "sub/a.png"],
        {},
    )
    assert sorted(keypoints(output)) == NAMES


def test_an_interrupted_extraction_goes_on(photos, output, monkeypatch):
    real = folder.read_gray

    def interrupted(path, *rest, **keywords):
        if path.parent.name == "sub":
            raise KeyboardInterrupt
        return real(path, *rest, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(folder, "read_gray", interrupted)
        with pytest.raises(KeyboardInterrupt):
            extract_to([photos], output, settings=SETTINGS, workers=1)
    assert extract_to([photos], output, settings=SETTINGS) == (
        ["sub/a.png"],
        ["a.png", "b.png"],
        {},
    )
    assert sorted(keypoints(output)) == NAMES
    assert not output.with_name(f"{output.name}.parts").exists()


@pytest.mark.parametrize("output", FILES, indirect=True)
@pytest.mark.parametrize("moment", ["add_features", "remove_features"])
def test_interrupted_at_the_end(photos, output, monkeypatch, moment):
    def interrupted(*rest, **keywords):
        raise KeyboardInterrupt

    store = extraction.hloc if output.suffix == ".h5" else extraction.colmap_database
    with monkeypatch.context() as patch:
        patch.setattr(store if moment == "add_features" else extraction, moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            extract_to([photos], output, settings=SETTINGS)
    assert output.with_name(f"{output.name}.parts").is_dir()
    assert output.exists() == (moment == "remove_features")
    assert extract_to([photos], output, settings=SETTINGS) == ([], NAMES, {})
    assert sorted(keypoints(output)) == NAMES
    assert not output.with_name(f"{output.name}.parts").exists()


@pytest.mark.parametrize("output", FILES, indirect=True)
def test_what_was_killed_at_once_begins_again(photos, output):
    parts = output.with_name(f"{output.name}.parts")
    parts.mkdir()
    (parts / ".features.json.01234567.partial").write_text("{")
    assert extract_to([photos], output, settings=SETTINGS) == (NAMES, [], {})
    assert {file.name for file in output.parent.iterdir()} == {"in", output.name}


@pytest.mark.parametrize("output", FILES, indirect=True)
def test_parts_of_other_settings_are_kept(photos, output):
    other = Settings(max_keypoints=5, model="paper-64")
    parts = output.with_name(f"{output.name}.parts")
    extract_to([photos / "b.png"], parts, settings=other, format="npz")
    with pytest.raises(ValueError, match=r"parts: made with other settings"):
        extract_to([photos], output, settings=SETTINGS)
    assert len(load_features(parts, "b.png").keypoints) == 5
    assert not output.exists()


def damage(output, kind):
    """Damage a file that was whole; an h5 file whose beginning is swapped kept HDF5 busy."""
    data = bytearray(output.read_bytes())
    middle = len(data) // 2
    if kind == "bits":
        data[middle : middle + 64] = bytes(255 - byte for byte in data[middle : middle + 64])
    elif kind == "cut":
        del data[middle:]
    elif kind == "zeros":
        data[:] = bytes(len(data))
    else:
        data[100:4096] = b"\xff" * 3996
    output.write_bytes(data)


def test_a_name_that_is_too_long_is_left_out(photos, output):
    name = "x" * 251 + ".png"
    (photos / name).symlink_to("a.png")
    for _ in range(2):
        found = extract_to([photos], output, settings=SETTINGS)
        assert list(found.bad) == [name]
    assert sorted(keypoints(output)) == NAMES
    assert {file.name for file in output.parent.iterdir()} == {"in", output.name}


@pytest.mark.parametrize("content", ["scalar", "of a kind that cannot be read"])
def test_what_others_keep_is_not_taken_for_damaged(photos, tmp_path, content):
    h5py = pytest.importorskip("h5py")
    output = tmp_path / "theirs.h5"
    with h5py.File(output, "w") as file:
        file["numbers"] = np.arange(9)
        if content == "scalar":
            file["one"] = 3.0
        else:
            file.create_dataset("one", data=np.arange(99.0), fletcher32=True)
            offset = file["one"].id.get_chunk_info(0).byte_offset
    if content != "scalar":
        data = bytearray(output.read_bytes())
        data[offset] ^= 255
        output.write_bytes(data)
    before = output.read_bytes()
    with pytest.raises(ValueError, match=r"theirs\.h5: has no record of how it was made"):
        extract_to([photos], output, settings=SETTINGS)
    assert output.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in", "theirs.h5"]


def test_a_scalar_that_somebody_adds_is_no_damage(photos, tmp_path):
    h5py = pytest.importorskip("h5py")
    output = tmp_path / "ours.h5"
    extract_to([photos], output, settings=SETTINGS)
    with h5py.File(output, "a") as file:
        file["one"] = 3.0
    assert len(extract_to([photos], output, settings=SETTINGS).kept) == len(NAMES)
    with h5py.File(output) as file:
        assert "one" in file


@pytest.mark.parametrize("output", FILES, indirect=True)
@pytest.mark.parametrize("kind", ["bits", "cut", "zeros", "ones"])
def test_damaged_stores_are_made_again(photos, output, kind):
    extract_to([photos], output, settings=SETTINGS)
    whole = keypoints(output)
    damage(output, kind)
    if output.suffix == ".db" and kind == "bits":
        return  # databases have no checksums: what is in their rows is believed
    damaged = output.read_bytes()
    with pytest.warns(UserWarning, match=rf"{output.name}: damaged.* kept as .*made again"):
        assert extract_to([photos], output, settings=SETTINGS) == (NAMES, [], {})
    for name, xy in keypoints(output).items():
        np.testing.assert_array_equal(xy, whole[name])
    aside = output.with_name(f"{output.name}.damaged")
    assert aside.read_bytes() == damaged
    assert {file.name for file in output.parent.iterdir()} == {"in", output.name, aside.name}
    damage(output, kind)  # once more: what was kept is not lost
    with pytest.warns(UserWarning, match=r"kept as .*\.damaged-2, and made again"):
        extract_to([photos], output, settings=SETTINGS)
    assert aside.read_bytes() == damaged


@pytest.mark.isolated
@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
@pytest.mark.parametrize("room", [3_000, 12_000])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # old numpy's
def test_no_room_on_the_disk(photos, output, room):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        if output.suffix or room < 10_000:  # files of one image are small
            with pytest.raises(OSError, match=r"room on the disk|too large"):
                extract_to([photos], output, settings=SETTINGS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not output.is_file()
    found = extract_to([photos], output, settings=SETTINGS)
    assert sorted([*found.done, *found.kept]) == NAMES
    assert {file.name for file in output.parent.iterdir()} == {"in", output.name}


@pytest.mark.parametrize("output", FILES, indirect=True)
def test_files_of_others_are_not_put_aside(photos, output):
    output.write_text("my diary, which happens to have this name")
    with pytest.raises(ValueError, match=rf"{output.name}: not a"):
        extract_to([photos], output, settings=SETTINGS)
    assert output.read_text().startswith("my diary")
    assert {file.name for file in output.parent.iterdir()} == {"in", output.name}


def test_two_that_write_one_output_take_turns(photos, output):
    for name in ("c.png", "d.png", "e.png", "g.png"):
        (photos / name).write_bytes((photos / "a.png").read_bytes())
    command = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from mkdesc.features.extraction import extract_to\n"
        "from mkdesc.features.settings import Settings\n"
        "settings = Settings(max_keypoints=20, model='paper-64')\n"
        "extract_to(sys.argv[2:], sys.argv[1], settings=settings)"
    )
    lists = [[photos / "a.png", photos / "b.png"], [photos / f"{c}.png" for c in "cdega"]]
    writers = [
        subprocess.Popen([sys.executable, "-c", command, output, *some], stderr=subprocess.PIPE)
        for some in lists
    ]
    for writer in writers:
        _, errors = writer.communicate()
        assert writer.returncode == 0, errors.decode()
    found = extract_to([photos], output, settings=SETTINGS)
    assert (found.done, len(found.kept)) == (["sub/a.png"], 6)
    assert {file.name for file in output.parent.iterdir()} == {"in", output.name}


def _begin(thread):
    thread.start()
    time.sleep(0.5)


def test_a_folder_that_another_process_writes_is_waited_for(photos, tmp_path):
    with own_folder(tmp_path / "out", lambda: None, keep=True):
        waiting = threading.Thread(target=extract_to, args=([photos], tmp_path / "out"))
        with pytest.warns(UserWarning, match="out: waiting for another process"):
            _begin(waiting)
        assert list((tmp_path / "out").iterdir()) == []
    waiting.join()
    assert (tmp_path / "out" / "a.png.npz").exists()


@pytest.mark.parametrize("output", FILES, indirect=True)
def test_names_that_are_not_text_are_refused(photos, output):
    odd = os.fsencode(photos) + b"/caf\xe9.png"
    with open(odd, "wb") as file:  # noqa: PTH123
        file.write((photos / "a.png").read_bytes())
    with pytest.raises(ValueError, match=r"caf\\udce9\.png.*: expected a name in UTF-8"):
        extract_to([photos], output, settings=SETTINGS)


def test_what_cannot_be_is_said_before_the_work(photos, tmp_path):
    for name, kind, message in (
        ("f", "xml", "format: expected one of npz, hloc, colmap, got 'xml'"),
        ("f.npz", None, r"output: expected a folder, got .*f\.npz"),
        ("f.h5", "npz", r"output: expected a folder, got .*f\.h5"),
        ("f.db", "hloc", r"output: expected a file for hloc, got .*f\.db"),
    ):
        with pytest.raises(ValueError, match=message):
            extract_to([photos], tmp_path / name, settings=SETTINGS, format=kind)
    for file in photos.rglob("*.png"):
        file.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"none of 3 images is usable; .*a\.png: "):
        extract_to([photos], tmp_path / "f", settings=SETTINGS)


def test_the_side_that_was_cut_is_remembered(photos, tmp_path, monkeypatch):
    """A model that is best used at another side now must not be mixed with what was cut then."""
    extract_to([photos], tmp_path / "f", settings=SETTINGS)
    monkeypatch.setattr(settings, "sides_for", lambda detector, model: (17.0,))
    with pytest.raises(ValueError, match=r"other settings \(side .* instead of 17\.0\)"):
        extract_to([photos], tmp_path / "f", settings=SETTINGS)


@pytest.mark.parametrize(("out", "turned"), [("f", True), ("f.h5", False)])
def test_keypoints_lie_on_what_their_reader_shows(tmp_path, out, turned):
    """npz: on what cv2.imread shows. hloc reads photographs as they are stored."""
    pytest.importorskip("h5py")
    Image = pytest.importorskip("PIL.Image")
    stored = cv2.GaussianBlur(
        np.random.default_rng(0).integers(0, 256, (90, 140), np.uint8), (0, 0), 2
    )
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter of a turn
    Image.fromarray(stored).save(tmp_path / "a.jpg", exif=exif, quality=95)
    extract_to([tmp_path / "a.jpg"], tmp_path / out, settings=SETTINGS)
    if turned:
        size = load_features(tmp_path / out, "a.jpg").image_size.tolist()
    else:
        import h5py

        with h5py.File(tmp_path / out) as file:
            size = file["a.jpg"]["image_size"][:].tolist()
    shown = cv2.imread(str(tmp_path / "a.jpg"), 0).shape[::-1]
    assert shown == (90, 140)
    assert size == (list(shown) if turned else [140, 90])


@pytest.mark.parametrize("how", ["newer", "older", "same size and time"])
def test_photographs_that_were_replaced_are_not_taken_for_the_old_ones(
    tmp_path, output, how, replace_file
):
    rng = np.random.default_rng(0)
    image, other = tmp_path / "in/a.bmp", tmp_path / "other.bmp"
    image.parent.mkdir()
    for file in (image, other):
        cv2.imwrite(str(file), rng.integers(0, 256, (80, 80), np.uint8))
    assert extract_to([image.parent], output).done == ["a.bmp"]
    assert extract_to([image.parent], output).kept == ["a.bmp"]
    replace_file(image, other, how)
    if output.suffix:
        with pytest.raises(ValueError, match=r"1 photographs have changed .*for example a\.bmp"):
            extract_to([image.parent], output)
    else:
        assert extract_to([image.parent], output).done == ["a.bmp"]
        xy = load_features(output, "a.bmp").keypoints[:, :2]
        expected = Settings().make().detect(cv2.imread(str(other), 0))
        np.testing.assert_allclose(xy, [k.pt for k in expected], atol=1e-4)


def test_photographs_that_were_touched_or_copied_are_kept(tmp_path, photos, output, monkeypatch):
    extract_to([photos], output, settings=SETTINGS)
    for name in NAMES:
        os.utime(photos / name, ns=(0, 0))
    assert extract_to([photos], output, settings=SETTINGS).kept == NAMES
    copy = shutil.copytree(photos, tmp_path / "copy")
    assert extract_to([copy], output, settings=SETTINGS).kept == NAMES
    if not output.suffix:  # what was read once is not read again
        monkeypatch.setattr(workfolder, "_content", None)
        assert extract_to([copy], output, settings=SETTINGS).kept == NAMES


def test_a_photograph_that_is_broken_now_has_no_features(photos, tmp_path):
    extract_to([photos], tmp_path / "out", settings=SETTINGS)
    (photos / "b.png").write_bytes(b"nothing")
    assert list(extract_to([photos], tmp_path / "out", settings=SETTINGS).bad) == ["b.png"]
    assert not (tmp_path / "out/b.png.npz").exists()


@pytest.mark.parametrize("output", ["f", *FILES], indirect=True)
def test_features_of_another_version_are_not_mixed(photos, output, monkeypatch):
    extract_to([photos / "a.png"], output, settings=SETTINGS)
    monkeypatch.setattr(settings, "__version__", "0.0.9")
    monkeypatch.setattr(workfolder, "__version__", "0.0.9")
    with pytest.raises(ValueError, match=r"other settings \(mkdesc .* instead of 0\.0\.9\)"):
        extract_to([photos], output, settings=SETTINGS)

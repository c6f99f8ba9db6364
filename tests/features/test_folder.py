"""Many images: whole files only, kept on a second run, bad ones listed."""

import zipfile
from dataclasses import replace

import cv2
import numpy as np
import pytest

from mkdesc.features import folder as batch
from mkdesc.features.folder import extract_features, remove_features
from mkdesc.features.image_features import load_features
from mkdesc.features.settings import Settings
from mkdesc.images.detectors import registry
from mkdesc.images.detectors.learned_weights import load_weights, save_weights
from mkdesc.images.listing import find_images
from mkdesc.models import load_model, read_card, save_model


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for name in ("a.png", "b.png", "sub/a.png"):
        noise = cv2.GaussianBlur(rng.integers(0, 256, (90, 120), np.uint8), (0, 0), 1.5)
        cv2.imwrite(str(tmp_path / "in" / name), cv2.normalize(noise, None, 0, 255, 32))
    return tmp_path


SETTINGS = Settings(max_keypoints=30)


def test_files_hold_what_features_give(folder):
    images = find_images([folder / "in"])
    seen = []
    done = extract_features(
        images, folder / "out", settings=SETTINGS, progress=lambda *n: seen.append(n)
    )
    assert done == (["a.png", "b.png", "sub/a.png"], [], {})
    assert seen[-1] == ("describing", 3, 3)
    found = load_features(folder / "out", "sub/a.png")
    keypoints, descriptors = SETTINGS.make().detectAndCompute(
        cv2.imread(str(folder / "in" / "sub" / "a.png"), 0)
    )
    np.testing.assert_array_equal(found.descriptors, descriptors)
    np.testing.assert_allclose(found.keypoints[:, :2], [k.pt for k in keypoints], rtol=1e-6)
    np.testing.assert_allclose(2 * found.keypoints[:, 2], [k.size for k in keypoints], rtol=1e-6)
    assert found.image_size.tolist() == [120, 90]


def test_a_second_run_keeps_what_is_there(folder):
    images = find_images([folder / "in"])
    extract_features({"a.png": images["a.png"]}, folder / "out", settings=SETTINGS)
    before = (folder / "out" / "a.png.npz").stat().st_mtime_ns
    done = extract_features(images, folder / "out", settings=SETTINGS)
    assert (done.done, done.kept) == (["b.png", "sub/a.png"], ["a.png"])
    assert (folder / "out" / "a.png.npz").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match=r"other settings \(max_keypoints 30 instead of 31\)"):
        extract_features(images, folder / "out", settings=Settings(max_keypoints=31))


@pytest.mark.parametrize("what", ["model", "detector"])
def test_bundled_files_are_known_by_their_content(folder, monkeypatch, what):
    """Another release, or somebody, may have put others in their place under the same names."""
    images = find_images([folder / "in"])
    extract_features(images, folder / "out", settings=SETTINGS)
    if what == "model":
        other = replace(read_card("photo"), sha256="0" * 64)
        monkeypatch.setattr("mkdesc.features.settings.read_card", lambda _: other)
        message = r"other settings \(model photo \(\w+\) instead of photo \(0+\)\)"
    else:
        file = folder / "w.safetensors"
        save_weights(replace(load_weights("keypoints"), card={}), file)
        monkeypatch.setattr(registry, "weights_file", lambda _: file)
        message = r"other settings \(detector_settings weights was another file\)"
    with pytest.raises(ValueError, match=message):
        extract_features(images, folder / "out", settings=SETTINGS)


def test_settings_may_be_numbers_of_numpy(folder):
    images = find_images([folder / "in"])
    for number in (np.int64, np.int8):
        theirs = Settings(max_keypoints=number(30), side=[np.float32(20), number(40)])
        done = extract_features(images, folder / "out", settings=theirs)
    assert done.kept == ["a.png", "b.png", "sub/a.png"]
    assert theirs == Settings(max_keypoints=30, side=(20.0, 40.0))


def test_models_are_named_if_they_can_be(folder):
    images = find_images([folder / "in"])
    extract_features(images, folder / "out", settings=SETTINGS)
    with pytest.raises(ValueError, match=r"\(model photo \(\w+\) instead of paper \("):
        extract_features(images, folder / "out", settings=replace(SETTINGS, model="paper"))
    mine = replace(SETTINGS, model=str(folder / "mine.safetensors"))
    card = save_model(load_model("photo").set_params(patch_size=48), mine.model)
    expected = rf"\(model photo \(\w+\) instead of sha256 {card.sha256}\)"
    with pytest.raises(ValueError, match=expected):
        extract_features(images, folder / "out", settings=mine)


def test_bad_images_stop_nothing(folder):
    (folder / "in" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    cv2.imwrite(str(folder / "in" / "flat.png"), np.full((50, 50), 7, np.uint8))
    cv2.imwrite(str(folder / "in" / "pixel.png"), np.zeros((1, 1), np.uint8))
    done = extract_features(find_images([folder / "in"]), folder / "out", settings=SETTINGS)
    assert len(done.done) == 5
    assert list(done.bad) == ["broken.jpg"]
    assert "broken.jpg: truncated" in done.bad["broken.jpg"]
    assert load_features(folder / "out", "flat.png").descriptors.shape == (0, 128)


def test_names_that_leave_no_room_for_an_ending_are_left_out(folder):
    most = "x" * 247 + ".png"
    for name in (most, f"y{most}"):  # 251 and 252 bytes; with .npz there may be 255
        (folder / "in" / name).symlink_to("a.png")
    images = find_images([folder / "in"])
    for _ in range(2):
        done = extract_features(images, folder / "out", settings=SETTINGS)
        assert sorted([*done.done, *done.kept]) == ["a.png", "b.png", "sub/a.png", most]
        assert list(done.bad) == [f"y{most}"]
        assert "its name is too long" in done.bad[f"y{most}"]


def test_an_interrupted_run_leaves_whole_files(folder, monkeypatch):
    real = batch.read_gray

    def interrupted(path, *rest, **keywords):
        if path.name == "b.png":
            raise KeyboardInterrupt
        return real(path, *rest, **keywords)

    monkeypatch.setattr(batch, "read_gray", interrupted)
    with pytest.raises(KeyboardInterrupt):
        extract_features(
            find_images([folder / "in"]), folder / "out", settings=SETTINGS, workers=1
        )
    for file in (folder / "out").rglob("*.npz"):
        assert np.load(file)["descriptors"].shape == (30, 128)
    assert not list((folder / "out").rglob(".*"))


def test_bad_settings_write_nothing(folder):
    images = find_images([folder / "in"])
    for wrong in (Settings(detector="surf"), Settings(side=-1.0), Settings(output="int4")):
        with pytest.raises(ValueError, match="expected"):
            extract_features(images, folder / "out", settings=wrong)
    with pytest.raises(FileNotFoundError, match="no model 'gone'"):
        extract_features(images, folder / "out", settings=Settings(model="gone"))
    assert not (folder / "out").exists()


def test_foreign_files_are_named(tmp_path):
    np.savez(tmp_path / "a.png.npz", something=np.ones(3))
    with pytest.raises(ValueError, match=r"a\.png\.npz: not a file of features"):
        load_features(tmp_path, "a.png")


@pytest.mark.parametrize(
    "damage", ["empty", "zeros", "cut", "garbage", "flipped", "header", "shapes"]
)
def test_damaged_files_are_made_again(folder, damage):
    images = find_images([folder / "in"])
    extract_features(images, folder / "out", settings=SETTINGS)
    file = folder / "out" / "b.png.npz"
    whole = file.read_bytes()
    middle = len(whole) // 2
    if damage == "shapes":
        with np.load(file) as arrays:
            np.savez(file, **{**arrays, "scores": np.ones(7, np.float32)})
    elif damage == "header":  # numpy looks for the end of a statement that has none
        with zipfile.ZipFile(file, "w") as archive:
            for name in ("keypoints", "scores", "descriptors", "image_size", "source"):
                archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00\x1e\x00{'descr': '|u1', (((((")
    else:
        flipped = bytes(255 - byte for byte in whole[middle : middle + 50])
        file.write_bytes(
            {
                "empty": b"",
                "zeros": bytes(len(whole)),  # as after a power cut
                "cut": whole[:middle],
                "garbage": b"PK\x03\x04 and so on",
                "flipped": whole[:middle] + flipped + whole[middle + 50 :],
            }[damage]
        )
    with pytest.raises(ValueError, match=r"b\.png\.npz: not a file of features"):
        load_features(folder / "out", "b.png")
    with pytest.warns(UserWarning, match=r"b\.png\.npz: not a file of features .*made again"):
        done = extract_features(images, folder / "out", settings=SETTINGS)
    assert (done.done, done.kept) == (["b.png"], ["a.png", "sub/a.png"])
    assert file.read_bytes()[middle : middle + 50] == whole[middle : middle + 50]


def test_files_of_someone_else_are_not_replaced(folder):
    (folder / "out").mkdir()
    np.savez(folder / "out" / "a.png.npz", something=np.ones(3))
    before = (folder / "out" / "a.png.npz").read_bytes()
    with pytest.raises(ValueError, match=r"out: has files that mkdesc did not write"):
        extract_features(find_images([folder / "in"]), folder / "out", settings=SETTINGS)
    assert (folder / "out" / "a.png.npz").read_bytes() == before
    assert not (folder / "out" / "features.json").exists()


@pytest.mark.parametrize("kind", ["text", "array", "others", "some of ours", "ours and one more"])
def test_files_of_someone_else_among_the_features_are_not_replaced(folder, kind):
    images = find_images([folder / "in"])
    extract_features(images, folder / "out", settings=SETTINGS)
    file = folder / "out" / "b.png.npz"
    with np.load(file) as arrays:
        ours = {**arrays, "source": np.array("")}  # of no photograph that is there
    if kind == "text":
        file.write_text("Dear diary")
    elif kind == "array":
        with file.open("wb") as opened:
            np.save(opened, np.ones(3))
    else:
        mine = {"others": {}, "some of ours": {"scores": ours["scores"]}}.get(kind, ours)
        np.savez(file, **mine, **({} if kind == "some of ours" else {"diary": np.arange(3)}))
    before = file.read_bytes()
    with pytest.raises(FileExistsError, match=r"b\.png\.npz: mkdesc did not write .*move it"):
        extract_features(images, folder / "out", settings=SETTINGS)
    assert file.read_bytes() == before


def test_only_features_are_removed(folder):
    images = find_images([folder / "in"])
    for own in (True, False):
        extract_features(images, folder / "out", settings=SETTINGS)
        if not own:
            (folder / "out" / "sub" / "notes.txt").write_text("keep me")
        remove_features(folder / "out", images)
        assert (folder / "out").exists() is not own
    left = {file.name for file in (folder / "out").rglob("*")}
    assert left == {"features.json", "sub", "notes.txt"}

"""One folder means the same photographs to everybody."""

import os

import pytest

from mkdesc.images.listing import find_images
from mkdesc.learn.photos import list_photos


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_images_are_found_by_unique_names(tmp_path):
    touch(tmp_path, "b/x.jpg", "a.PNG", "c/x.jpg", "c/notes.txt")
    assert list(find_images([tmp_path])) == ["a.PNG", "b/x.jpg", "c/x.jpg"]
    assert list(find_images([tmp_path / "a.PNG", tmp_path / "b"])) == ["a.PNG", "x.jpg"]
    with pytest.raises(ValueError, match=r"b/x\.jpg and .*c/x\.jpg: two images named x\.jpg"):
        find_images([tmp_path / "b", tmp_path / "c" / "x.jpg"])
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match=r"none: no images \(\.jpg"):
        find_images([tmp_path / "none"])
    with pytest.raises(FileNotFoundError, match="gone does not exist"):
        find_images([tmp_path / "gone"])


def test_hidden_files_and_folders_are_no_photographs(tmp_path):
    touch(tmp_path / ".home", "a.jpg", "._a.jpg", ".trash/b.jpg", "sub/.thumbs/c.jpg", "sub/d.jpg")
    # A folder that is hidden itself, but asked for by name, is looked into.
    assert list(find_images([tmp_path / ".home"])) == ["a.jpg", "sub/d.jpg"]


@pytest.mark.parametrize("name", ["a\nb.png", "\x1b[2Ja.png", "sub\r/a.png", "a\u2028b.png"])
def test_names_that_would_break_a_line_are_refused(tmp_path, name):
    """What lists photographs could not be read: by people, or by programs line by line."""
    touch(tmp_path, "a\xa0b \u202fc.png", name)
    with pytest.raises(ValueError, match="without line feeds and other control") as refused:
        find_images([tmp_path])
    assert str(refused.value).startswith(f"{name!r}: ")
    assert "\n" not in str(refused.value)
    (tmp_path / name).unlink()
    assert list(find_images([tmp_path])) == ["a\xa0b \u202fc.png"]


def test_learning_takes_the_same_photographs(tmp_path):
    touch(tmp_path, "B.jpg", "a.png", "sub/deep/c.jpg", "sub-b.jpg", ".hidden.jpg")
    expected = ["B.jpg", "a.png", "sub-b.jpg", "sub/deep/c.jpg"]
    assert [file.relative_to(tmp_path).as_posix() for file in list_photos(tmp_path)] == expected
    assert list_photos(tmp_path) == list(find_images([tmp_path]).values())
    assert list_photos(str(tmp_path / "a.png")) == [tmp_path / "a.png"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes")
def test_devices_and_pipes_are_no_photographs(tmp_path):
    """Whoever reads them waits for ever, or has all memory filled."""
    os.mkfifo(tmp_path / "pipe.jpg")
    for file in (tmp_path / "pipe.jpg", "/dev/zero"):
        with pytest.raises(ValueError, match=r": is a device or a pipe, expected a photograph"):
            find_images([file])
    touch(tmp_path, "a.png")
    with pytest.warns(UserWarning, match=r"pipe\.jpg: is a device or a pipe; left out"):
        assert list(find_images([tmp_path])) == ["a.png"]
    (tmp_path / "pipe.jpg").rename(tmp_path / "pipe")
    (tmp_path / "link.jpg").symlink_to("pipe")
    with pytest.warns(UserWarning, match=r"link\.jpg: is a device or a pipe; left out"):
        assert list(find_images([tmp_path])) == ["a.png"]

"""Photographs, and folders of them, that are links."""

import pytest

from mkdesc.images.listing import find_images


def test_linked_folders_are_looked_into_once(tmp_path):
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere" / "deep" / "b.png").touch()
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "a.png").touch()
    (photos / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(photos)  # a circle
    (photos / ".hidden").symlink_to(tmp_path / "elsewhere")
    assert list(find_images([photos])) == ["a.png", "linked/deep/b.png"]


def test_links_that_lead_nowhere_are_named(tmp_path):
    (tmp_path / "a.png").touch()
    (tmp_path / "b.png").symlink_to(tmp_path / "gone.png")
    (tmp_path / "c.png").symlink_to("c.png")  # to itself
    assert list(find_images([tmp_path])) == ["a.png", "b.png", "c.png"]  # whoever reads says so
    (tmp_path / "disk").symlink_to("/nowhere/photos")
    with pytest.warns(UserWarning, match=r"disk: a link that leads nowhere; left out$"):
        assert list(find_images([tmp_path])) == ["a.png", "b.png", "c.png"]
    with pytest.raises(FileNotFoundError, match=r"disk: a link that leads nowhere"):
        find_images([tmp_path / "disk"])

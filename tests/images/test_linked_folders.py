"""Photographs below folders that are links."""

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

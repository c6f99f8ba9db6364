import pytest

from mkdesc._support.files import atomic_folder, atomic_path


def test_nothing_is_left_when_writing_fails(tmp_path):
    target = tmp_path / "out.txt"
    target.write_text("old")

    def interrupted():
        with atomic_path(target) as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_missing_folders_are_named(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match="nowhere does not exist"),
        atomic_path(tmp_path / "nowhere" / "out.txt"),
    ):
        pass
    with pytest.raises(IsADirectoryError), atomic_path(tmp_path):
        pass


def test_folders_are_whole_or_as_they_were(tmp_path):
    target = tmp_path / "out"
    for content in ("old", "new"):
        with atomic_folder(target) as partial:
            (partial / f"{content}.txt").write_text(content)
    assert [file.name for file in target.iterdir()] == ["new.txt"]
    assert target.stat().st_mode & 0o777 == 0o755

    def interrupted():
        with atomic_folder(target) as partial:
            (partial / "half.txt").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == [target]
    assert [file.name for file in target.iterdir()] == ["new.txt"]

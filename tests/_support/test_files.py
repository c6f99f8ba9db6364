import pytest

from mkdesc._support.files import atomic_path


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

"""Folders that know what they are made of: settings, version, and inputs by their content."""

import json
import os
import shutil
from pathlib import Path

import pytest

from mkdesc._support import workfolder
from mkdesc._support.workfolder import (
    WorkFolder,
    cached_reader,
    check_settings,
    fingerprint,
    is_untouched,
    same_input,
)


@pytest.fixture
def location(tmp_path):
    """A file, or a folder with one in it."""
    (tmp_path / "data/inner").mkdir(parents=True)
    (tmp_path / "data/inner/a.bin").write_bytes(b"one")
    return tmp_path / "data"


@pytest.fixture
def folder(tmp_path):
    return WorkFolder(str(tmp_path / "out"), str(tmp_path / "out/record.json"))


@pytest.mark.parametrize("how", ["newer", "older", "same size and time"])
@pytest.mark.parametrize("inner", ["", "inner/a.bin"])
def test_what_was_replaced_is_another_input(location, tmp_path, replace_file, how, inner):
    known = fingerprint(location / inner)
    (tmp_path / "other").write_bytes(b"two")
    replace_file(location / "inner/a.bin", tmp_path / "other", how)
    assert not is_untouched(known, location / inner)
    assert same_input(known, location / inner) is None


def test_what_was_only_touched_copied_or_moved_is_the_same(location, tmp_path):
    known = fingerprint(location)
    os.utime(location / "inner/a.bin", (0, 0))
    touched = same_input(known, location)
    assert touched not in (None, known)
    copied = same_input(touched, shutil.copytree(location, tmp_path / "copy"))
    assert copied not in (None, touched)
    assert same_input(copied, location.rename(tmp_path / "moved")) not in (None, copied)


def test_content_is_read_only_where_there_is_doubt(location, monkeypatch):
    known = fingerprint(location)
    monkeypatch.setattr(workfolder, "_content", None)  # cannot be called
    assert same_input(known, location) == known
    (location / "inner/a.bin").write_bytes(b"three")  # of another size
    assert same_input(known, location) is None
    (location / "inner/a.bin").write_bytes(b"six")
    with pytest.raises(TypeError):
        same_input(known, location)


@pytest.mark.parametrize("change", ["name", "more", "less", "gone"])
def test_every_file_of_a_folder_counts(location, change):
    (location / "b.bin").touch()
    known = fingerprint(location)
    if change == "name":
        (location / "b.bin").rename(location / "c.bin")
    elif change == "more":
        (location / "c.bin").touch()
    elif change == "less":
        (location / "b.bin").unlink()
    else:
        shutil.rmtree(location)
    assert same_input(known, location) is None


def test_large_files_are_digested_in_slices(tmp_path, monkeypatch):
    monkeypatch.setattr(workfolder, "SLICE", 4)
    monkeypatch.setattr(workfolder, "BLOCK", 2)
    file = tmp_path / "a.bin"
    seen = set()
    for text in ("123456789", "123456780", "923456789", "123496785"):
        file.write_text(text)
        seen.add(fingerprint(file).rpartition(" ")[2])
    assert len(seen) == 4


@pytest.mark.parametrize("known", [None, "", "3", "3 ", "x y z", "3 4 5 6", 3, ["3"]])
def test_fingerprints_that_are_none(location, known):
    assert same_input(known, location) is None


def test_stores_say_what_they_have_instead(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/here/a", b"one")
    try:
        known = fingerprint("memory://here/a")
        assert same_input(known, "memory://here/a") == known
        memory.pipe("/here/a", b"two")
        assert same_input(known, "memory://here/a") is None
    finally:
        memory.rm("/here", recursive=True)


def test_work_goes_on_with_the_same_only(folder, location):
    folder.open({"side": 3}, {"data": location})
    folder.write(5, ".bin", b"five")
    folder.open({"side": 3}, {"data": location})
    assert folder.done(".bin") == {5}
    with pytest.raises(ValueError, match=r"out: made with other settings \(side 3 instead of 4\)"):
        folder.open({"side": 4}, {"data": location})
    with pytest.raises(ValueError, match=r"out: its inputs have changed \(data\)"):
        folder.open({"side": 3}, {"data": location / "inner"})
    with pytest.raises(ValueError, match=r"out: its inputs have changed \(data\)"):
        folder.open({"side": 3})
    folder.open({"side": 3}, {"data": location, "more": location})
    folder.complete()
    assert folder.read()["complete"]
    folder.discard()
    assert not Path(folder.location).exists()


def test_the_version_belongs_to_the_identity_of_work(folder, monkeypatch):
    folder.open({})
    folder.write(0, ".bin", b"")
    monkeypatch.setattr(workfolder, "__version__", "0.0.9")
    with pytest.raises(ValueError, match=r"\(mkdesc .* instead of 0\.0\.9\); remove it or choose"):
        folder.open({})


def test_what_was_completed_stays_so_when_inputs_are_touched(folder, location):
    folder.open({}, {"data": location})
    folder.write(0, ".bin", b"")
    folder.complete()
    os.utime(location / "inner/a.bin", (0, 0))
    now = folder.open({}, {"data": location})
    assert folder.read() == {
        "complete": True,
        "settings": folder.read()["settings"],
        "inputs": now,
    }


def test_a_setting_may_grow(folder):
    folder.open({"of": {"a": 1}}, grows="of")
    folder.write(0, ".bin", b"")
    folder.open({"of": {"a": 1, "b": 2}}, grows="of")
    assert folder.read()["settings"]["of"] == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match=r"\(of b 2 instead of nothing\)"):
        folder.open({"of": {"a": 1}}, grows="of")
    with pytest.raises(ValueError, match=r"\(of a 1 instead of 3\)"):
        folder.open({"of": {"a": 3, "b": 2}}, grows="of")


def test_files_of_others_are_left_alone(folder, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/.record.json.0123abcd.partial").touch()  # what a kill left is no such file
    folder.open({})
    (tmp_path / "out/record.json").unlink()
    (tmp_path / "out/thesis.tex").touch()
    with pytest.raises(
        ValueError, match="out: has files that mkdesc did not write; choose another output"
    ):
        folder.open({})
    with pytest.raises(NotADirectoryError, match=r"thesis\.tex: is a file, expected a folder"):
        WorkFolder(str(tmp_path / "out/thesis.tex"), str(tmp_path / "record.json")).open({})


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"settings": 3, "inputs": {}}', "[" * 9**6]
)
def test_damaged_records_are_named(folder, tmp_path, text):
    folder.open({})
    folder.write(0, ".bin", b"")
    (tmp_path / "out/record.json").write_text(text)
    with pytest.raises(ValueError, match=r"record\.json: damaged, or not written by mkdesc"):
        folder.open({})


def test_differences_are_named_in_one_line():
    known = {"a": {"b": 1, "c": 2}, "model": {"sha256": "x"}, **dict.fromkeys("defgh", 1)}
    with pytest.raises(
        ValueError, match=r"^x: .*\(a b 1 instead of 9, .* and 4 more\); remove"
    ) as e:
        check_settings("x", json.dumps(known), {"a": {"b": 9, "c": 2}, "model": {"sha256": "y"}})
    assert len(str(e.value)) < 200
    with pytest.raises(ValueError, match=r"\(model was another file\)"):
        check_settings("x", {"model": {"sha256": "x"}}, {"model": {"sha256": "y"}})
    for found in (None, 3, "", "[]", "nonsense"):
        with pytest.raises(ValueError, match="x: has no record of how it was made"):
            check_settings("x", found, {})


def test_readers_keep_files_that_nothing_happens_to(location, tmp_path, replace_file):
    read = []

    @cached_reader(2)
    def content(path):
        read.append(path)
        return path.read_bytes()

    file = location / "inner/a.bin"
    assert [content(file), content(file), len(read)] == [b"one", b"one", 1]
    (tmp_path / "other").write_bytes(b"two")
    replace_file(file, tmp_path / "other", "same size and time")
    assert [content(file), len(read)] == [b"two", 2]

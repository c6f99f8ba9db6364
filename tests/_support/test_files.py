import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from mkdesc._support.files import atomic_folder, atomic_path, own_folder, read_json


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
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o777 & ~umask

    def interrupted():
        with atomic_folder(target) as partial:
            (partial / "half.txt").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == [target]
    assert [file.name for file in target.iterdir()] == ["new.txt"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "out.txt").symlink_to(tmp_path / "there" / "real.txt")
    with atomic_path(tmp_path / "out.txt") as partial:
        partial.write_text("new")
    assert (tmp_path / "out.txt").is_symlink()
    assert (tmp_path / "there" / "real.txt").read_text() == "new"


def test_files_are_as_private_as_the_umask_says(tmp_path):
    """From several threads too: the umask belongs to the whole process."""

    def write(k):
        for i in range(50):
            with atomic_path(tmp_path / f"{k}-{i}") as partial:
                partial.write_text("x")

    before = os.umask(0o077)
    try:
        threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with atomic_folder(tmp_path / "folder"):
            pass
    finally:
        os.umask(before)
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes.pop("folder") == 0o700
    assert len(modes) == 200
    assert set(modes.values()) == {0o600}


def test_files_that_writers_replace_are_no_more_private(tmp_path):
    with atomic_path(tmp_path / "out") as partial:
        partial.unlink()
        partial.touch(0o600)
    with atomic_path(tmp_path / "plain"):
        pass
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


WRITER = """
import sys, time
from mkdesc._support.files import atomic_folder, atomic_path
with {name}(sys.argv[1]) as partial:
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("name", ["atomic_path", "atomic_folder"])
@pytest.mark.parametrize(
    "called", ["out", "x" * 255, "\N{EURO SIGN}" * 85], ids=["short", "long", "wide"]
)
def test_what_killed_writers_leave_is_removed_and_what_others_write_is_not(tmp_path, name, called):
    """Also where a name is as long as a name can be."""
    write = {"atomic_path": atomic_path, "atomic_folder": atomic_folder}[name]
    target = tmp_path / called
    command = [sys.executable, "-c", WRITER.format(name=name), target]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for writer in writers:
            assert writer.stdout.readline() == b"writing\n"
        assert len(list(tmp_path.iterdir())) == 2
        writers[0].send_signal(signal.SIGKILL)
        writers[0].wait()
        with write(target):
            pass
        assert target.exists()
        assert len(list(tmp_path.iterdir())) == 2  # the other is still writing
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    with write(target):
        pass
    assert list(tmp_path.iterdir()) == [target]


def test_journals_of_killed_databases_are_removed(tmp_path):
    for name in (".out.db.01234567.partial", ".out.db.01234567.partial-journal"):
        (tmp_path / name).write_text("half")
    with atomic_path(tmp_path / "out.db"):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["out.db"]

    def failing():
        with atomic_path(tmp_path / "out.db") as partial:
            partial.with_name(f"{partial.name}-wal").touch()
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        failing()
    assert [file.name for file in tmp_path.iterdir()] == ["out.db"]


def test_names_of_others_that_look_alike_stay(tmp_path):
    others = [
        tmp_path / name for name in (".out.txt.partial", ".out.0123.partial", ".out.12345678")
    ]
    for other in others:
        other.write_text("mine")
    with atomic_path(tmp_path / "out"):
        pass
    assert all(other.exists() for other in others)


def test_a_folder_is_there_while_it_is_replaced(tmp_path):
    """Whoever reads meanwhile finds the old one or the new one."""
    target = tmp_path / "out"
    with atomic_folder(target) as partial:
        (partial / "a").write_text("old")
    missing, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            missing.append(not target.exists())

    thread = threading.Thread(target=look)
    thread.start()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        with atomic_folder(target) as partial:
            (partial / "a").write_text("new")
    stop.set()
    thread.join()
    assert len(missing) > 100
    assert not any(missing)


def test_files_that_are_no_text_or_no_json_are_named(tmp_path):
    file = tmp_path / "a.json"
    for content, message in (
        (b"\xff\xfe{}", "not text in UTF-8"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"1" * 5000, "not JSON"),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=rf"a\.json: .*{message}"):
            read_json(file)


def test_one_process_at_a_time_works_in_a_folder(tmp_path):
    folder, order = tmp_path / "parts", []

    def work(name):
        with own_folder(folder, lambda: order.append(f"{name} waits")):
            order.append(f"{name} begins")
            (folder / name).touch()
            time.sleep(0.3)
            (folder / name).unlink()
            order.append(f"{name} ends")

    first, second = (threading.Thread(target=work, args=(name,)) for name in "ab")
    first.start()
    while "a begins" not in order:
        time.sleep(0.01)
    second.start()
    first.join()
    second.join()
    assert order == ["a begins", "b waits", "a ends", "b begins", "b ends"]
    assert list(tmp_path.iterdir()) == []


def test_what_was_killed_before_it_was_held_is_removed(tmp_path):
    (tmp_path / ".out.01234567.new").touch()
    (tmp_path / ".folder.01234567.new").mkdir()
    with atomic_path(tmp_path / "out"):
        pass
    with atomic_folder(tmp_path / "folder"):
        pass
    assert {file.name for file in tmp_path.iterdir()} == {"out", "folder"}


def test_a_folder_of_many_files_is_not_listed_for_each(tmp_path, monkeypatch):
    looked, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: looked.append(folder) or scandir(folder))
    for k in range(5):
        with atomic_path(tmp_path / str(k)):
            pass
    assert looked == [tmp_path]


def test_a_new_folder_replaces_none_that_was_made_meanwhile(tmp_path):
    target = tmp_path / "out"
    refused = pytest.raises(FileExistsError, match="out: was made by somebody else meanwhile")
    with refused, atomic_folder(target, new=True) as partial:
        (partial / "a.txt").touch()
        target.mkdir()
        (target / "mine.txt").touch()
    assert [file.name for file in tmp_path.rglob("*")] == ["out", "mine.txt"]

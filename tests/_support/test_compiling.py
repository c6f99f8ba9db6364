"""Compiled code that is kept on disk may only ever cost time: tried in child processes."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mkdesc
from mkdesc._support.compiling import _Kept, compile_loop

#: Describes a patch, and says whether the loops came from the disk.
DESCRIBE = """
import sys
import numpy as np
from numba.core import event
from mkdesc import MKD
patches = np.random.default_rng(0).integers(0, 256, (2, 32, 32), np.uint8)
with event.install_recorder("numba:compile") as compiled:
    found = MKD(sys.argv[2], 32).transform(patches)
np.save(sys.argv[1], found)
print("compiled" if compiled.buffer else "kept")
"""


def run(tmp_path, spec="cartesian", package=None, limit=None):
    """Describe in a child process: what it found, and how it came to its loops."""
    source = package or Path(mkdesc.__file__).parents[1]
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(source),
    }

    def limited():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    target = tmp_path / "found.npy"
    command = [sys.executable, "-W", "error", "-c", DESCRIBE, str(target), spec]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, preexec_fn=limited, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return np.load(target), done.stdout.strip()


def kept_files(tmp_path):
    return [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A folder with a cache, and what was found."""
    folder = tmp_path_factory.mktemp("warm")
    found, how = run(folder)
    assert how == "compiled"
    assert len(kept_files(folder)) == 1
    return folder, found


DAMAGE = {
    "whole": (lambda content: content, "kept"),
    "empty": (lambda content: b"", "compiled"),
    "short": (lambda content: content[:10], "compiled"),
    "half": (lambda content: content[: len(content) // 2], "compiled"),
    "zeros": (lambda content: bytes(len(content)), "compiled"),
    "noise": (lambda content: np.random.default_rng(0).bytes(5000), "compiled"),
    "one bit": (lambda c: c[:-5000] + bytes([c[-5000] ^ 1]) + c[-4999:], "compiled"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_made_again(warm, tmp_path, damage):
    folder, expected = warm
    shutil.copytree(folder / "cache", tmp_path / "cache")
    change, how = DAMAGE[damage]
    (file,) = kept_files(tmp_path)
    content = file.read_bytes()
    file.write_bytes(change(content))
    found, first = run(tmp_path)
    assert np.array_equal(found, expected)
    assert first == how
    if how == "compiled":
        assert run(tmp_path)[1] == "kept"  # it was replaced


def test_a_folder_in_the_place_of_a_file(warm, tmp_path):
    folder, expected = warm
    shutil.copytree(folder / "cache", tmp_path / "cache")
    (file,) = kept_files(tmp_path)
    file.unlink()
    file.mkdir()
    assert np.array_equal(run(tmp_path)[0], expected)


def test_no_room_on_the_disk(warm, tmp_path):
    found, how = run(tmp_path, limit=4096)  # enough for the descriptors
    assert how == "compiled"
    assert np.array_equal(found, warm[1])
    assert not kept_files(tmp_path)  # nothing half-written either


def test_a_cache_that_cannot_be_a_folder(warm, tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert np.array_equal(run(tmp_path)[0], warm[1])


CHANGES = {
    "a constant of a callee": (
        "kernels/pixelfeatures.py",
        "SHAPE_EPSILON = 1e-4",
        "SHAPE_EPSILON = 10.0",
    ),
    "a callee": (
        "compute/cpu/pixels_numba.py",
        "quantities[first, m, i] = np.sqrt(strength)",
        "quantities[first, m, i] = strength",
    ),
    "a constant of all": ("_support/compiling.py", "NOTHING = 1e-70", "NOTHING = 1e70"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_seen(tmp_path, change):
    """The file of the outermost loop stays as it is: something that it calls changes."""
    package = tmp_path / "src"
    shutil.copytree(Path(mkdesc.__file__).parent, package / "mkdesc")
    before, _ = run(tmp_path, "standard: shape", package)
    name, old, new = CHANGES[change]
    file = package / "mkdesc" / name
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    after, how = run(tmp_path, "standard: shape", package)
    assert how == "compiled"
    assert np.abs(after - before).max() > 1e-3
    assert len(kept_files(tmp_path)) == 1  # in the place of the old
    assert run(tmp_path, "standard: shape", package)[1] == "kept"


def make_loop(power):
    import numba

    @numba.njit(fastmath={"nnan", "nsz", "reassoc"})
    def inner(x):
        return x**power

    def loop(x):
        return inner(x) + 1

    return loop


def stamp(function, **options):
    import numba

    from mkdesc._support.compiling import _stamp

    return _stamp(numba.njit(**options)(function), (numba.float64,))


def test_options_and_enclosed_values_count():
    assert stamp(make_loop(2)) == stamp(make_loop(2))
    assert stamp(make_loop(2)) != stamp(make_loop(3))
    assert stamp(make_loop(2)) != stamp(make_loop(2), fastmath=True)


def test_no_folder_to_keep_code_in(monkeypatch):
    import numba

    def refuse(function):
        raise RuntimeError("no locator available")

    monkeypatch.setattr("numba.core.caching.CompileResultCacheImpl", refuse)
    assert _Kept.of(make_loop(2), b"") is None
    assert compile_loop(make_loop(2), (numba.float64,))(3.0) == 10

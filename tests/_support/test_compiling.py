"""Compiled code kept on disk may only ever cost time."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import mkdesc
from mkdesc._support import compiling
from mkdesc._support.compiling import _stamp, compile_loop, is_cached

FACTOR = 2.0


@njit(fastmath={"nnan", "nsz", "reassoc"})
def inner(x, power):
    return FACTOR * x**power


def make_loop(power):
    def loop(x):
        return inner(x, power) + 1

    return loop


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Where compiled code is kept in this test."""
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(power=2):
    """What a loop makes of 3, and whether it was compiled for that or kept."""
    import numba
    from numba.core import event

    with event.install_recorder("numba:compile") as compiled:
        found = compile_loop(make_loop(power), (numba.float64,))(3.0)
    return found, "compiled" if compiled.buffer else "kept"


def kept(power=2):
    import numba

    return is_cached(make_loop(power), (numba.float64,))


def test_who_waits_for_the_compiler_is_told_once(cache, monkeypatch, capsys):
    monkeypatch.setattr(compiling, "PATIENCE", 0)
    monkeypatch.setattr(compiling, "_told", threading.Event())
    assert run() == (19.0, "compiled")
    assert capsys.readouterr().err.startswith("mkdesc: compiling, once on this machine")
    assert run(3) == (55.0, "compiled")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(compiling, "_told", threading.Event())
    assert run() == (19.0, "kept")
    assert capsys.readouterr().err == ""


def kept_files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_was_compiled_is_cached(cache):
    assert not kept()
    assert run() == (19, "compiled")
    assert run() == (19, "kept")
    assert kept()
    assert not kept(power=3)
    assert run(power=3) == (55, "compiled")  # beside the other
    assert len(kept_files(cache)) == 2


DAMAGE = {
    "empty": lambda content: b"",
    "short": lambda content: content[:10],
    "half": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "noise": lambda content: np.random.default_rng(0).bytes(5000),
    "one bit": lambda c: c[:-500] + bytes([c[-500] ^ 1]) + c[-499:],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_made_again(cache, damage):
    run()
    (file,) = kept_files(cache)
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    assert run() == (19, "compiled")
    assert run() == (19, "kept")  # it was replaced


def test_a_folder_in_the_place_of_a_file(cache):
    run()
    (file,) = kept_files(cache)
    file.unlink()
    file.mkdir()
    assert run() == (19, "compiled")


def test_no_room_on_the_disk(cache, monkeypatch):
    def full(self, data):
        with self.open("wb") as file:
            file.write(data[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert run() == (19, "compiled")
    assert not kept_files(cache)  # nothing half-written either


def test_a_cache_that_cannot_be_a_folder(cache):
    cache.write_text("a file")
    assert run()[0] == 19  # kept elsewhere, or not at all
    assert cache.read_text() == "a file"


def test_no_folder_to_keep_code_in(monkeypatch):
    def refuse(function):
        raise RuntimeError("no locator available")

    monkeypatch.setattr("numba.core.caching.CompileResultCacheImpl", refuse)
    assert run() == (19, "compiled")


def stamp(function, **options):
    import numba

    return _stamp(numba.njit(**options)(function), (numba.float64,))


def test_options_constants_and_enclosed_values_count(monkeypatch):
    before = stamp(make_loop(2))
    assert stamp(make_loop(2)) == before
    assert stamp(make_loop(3)) != before
    assert stamp(make_loop(2), fastmath=True) != before
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert stamp(make_loop(2)) != before


#: Applies a head, by the loop that takes least to compile, and says whether it came from the disk.
APPLY = """
import sys
import numpy as np
from numba.core import event
from mkdesc.compute.cpu.backend import compile_head
from mkdesc.compute.cpu.head import make_stages
from mkdesc.heads.head import L2, Affine, Head
found = np.empty((1, 2), np.float32)
with event.install_recorder("numba:compile") as compiled:
    stages = make_stages(Head((Affine(np.eye(2)), L2())))
    compile_head()(np.array([[3, 4]], np.float32), stages, found)
np.save(sys.argv[1], found)
print("compiled" if compiled.buffer else "kept")
"""


def apply_head(folder):
    """The result of a child with the package in ``folder``, and how it came to its loop."""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": str(folder),
    }
    command = [sys.executable, "-W", "error", "-c", APPLY, str(folder / "found.npy")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if not line.startswith("mkdesc: compiling")]
    assert (done.returncode, said) == (0, [])
    return np.load(folder / "found.npy"), done.stdout.strip()


def test_changes_of_what_loops_call_are_seen(tmp_path):
    """The file of the outermost loop stays as it is: a constant that others see changes."""
    shutil.copytree(Path(mkdesc.__file__).parent, tmp_path / "mkdesc")
    before, _ = apply_head(tmp_path)
    np.testing.assert_allclose(before, [[0.6, 0.8]], atol=1e-6)
    file = tmp_path / "mkdesc" / "_support" / "compiling.py"
    text = file.read_text()
    assert text.count("TINY_SQUARE = 1e-70") == 1
    file.write_text(text.replace("TINY_SQUARE = 1e-70", "TINY_SQUARE = 100.0"))
    after, how = apply_head(tmp_path)
    assert how == "compiled"
    np.testing.assert_allclose(after, [[0.3, 0.4]], atol=1e-6)  # divided by ten
    assert apply_head(tmp_path)[1] == "kept"


def test_intrinsics_of_other_modules_count():
    """What is built of instructions is no loop, but machine code depends on it as well."""
    from mkdesc._support import compiling, vectors
    from mkdesc.compute.cpu import gradients_numba

    source = hashlib.sha256(Path(vectors.__file__).read_bytes()).hexdigest()
    assert source in list(compiling._modules(gradients_numba, set()))

"""Machine code on disk may only ever cost time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

import mkdesc
from mkdesc._support import compiling, emitting, machine_code
from mkdesc._support.compiling import _Asked, _made_of, compile_loop
from mkdesc._support.loop_types import Array, Structure, type_of

FACTOR = 2.0


@njit(fastmath={"nnan", "nsz", "reassoc"})
def inner(x, power):
    return FACTOR * x**power


def make_loop(power):
    def loop(x, out):
        out[0] = inner(x, power) + 1

    return loop


ARGUMENTS = ("float64", Array("float64", 1, True))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Where compiled code is kept in this test; none came with the package."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compiling, "SHIPPED", tmp_path / "shipped")
    return tmp_path / "cache"


def run(power=2, **options):
    """What a loop makes of 3, and whether it was compiled for that or kept."""
    from numba.core import event

    out = np.zeros(1)
    with event.install_recorder("numba:compile") as compiled:
        compile_loop(f"{__name__}:make_loop", ARGUMENTS, made_with=(power,), **options)(3.0, out)
    return out[0], "compiled" if compiled.buffer else "kept"


def test_who_waits_for_the_compiler_is_told_once(monkeypatch, capsys):
    monkeypatch.setattr(compiling, "PATIENCE", 0)
    monkeypatch.setattr(compiling, "_told", threading.Event())
    assert run() == (19.0, "compiled")
    assert capsys.readouterr().err.startswith("mkdesc: compiling what this model or ")
    assert run(3) == (55.0, "compiled")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(compiling, "_told", threading.Event())
    assert run() == (19.0, "kept")
    assert capsys.readouterr().err == ""


def kept_files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_was_compiled_is_kept(cache):
    assert run() == (19, "compiled")
    assert run() == (19, "kept")
    assert run(power=3) == (55, "compiled")  # beside the other
    assert run(fastmath={"nsz", "contract"}) == (19, "compiled")
    assert run(fastmath={"contract", "nsz"}) == (19, "kept")
    assert len(kept_files(cache)) == 3


def edited(change):
    """What changes one of the facts in a file, and makes it whole again."""

    def edit(content):
        _, head, code = content.split(b"\n", 2)
        facts = json.loads(head)
        change(facts)
        content = json.dumps(facts).encode() + b"\n" + code
        return compiling._digest(content).encode() + b"\n" + content

    return edit


DAMAGE = {
    "empty": lambda content: b"",
    "short": lambda content: content[:10],
    "half": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "noise": lambda content: np.random.default_rng(0).bytes(5000),
    "one bit": lambda c: c[:-500] + bytes([c[-500] ^ 1]) + c[-499:],
    "no facts": lambda content: compiling._digest(b"{}\n").encode() + b"\n{}\n",
    "no code": lambda content: compiling._digest(b"1").encode() + b"\n1",
}
OUTDATED = {
    "another loop": edited(lambda facts: facts.update(asked="another")),
    "another system": edited(lambda facts: facts.update(system="sunos-sparc")),
    "another source": edited(lambda facts: facts["sources"].update({__name__: "0"})),
    "another way of calling": edited(
        lambda facts: facts["sources"].update({"mkdesc._support.emitting": "0"})
    ),
    "an unknown way of calling": edited(
        lambda facts: facts["sources"].pop("mkdesc._support.emitting")
    ),
    "no such source": edited(lambda facts: facts["sources"].update(nowhere="0")),
    "another constant": edited(
        lambda facts: facts["constants"].update({"mkdesc._support.compiling:TINY_SQUARE": "1"})
    ),
    "no such constant": edited(
        lambda facts: facts["constants"].update({"mkdesc._support.compiling:HUGE": "1"})
    ),
}


@pytest.mark.parametrize("damage", [*DAMAGE, *OUTDATED])
def test_damaged_and_outdated_files_are_made_again(cache, damage):
    run()
    (file,) = kept_files(cache)
    file.write_bytes((DAMAGE | OUTDATED)[damage](file.read_bytes()))
    assert run() == (19, "compiled")
    assert run() == (19, "kept")  # it was replaced


def ship(cache, level):
    """Put what was compiled where it would be if it had come with the package."""
    asked = _Asked(f"{__name__}:make_loop", (2,), ARGUMENTS, {})
    file = compiling.SHIPPED / asked.file_name(level)
    file.parent.mkdir(exist_ok=True)
    (kept,) = kept_files(cache)
    shutil.move(kept, file)
    return file


@pytest.fixture
def old_processor(monkeypatch):
    """One without AVX-512."""
    monkeypatch.setattr(machine_code, "levels", lambda: ["x86-64-v3"])


def test_shipped_code_is_used(cache, old_processor):
    run()
    ship(cache, "x86-64-v3")
    assert run() == (19, "kept")
    assert not kept_files(cache)


def test_shipped_code_for_better_processors_is_not_used(cache, old_processor):
    run()
    ship(cache, "x86-64-v4")
    assert run() == (19, "compiled")


@pytest.mark.parametrize("damage", [*DAMAGE, *OUTDATED])
def test_damaged_and_outdated_shipped_code_only_costs_time(cache, old_processor, damage):
    run()
    file = ship(cache, "x86-64-v3")
    content = (DAMAGE | OUTDATED)[damage](file.read_bytes())
    file.write_bytes(content)
    assert run() == (19, "compiled")
    assert run() == (19, "kept")  # in the cache
    assert file.read_bytes() == content


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
    assert run() == (19, "compiled")
    assert cache.read_text() == "a file"


def test_where_the_package_cannot_be_written_to_the_user_has_a_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    (tmp_path / "__pycache__").write_text("no folder")
    assert run() == (19, "compiled")
    assert len(kept_files(tmp_path / "user" / "mkdesc")) == 1
    assert run() == (19, "kept")


def test_nobody_has_a_home(tmp_path, monkeypatch):
    def refuse():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", refuse)
    (tmp_path / "__pycache__").write_text("no folder")
    assert run() == (19, "compiled")


@pytest.mark.parametrize("why", ["insides", "version", "loading"])
def test_where_code_cannot_be_emitted_numba_compiles_in_every_process(
    cache, monkeypatch, capsys, why
):
    monkeypatch.setattr(compiling, "_told", threading.Event())
    if why == "version":  # the next one
        major, minor = emitting.LAST_TESTED
        monkeypatch.setattr(emitting.numba, "__version__", f"{major}.{minor + 1}.0rc1")
    if why == "insides":

        def changed():
            raise AttributeError("'CodeLibrary' object has no attribute '_final_module'")

        monkeypatch.setattr(emitting, "_runtime", changed)
    if why == "loading":
        monkeypatch.setattr(machine_code, "_engine", lambda: object())
    for _ in range(2):
        assert run() == (19, "compiled")
    assert len(kept_files(cache)) == (why == "loading")
    (said,) = capsys.readouterr().err.splitlines()
    expected = {
        "insides": "AttributeError: ",
        "version": "RuntimeError: tested up to numba 0.",
        "loading": "AttributeError: ",
    }
    assert f"some 15 s; again in every process ({expected[why]}" in said


class Line(NamedTuple):
    offset: float
    numbers: np.ndarray


def add_line(line, pair, factor, whole, flag, out):
    for i in range(len(line.numbers)):
        out[i] = line.numbers[i] * factor + line.offset + pair[1]
    return whole if flag else -1


@pytest.mark.parametrize("emitted", [True, False])
def test_the_same_of_structures_and_numbers(monkeypatch, emitted):
    """In single precision what is for single precision, whoever compiled it."""
    if not emitted:
        monkeypatch.setattr(emitting, "LAST_TESTED", (0, 1))
    line = Line(0.1, np.array([1, 1 / 3], np.float32))
    pair = Structure(tuple, ("float32", "float32"))
    out = np.zeros(2)
    written = Array("float64", 1, True)
    types = (type_of(line), pair, "float32", "int64", "bool", written)
    loop = compile_loop(f"{__name__}:add_line", types)
    assert isinstance(loop, machine_code.Loop) == emitted
    assert loop(line, (1, 0.7), 0.3, np.int32(7), np.True_, out) == 7
    assert loop(line, (1, 0.7), 0.3, 7, False, out) == -1
    products = line.numbers * np.float32(0.3)
    np.testing.assert_array_equal(out, products.astype(float) + 0.1 + np.float64(np.float32(0.7)))


#: Applies a head, by the loop that takes least to compile, and says whether it came from the disk.
APPLY = """
import sys
import numpy as np
from mkdesc.compute.cpu.backend import compile_head
from mkdesc.compute.cpu.head import make_stages
from mkdesc.heads.head import L2, Affine, Head
found = np.empty((1, 2), np.float32)
stages = make_stages(Head((Affine(np.eye(2)), L2())))
compile_head()(np.array([[3, 4]], np.float32), stages, found)
np.save(sys.argv[1], found)
print("compiled" if "numba" in sys.modules else "kept")
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
    shutil.copytree(
        Path(mkdesc.__file__).parent,
        tmp_path / "mkdesc",
        ignore=shutil.ignore_patterns("__pycache__", "_compiled"),
    )
    before, how = apply_head(tmp_path)
    assert how == "compiled"
    np.testing.assert_allclose(before, [[0.6, 0.8]], atol=1e-6)
    assert apply_head(tmp_path)[1] == "kept"
    file = tmp_path / "mkdesc" / "_support" / "compiling.py"
    text = file.read_text()
    assert text.count("TINY_SQUARE = 1e-70") == 1
    file.write_text(text.replace("TINY_SQUARE = 1e-70", "TINY_SQUARE = 100.0"))
    after, how = apply_head(tmp_path)
    assert how == "compiled"
    np.testing.assert_allclose(after, [[0.3, 0.4]], atol=1e-6)  # divided by ten
    assert apply_head(tmp_path)[1] == "kept"


def test_all_that_loops_are_made_of_counts():
    """Loops and intrinsics of other modules, by their source; constants of others, by value."""
    sources, constants = _made_of("mkdesc.compute.cpu.describe_gradients_numba")
    assert {
        "mkdesc.compute.cpu.describe_gradients_numba",
        "mkdesc.compute.cpu.gradients_numba",
        "mkdesc.compute.cpu.sums_numba",
        "mkdesc._support.vectors_numba",
        "mkdesc._support.emitting",  # how arguments are passed
        "mkdesc._support.machine_code",
    } <= set(sources)
    assert constants["mkdesc.compute.cpu.unrolling:TOGETHER"] == "4"
    assert "'fastmath': False" in constants["mkdesc._support.compiling:EXACT"]
    assert not any(name.partition(":")[0].endswith("_numba") for name in constants)

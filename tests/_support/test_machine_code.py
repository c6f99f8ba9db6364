"""Machine code is called with what it is for, or not at all."""

import os
import subprocess
import sys
from collections import namedtuple
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from mkdesc._support import machine_code
from mkdesc._support.compiling import compile_loop
from mkdesc._support.emitting import emit
from mkdesc._support.loop_types import Array, Structure, array_type, type_of
from mkdesc.images.cutting_numba import halve


class Inner(NamedTuple):
    matrix: np.ndarray
    factor: float


class Outer(NamedTuple):
    count: int
    inner: Inner


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))


def compiled(function, *arguments):
    return compile_loop(f"{__name__}:{function.__name__}", arguments)


def add_up(outer, weights, sides, flag, small, out):
    total = 0.0
    for i in range(outer.inner.matrix.shape[0]):
        for j in range(outer.inner.matrix.shape[1]):
            total += outer.inner.matrix[i, j] * weights[j] * outer.inner.factor
    out[0] = total + outer.count
    out[1] = sides[0][0] + sides[1][1]
    out[2] = small if flag else -small
    return len(weights)


def test_structures_arrays_and_numbers_arrive():
    matrix = np.random.default_rng(0).random((3, 4))
    outer = Outer(7, Inner(matrix, 0.5))
    sides = Structure(tuple, (Structure(tuple, ("float32",)), Structure(tuple, ("float32",) * 2)))
    loop = compiled(
        add_up,
        type_of(outer),
        array_type("int64", 1),
        sides,
        "bool",
        "float32",
        array_type("float64", 1, written=True),
    )
    weights, out = np.arange(4), np.zeros(3)
    weights.flags.writeable = False
    given = ((np.float32(2),), (3, 4.5))
    assert loop(outer, weights, given, np.True_, np.float32(0.25), out) == 4
    np.testing.assert_allclose(out, [(matrix @ weights).sum() * 0.5 + 7, 6.5, 0.25], rtol=1e-12)
    loop(outer, weights, given, False, 3, out)
    assert out[2] == -3


def double(numbers, out):
    for i in range(len(numbers)):
        out[i] = 2 * numbers[i]


def test_other_arguments_are_refused():
    """Their memory would be read as what it is not."""
    loop = compiled(double, array_type("float32", 1), array_type("float32", 1, written=True))
    good, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    loop(good, out)
    assert out.tolist() == [2, 2, 2, 2]
    fixed = np.zeros(4, np.float32)
    fixed.flags.writeable = False
    loop(fixed, out)
    for bad in (np.ones(4), np.ones((2, 2), np.float32), np.ones(8, np.float32)[::2], [1.0], None):
        with pytest.raises(TypeError, match="double, argument 0: expected Array"):
            loop(bad, out)
    with pytest.raises(TypeError, match="double, argument 1: expected"):
        loop(good, fixed)
    with pytest.raises(ValueError, match="argument"):
        loop(good)


def test_other_numbers_are_refused():
    loop = compiled(make_room, "int64")
    assert loop(np.int32(7)) == 7
    for bad in (7.5, "7", None, np.ones(1)):
        with pytest.raises(TypeError, match="make_room, argument 0: "):
            loop(bad)


def test_structures_that_change_are_read_again():
    """Arrays that are only read stay where they are; of others nothing is kept."""
    outer = Outer(7, Inner(np.ones((3, 4)), 0.5))
    sides = Structure(tuple, (Structure(tuple, ("float32",)), Structure(tuple, ("float32",) * 2)))
    out_type = array_type("float64", 1, written=True)
    types = (type_of(outer), array_type("int64", 1), sides, "bool", "float32", out_type)
    loop, out, rest = compiled(add_up, *types), np.zeros(3), (((1,), (2, 3)), True, 1)
    for writeable in (True, False):
        outer.inner.matrix.flags.writeable = writeable
        for count in (1, 2, 3):
            changed = Outer(count, outer.inner)  # often where the one before was
            loop(changed, np.ones(4, np.int64), *rest, out)
            assert out[0] == 6 + count
    with pytest.raises(ValueError, match="argument"):
        loop((1,), np.ones(4, np.int64), *rest, out)


def make_room(size):
    room = np.empty(size, np.uint8)
    room[0] = 1
    return len(room)


def test_too_little_memory_is_an_error():
    loop = compiled(make_room, "int64")
    assert loop(1000) == 1000
    with pytest.raises(MemoryError, match="make_room"):
        loop(2**62)


@njit
def last_of(rows):
    return rows[-1]


def reshaped(numbers, rows, columns, out):
    for _ in range(3):  # what is allocated is given back
        wide = np.zeros(rows * columns + 3, np.float64)[:-3].reshape(rows, columns)
        own = numbers.reshape(rows, columns)
        for i in range(rows):
            for j in range(columns):
                wide[i, j] = own[i, j]
        copied = last_of(wide)
        for j in range(columns):
            out[j] = copied[j]


def test_arrays_in_loops_are_allocated_aligned_and_reshaped():
    arguments = array_type("float64", 1), "int64", "int64", array_type("float64", 1, written=True)
    loop, out = compiled(reshaped, *arguments), np.zeros(5)
    for _ in range(1000):
        loop(np.arange(35.0), 7, 5, out)
    assert out.tolist() == [30, 31, 32, 33, 34]
    loop(np.empty(0), 0, 5, out)  # nothing of it is read
    with pytest.raises(MemoryError):
        loop(np.arange(34.0), 7, 5, out)  # not as many numbers


def always(size):
    return -1


def share(size):
    return 1 / size


def test_what_loops_return():
    """numba gives a constant a type of its own."""
    assert compiled(always, "int64")(5) == -1
    with pytest.raises(ValueError, match="share: expected it to return one of"):
        emit(share, ("int64",), "symbol")


def with_a_message(numbers, out):
    out[:] = numbers


def test_what_only_numba_has_is_refused():
    """It would be an address of nothing."""
    arguments = array_type("float64", 1), array_type("float64", 1, written=True)
    with pytest.raises(ValueError, match=r"with_a_message needs what only numba has: \['"):
        emit(with_a_message, arguments, "symbol")


def test_code_is_the_same_wherever_the_source_is():
    """numba writes down in it where a loop may fail."""
    arguments = (
        array_type("float32", 1),
        array_type("int64", 1),
        array_type("float32", 2, written=True),
    )
    code = emit(halve, arguments, "symbol").code
    assert b"symbol" in code
    assert b"cutting_numba.py" not in code


OLD = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
NEW = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ((), []),
        (OLD[:-1], []),
        (OLD, ["x86-64-v3"]),
        ((*OLD, "avx512f"), ["x86-64-v3"]),
        ((*OLD, *NEW), ["x86-64-v4", "x86-64-v3"]),
        (NEW, []),
    ],
)
def test_levels_of_processors(monkeypatch, features, expected):
    monkeypatch.setattr(machine_code, "_features", lambda: dict.fromkeys(features, True))
    assert machine_code.levels() == expected
    assert machine_code.is_wide() == ("avx512f" in features)
    monkeypatch.setenv("NUMBA_ENABLE_AVX", "0")
    assert machine_code.levels() == []
    assert not machine_code.is_wide()


SAME = """
import sys
import numpy as np
from mkdesc.compute.cpu.backend import compile_head
from mkdesc.compute.cpu.head import make_stages
from mkdesc.heads.head import L2, Affine, Head, Power
rng = np.random.default_rng(0)
raw, found = rng.random((50, 40), np.float32), np.empty((50, 12), np.float32)
stages = make_stages(Head((Power(0.5), Affine(rng.random((40, 12), np.float32)), L2())))
compile_head()(raw, stages, found)
np.save(sys.argv[1], found)
"""


def test_code_for_a_level_computes_the_same(tmp_path):
    """As what is shipped is made and found."""
    found = []
    for name, told in {
        "own": {},
        "v3": {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""},
    }.items():
        if told and "x86-64-v3" not in machine_code.levels():
            pytest.skip("not a processor of that level")
        file = tmp_path / f"{name}.npy"
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / name)} | told
        subprocess.run([sys.executable, "-c", SAME, file], env=environment, check=True)
        found.append(np.load(file))
    np.testing.assert_allclose(*found, atol=4e-6)


def test_types_say_all_that_code_depends_on():
    """Names of fields, too: code that takes others of them is other code."""
    other = namedtuple("Inner", ["factor", "matrix"])
    one, two = type_of(Inner(np.zeros((1, 1)), 1.0)), type_of(other(np.zeros((1, 1)), 1.0))
    assert one.fields == two.fields == (Array("float64", 2, False), "float64")
    assert repr(one) != repr(two)

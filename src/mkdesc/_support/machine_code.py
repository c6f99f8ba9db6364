"""Machine code of loops as functions of Python: loaded by LLVM, called as C functions are.

numba, which made the code, is not needed for that. It passes an array as seven words and more:
two for its owner, which are empty here, how many elements there are and how long each is, where
they are, the shape, and the steps in bytes. Structures are passed field by field.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from functools import lru_cache
from typing import Any

import numpy as np

from mkdesc._support.loop_types import Array, Structure

#: The levels of x86-64 that code is shipped for, the best first, and what a processor of that
#: level has: those that have AVX-512, and those of the ten years before.
LEVELS = {
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
}

#: What numba is told by these is of another processor than this one, or of half of it.
_TOLD = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX")

_NUMBERS: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
_OF_ARRAY = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_void_p)
#: What a loop says when all went well: it returns something, or nothing.
_FINE = (0, -2)

_lock = threading.Lock()


@lru_cache(maxsize=1)
def _features() -> dict[str, bool]:
    """What this processor has, by LLVM's names; nothing if LLVM does not know."""
    import llvmlite.binding as llvm

    try:
        return dict(llvm.get_host_cpu_features())
    except RuntimeError:
        return {}


def is_wide() -> bool:
    """Whether the processor that loops are compiled for has AVX-512."""
    name, features, avx = (os.environ.get(name) for name in _TOLD)
    if name or features:
        return name == "x86-64-v4" or "+avx512f" in (features or "")
    return avx != "0" and _features().get("avx512f", False)


def levels() -> list[str]:
    """The levels of which this processor is, the best first; none if numba is told of another."""
    if any(name in os.environ for name in _TOLD):
        return []
    needed: tuple[str, ...] = ()
    found: list[str] = []
    for level, features in reversed(LEVELS.items()):
        needed += features
        if all(_features().get(name) for name in needed):
            found.insert(0, level)
    return found


@lru_cache(maxsize=1)
def system() -> str:
    """The system and the kind of processor: code for another one cannot even be loaded."""
    import llvmlite.binding as llvm

    return f"{sys.platform}-{llvm.get_process_triple().partition('-')[0]}"


def processor() -> str:
    """What code is compiled for: a level, if numba is told of one, or this very processor."""
    import llvmlite
    import llvmlite.binding as llvm

    told = [os.environ.get(name) for name in _TOLD]
    for level in LEVELS:
        if told == [level, "", None]:
            return level
    name, features = llvm.get_host_cpu_name(), sorted(_features().items())
    return f"{system()} {name} {features} {told} {llvmlite.__version__}"


@lru_cache(maxsize=1)
def _engine() -> Any:
    """What holds all code that was loaded."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if sys.platform == "linux" and not llvm.address_of_symbol("powf"):
        ctypes.CDLL("libm.so.6", ctypes.RTLD_GLOBAL)  # most Pythons have it already
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def load(code: bytes, symbol: str) -> int:
    """Load an object file that holds a function of this name; returns its address."""
    import llvmlite.binding as llvm

    with _lock:
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return int(engine.get_function_address(symbol))


class Loop:
    """Machine code that is called with arrays, numbers and structures of the types it is for.

    Parameters
    ----------
    name
        For messages.
    address
        Of the code.
    arguments
        Their types.
    returns
        The type of the number that it returns, or ``"none"``.
    """

    def __init__(self, name: str, address: int, arguments: tuple[Any, ...], returns: str) -> None:
        if returns not in (*_NUMBERS, "none"):
            raise ValueError(f"{name}: expected one of {', '.join(_NUMBERS)}, got {returns}")
        self.name, self.arguments, self.returns = name, arguments, returns
        words = [word for kind in arguments for word in _words(kind)]
        taken = (ctypes.c_void_p, ctypes.c_void_p, *words)
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, *taken)(address)

    def __call__(self, *values: Any) -> Any:
        """Call it; the lock of Python's is not held meanwhile."""
        words: list[Any] = []
        for number, (kind, value) in enumerate(zip(self.arguments, values, strict=True)):
            try:
                _add(kind, value, words)
            except TypeError as error:
                raise TypeError(f"{self.name}, argument {number}: {error}") from None
        result = _NUMBERS["int64" if self.returns == "none" else self.returns]()
        wrong = ctypes.c_void_p()
        status = self._call(ctypes.addressof(result), ctypes.addressof(wrong), *words)
        if status not in _FINE:  # loops raise nothing themselves
            raise MemoryError(f"{self.name}: not enough memory, or arrays that do not fit")
        return None if self.returns == "none" else result.value


def _words(kind: Any) -> tuple[Any, ...]:
    """The C types of what an argument is passed as."""
    if isinstance(kind, Array):
        return (*_OF_ARRAY, *[ctypes.c_ssize_t] * (2 * kind.ndim))
    if isinstance(kind, Structure):
        return tuple(word for field in kind.fields for word in _words(field))
    return (_NUMBERS[kind],)


def _add(kind: Any, value: Any, words: list[Any]) -> None:
    """Add what an argument is passed as; one of another type would be read as what it is not."""
    if isinstance(kind, Structure):
        words += _of_structure(kind, value)
    elif not isinstance(kind, Array):
        words.append(float(value) if kind.startswith("float") else int(value))
    elif (
        not isinstance(value, np.ndarray)
        or value.dtype != kind.dtype
        or value.ndim != kind.ndim
        or not value.flags.c_contiguous
        or (kind.written and not value.flags.writeable)
    ):
        got = getattr(value, "dtype", type(value).__name__), np.shape(value)
        raise TypeError(f"expected {kind}, in C order, got {got}")
    else:
        place = value.__array_interface__["data"][0]
        words += (None, None, value.size, value.itemsize, place, *value.shape, *value.strides)


#: Of structures that do not change, by their identity: themselves, their type, and their words.
_known: dict[int, tuple[Any, Structure, tuple[Any, ...]]] = {}
#: As many are kept: a process uses few models at a time.
_MOST_KNOWN = 64


def _of_structure(kind: Structure, value: Any) -> tuple[Any, ...]:
    """What a structure is passed as; kept if all its arrays are read-only, for it takes time."""
    known = _known.get(id(value))
    if known is not None and known[0] is value and known[1] == kind:
        return known[2]
    found: list[Any] = []
    for field, inner in zip(kind.fields, value, strict=True):
        _add(field, inner, found)
    words = tuple(found)
    if _is_fixed(value):
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[id(value)] = value, kind, words
    return words


def _is_fixed(value: Any) -> bool:
    """Whether there are arrays in it, and none of them can be written to."""
    if isinstance(value, tuple):
        return any(map(_is_fixed, value)) and not any(map(_is_writeable, value))
    return isinstance(value, np.ndarray) and not value.flags.writeable


def _is_writeable(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_writeable, value))
    return isinstance(value, np.ndarray) and value.flags.writeable

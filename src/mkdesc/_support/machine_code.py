"""Machine code of loops as functions of Python: loaded by LLVM, called by ctypes.

numba, which made the code, is not needed for that. Arguments are passed as words of eight bytes.
Of an array these are, as numba has it: two for its owner, which are empty here, how many elements
there are and how long each is, where they are, the shape, and the steps in bytes. Structures are
passed field by field.
"""

from __future__ import annotations

import ctypes
import os
import struct
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

#: Numbers as words of eight bytes.
_NUMBERS = {"bool": "?7x", "int64": "q", "float32": "f4x", "float64": "d"}
#: What loops may return, and where it is put.
RESULTS: dict[str, Any] = {"none": ctypes.c_void_p, "int64": ctypes.c_int64}
#: Structures that do not change, of which each loop keeps what they are passed as.
_MOST_KNOWN = 64
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
        self.name, self.arguments, self.returns = name, arguments, returns
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p)(address)
        #: Structures that do not change, by their identities, and what they are passed as.
        self._known: dict[int, tuple[Any, bytes]] = {}

    def __call__(self, *values: Any) -> Any:
        """Call it; the lock of Python's is not held meanwhile."""
        result, wrong = RESULTS[self.returns](), ctypes.c_void_p()
        passed = [struct.pack("PP", ctypes.addressof(result), ctypes.addressof(wrong))]
        for number, (kind, value) in enumerate(zip(self.arguments, values, strict=True)):
            try:
                passed.append(
                    self._structure(kind, value)
                    if isinstance(kind, Structure)
                    else _words(kind, value)
                )
            except (TypeError, struct.error) as error:
                raise TypeError(f"{self.name}, argument {number}: {error}") from None
        if self._call(b"".join(passed)) not in _FINE:  # loops raise nothing themselves
            raise MemoryError(f"{self.name}: not enough memory, or arrays that do not fit")
        return None if self.returns == "none" else result.value

    def _structure(self, kind: Structure, value: Any) -> bytes:
        """What a structure is passed as; kept if its arrays are read-only, for it takes time."""
        known = self._known.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        words = _words(kind, value)
        if _is_fixed(value):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[id(value)] = value, words
        return words


def _words(kind: Any, value: Any) -> bytes:
    """What an argument is passed as; one of another type would be read as what it is not."""
    if isinstance(kind, Structure):
        pairs = zip(kind.fields, value, strict=True)
        return b"".join([_words(field, inner) for field, inner in pairs])
    if not isinstance(kind, Array):
        return struct.pack(_NUMBERS[kind], value)
    if (
        not isinstance(value, np.ndarray)
        or value.dtype != kind.dtype
        or value.ndim != kind.ndim
        or not value.flags.c_contiguous
        or (kind.written and not value.flags.writeable)
    ):
        got = getattr(value, "dtype", type(value).__name__), np.shape(value)
        raise TypeError(f"expected {kind}, in C order, got {got}")
    place = value.__array_interface__["data"][0]
    words = (0, 0, value.size, value.itemsize, place, *value.shape, *value.strides)
    return struct.pack(f"{len(words)}q", *words)


def _is_fixed(value: Any) -> bool:
    """Whether none of the arrays in it can be written to."""
    if isinstance(value, tuple):
        return all(map(_is_fixed, value))
    return not (isinstance(value, np.ndarray) and value.flags.writeable)

"""Loops compiled by numba: how, and kept on disk in a way that may only ever cost time.

What is kept is used only if it is whole and if nothing that went into it has changed: the code of
the loop and of all that it calls, the constants they see, the options, the versions. Whatever
goes wrong with the files (truncated, overwritten, no room, no right to write) is as if they were
not there: the loop is compiled again.

numba's own cache watches the file of the outermost function alone, and trusts what it reads.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache, wraps
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

import numpy as np

from mkdesc._support.files import atomic_path

__all__ = [
    "CAREFUL",
    "EXACT",
    "FAST",
    "NOTHING",
    "array_type",
    "compile_loop",
    "is_kept",
    "once",
    "type_of",
]

FAST: dict[str, Any] = {
    "fastmath": True,
    "error_model": "numpy",
    "nogil": True,
    "inline": "never",
    # Only other loops call these: what Python, or C, would call them by takes time to compile.
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
#: NaN and infinity stay visible.
CAREFUL = FAST | {"fastmath": {"reassoc", "nsz", "contract"}}
#: Operations as they are written.
EXACT = FAST | {"fastmath": False}

#: What squared norms are kept above, to divide by their roots: nothing at all stays zeros.
NOTHING = 1e-70

T = TypeVar("T")


def once(make: Callable[..., T]) -> Callable[..., T]:
    """Call a function once for the same arguments, however many threads ask for the result.

    >>> numbers = iter(range(10))
    >>> @once
    ... def take(name):
    ...     return next(numbers)
    >>> take("a"), take("b"), take("a")
    (0, 1, 0)
    """
    kept, lock = lru_cache(maxsize=None)(make), threading.Lock()

    @wraps(make)
    def locked(*args: Hashable) -> T:
        with lock:
            return kept(*args)

    return locked


def array_type(dtype: str, ndim: int, written: bool = False) -> Any:
    """The numba type of an array in C order; read-only unless written to: then it may be either.

    In structures (named tuples) it must be as declared: numba does not convert what is in them.
    """
    import numba
    from numba import types

    return types.Array(numba.from_dtype(np.dtype(dtype)), ndim, "C", readonly=not written)


def type_of(structure: tuple[Any, ...]) -> Any:
    """The numba type of a named tuple of numbers, read-only arrays, and further named tuples."""
    import numba
    from numba import types

    def of(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return array_type(value.dtype.name, value.ndim)
        return type_of(value) if isinstance(value, tuple) else numba.typeof(value)

    return types.NamedTuple([of(value) for value in structure], type(structure))


def compile_loop(
    function: Callable[..., Any], arguments: tuple[Any, ...], **options: Any
) -> Callable[..., Any]:
    """Compile a function for arguments of these numba types, or read it from the disk.

    Parameters
    ----------
    function
        What is compiled, with all the compiled functions that it calls.
    arguments
        Numba types; see :func:`array_type` and :func:`type_of`.
    **options
        Of :func:`numba.njit`.
    """
    compiled, kept = _loop(function, arguments, options)
    if kept is not None:
        compiled._cache = kept
    compiled.compile(arguments)
    compiled.disable_compile()
    loop: Callable[..., Any] = compiled
    return loop


def is_kept(function: Callable[..., Any], arguments: tuple[Any, ...], **options: Any) -> bool:
    """Whether :func:`compile_loop` would find this on the disk, and hence take no time."""
    compiled, kept = _loop(function, arguments, options)
    return kept is not None and kept.read(arguments, compiled.targetctx) is not None


def _loop(
    function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, _Kept | None]:
    """A function to be compiled, and where on the disk it is kept."""
    import numba

    compiled: Any = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(
        function
    )
    return compiled, _Kept.of(function, _stamp(compiled, arguments))


class _Kept:
    """Compiled code on disk, in the place of numba's own cache of a function.

    One file per variant of the function, signature and processor: a digest of what follows and of
    the stamp of all that went into it, then numba's pickle of the machine code.
    """

    def __init__(self, place: Any, variant: str, stamp: bytes) -> None:
        self._place = place  # numba's: where files go, and how code is turned into data
        self._variant = variant
        self._stamp = stamp

    @classmethod
    def of(cls, function: Callable[..., Any], stamp: bytes) -> _Kept | None:
        """The files of a function; None if there is no folder for them."""
        from numba.core.caching import CompileResultCacheImpl

        variant = repr(sorted(_enclosed(function).items()))
        try:
            return cls(CompileResultCacheImpl(function), variant, stamp)
        except (OSError, RuntimeError):  # no folder to keep compiled code in is writable
            return None

    @property
    def cache_path(self) -> str:
        """The folder."""
        path: str = self._place.locator.get_cache_path()
        return path

    def _file(self, signature: Any, codegen: Any) -> Path:
        key = repr((self._variant, signature, codegen.magic_tuple()))
        name = hashlib.sha256(key.encode()).hexdigest()[:16]
        return Path(self.cache_path) / f"{self._place.filename_base}.{name}.nbc"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """What was compiled for a signature, or None."""
        target_context.refresh()
        data = self.read(signature, target_context)
        try:
            return (
                None if data is None else self._place.rebuild(target_context, pickle.loads(data))
            )
        except Exception:
            return None

    def read(self, signature: Any, target_context: Any) -> bytes | None:
        """The data of what was compiled for a signature; None if not there, or not whole."""
        try:
            content = self._file(signature, target_context.codegen()).read_bytes()
        except OSError:
            return None
        digest, data = content[:32], content[32:]
        return data if digest == hashlib.sha256(self._stamp + data).digest() else None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for a signature, if that is possible."""
        from numba.core.serialize import dumps

        try:
            if self._place.check_cachable(compiled):
                data = dumps(self._place.reduce(compiled))
                self._place.locator.ensure_cache_path()
                with atomic_path(self._file(signature, compiled.codegen)) as partial:
                    partial.write_bytes(hashlib.sha256(self._stamp + data).digest() + data)
        except Exception:  # no room, or no right: next time it is compiled again
            return


def _stamp(compiled: Any, arguments: tuple[Any, ...]) -> bytes:
    """A digest of all that machine code depends on besides the types of its arguments."""
    import llvmlite
    import numba

    facts = [numba.__version__, llvmlite.__version__, *map(_fields, arguments)]
    facts += _facts(compiled, set())
    return hashlib.sha256("\n".join(facts).encode()).digest()


def _fields(kind: Any) -> str:
    """The names in a type that is a structure; numba's name of it has the types alone."""
    inner = ",".join(map(_fields, getattr(kind, "types", ())))
    return f"{getattr(kind, 'fields', '')}[{inner}]"


def _facts(compiled: Any, seen: set[int]) -> Iterator[str]:
    """Options, code and constants of a compiled function and of those that it calls."""
    if id(compiled) in seen:
        return
    seen.add(id(compiled))
    function = compiled.py_func
    for name, option in sorted(compiled.targetoptions.items()):
        yield f"{name}={sorted(option) if isinstance(option, set) else option}"
    code = function.__code__
    yield from _code_facts(code)
    known = function.__globals__ | _enclosed(function)
    for name in sorted({*_names(code), *code.co_freevars}):
        value = known.get(name)
        if hasattr(value, "py_func"):
            yield from _facts(value, seen)
        elif isinstance(value, (bool, int, float, str, tuple, np.generic)):
            yield f"{name}={value!r}"


def _enclosed(function: Any) -> dict[str, Any]:
    """What a function made inside another one sees of it."""
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    return dict(zip(function.__code__.co_freevars, cells, strict=True))


def _code_facts(code: CodeType) -> Iterator[str]:
    yield f"{code.co_name} {code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_facts(constant)
        else:
            yield repr(constant)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)

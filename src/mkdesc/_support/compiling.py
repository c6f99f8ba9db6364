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
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache, wraps
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from mkdesc._support.files import atomic_path

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
TINY_SQUARE = 1e-70

T = TypeVar("T")


def locked_cache(make: Callable[..., T]) -> Callable[..., T]:
    """Call a function once for the same arguments, however many threads ask for the result.

    >>> numbers = iter(range(10))
    >>> @locked_cache
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
    compiled = _loop(function, options)
    compiled._cache = _Cache(compiled, arguments)
    with nullcontext() if compiled._cache.read() else _saying_why_it_takes_time():
        compiled.compile(arguments)
    compiled.disable_compile()
    loop: Callable[..., Any] = compiled
    return loop


#: Seconds after which somebody who waits for the compiler is told so.
PATIENCE = 1.0
#: Told once in a process.
_told = threading.Event()


@contextmanager
def _saying_why_it_takes_time() -> Iterator[None]:
    """One line on stderr, once in a process, if this takes a while."""
    timer = threading.Timer(PATIENCE, _say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say() -> None:
    if not _told.is_set() and sys.stderr is not None:
        _told.set()
        print(
            "mkdesc: compiling, once on this machine, some 15 s (`mkdesc compile` does it ahead)",
            file=sys.stderr,
        )


def is_cached(function: Callable[..., Any], arguments: tuple[Any, ...], **options: Any) -> bool:
    """Whether :func:`compile_loop` would find this on the disk, and hence take no time."""
    compiled = _loop(function, options)
    return _Cache(compiled, arguments).read() is not None


def _loop(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    import numba

    if numba.config.DISABLE_JIT:
        raise ValueError(
            "NUMBA_DISABLE_JIT is set, but this needs numba's compiler: unset it, or describe "
            "with MKD(backend='numpy')"
        )
    return numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)


class _Cache:
    """The machine code of one loop on disk, in place of numba's own cache.

    Two digests come before numba's pickle of the code: that of all that the code was made from,
    and that of the pickle itself.
    """

    cache_path = None  # numba asks for it

    def __init__(self, compiled: Any, arguments: tuple[Any, ...]) -> None:
        from numba.core.caching import CompileResultCacheImpl

        function, codegen = compiled.py_func, compiled.targetctx.codegen()
        name = _digest((_enclosed(function), arguments, codegen.magic_tuple()))
        self._stamp = _stamp(compiled, arguments)
        self._file: Path | None = None
        try:
            self._numba = CompileResultCacheImpl(function)
            folder = Path(self._numba.locator.get_cache_path())
            self._file = folder / f"{self._numba.filename_base}.{name.hex()[:16]}.nbc"
        except (OSError, RuntimeError):  # there is no folder that can be written to
            return

    def read(self) -> bytes | None:
        """What is on the disk; None if nothing is, or if it is damaged or out of date."""
        try:
            content = b"" if self._file is None else self._file.read_bytes()
        except OSError:
            return None
        data = content[64:]
        return data if content[:64] == self._stamp + hashlib.sha256(data).digest() else None

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled loop, or None."""
        target_context.refresh()
        data = self.read()
        try:
            return data and self._numba.rebuild(target_context, pickle.loads(data))
        except Exception:
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep the compiled loop, if that is possible."""
        from numba.core.serialize import dumps

        if self._file is None:
            return
        try:
            if self._numba.check_cachable(compiled):
                data = dumps(self._numba.reduce(compiled))
                self._numba.locator.ensure_cache_path()
                with atomic_path(self._file) as partial:
                    partial.write_bytes(self._stamp + hashlib.sha256(data).digest() + data)
        except Exception:  # no room, or no right: next time it is compiled again
            return


def _stamp(compiled: Any, arguments: tuple[Any, ...]) -> bytes:
    """A digest of all that machine code depends on besides the types of its arguments."""
    import llvmlite
    import numba

    function = compiled.py_func
    versions = numba.__version__, llvmlite.__version__, sys.version
    fields = [_fields(kind) for kind in arguments]
    modules = list(_modules(sys.modules[function.__module__], set()))
    options = [
        (key, sorted(option) if isinstance(option, set) else option)
        for key, option in sorted(compiled.targetoptions.items())
    ]
    return _digest((versions, fields, modules, options, _enclosed(function)))


def _digest(facts: object) -> bytes:
    return hashlib.sha256(repr(facts).encode()).digest()


def _fields(kind: Any) -> str:
    """The names in a type that is a structure; numba's name of it has the types alone."""
    inner = ",".join(map(_fields, getattr(kind, "types", ())))
    return f"{getattr(kind, 'fields', '')}[{inner}]"


def _modules(module: ModuleType, seen: set[ModuleType]) -> Iterator[object]:
    """Source and constants of a module of loops, and of those that it takes loops from."""
    seen.add(module)
    yield hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()
    for name, value in sorted(vars(module).items()):
        called = getattr(value, "py_func", None) or getattr(value, "_defn", None)
        if called is not None:  # a loop, or an intrinsic
            other = sys.modules[called.__module__]
            if other not in seen:
                yield from _modules(other, seen)
        elif isinstance(value, (int, float, np.generic)):
            yield name, value


def _enclosed(function: Any) -> list[object]:
    """What a function made inside another one sees of it."""
    return [cell.cell_contents for cell in function.__closure__ or ()]

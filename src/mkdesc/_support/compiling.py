"""Compiled loops: shipped with the package, kept on disk, or compiled now.

Machine code is used only if it is whole and if nothing that went into it has changed: the source
of the loop and of all that it calls, the constants they see, the types, the options, the
processor. Whatever goes wrong with the files (truncated, overwritten, no room, no right to write)
is as if they were not there: the loop is compiled again. Where numba's insides are not what
emitting expects, numba compiles the loop as anybody's, in every process.

Neither numba nor the modules of loops, which need it, are imported where machine code is found:
so a loop is asked for by its name, and what its code depends on is written down in its file.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mkdesc._support import machine_code
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

#: Where machine code is that came with the package.
SHIPPED = Path(__file__).parents[1] / "_compiled"

#: What says how code takes its arguments.
_CALLING = ("mkdesc._support.emitting", "mkdesc._support.machine_code")

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


def compile_loop(
    name: str, arguments: tuple[Any, ...], *, made_with: tuple[Any, ...] = (), **options: Any
) -> Callable[..., Any]:
    """The machine code of a loop for arguments of these types, found or compiled.

    Parameters
    ----------
    name
        Of the function that is compiled, with all the compiled functions that it calls:
        ``module:function``.
    arguments
        See :mod:`mkdesc._support.loop_types`.
    made_with
        If given, the named function makes the loop of these.
    **options
        Of :func:`numba.njit`.
    """
    asked = _Asked(name, made_with, arguments, options)
    shipped = [SHIPPED / asked.file_name(level) for level in machine_code.levels()]
    own = _folder() / asked.file_name(machine_code.processor())
    found = next(filter(None, (_read(file, asked) for file in (*shipped, own))), None)
    try:
        if found is None:
            with _saying_why_it_takes_time():
                found = _compile(asked)
            _write(own, found)
        address = machine_code.load(found.code, found.facts["symbol"])
    except Exception as error:  # the insides of numba or llvmlite are not what they were
        from mkdesc._support.emitting import compile_plainly

        _say(f"again in every process ({type(error).__name__}: {error})")
        return compile_plainly(_function(asked), arguments, **options)
    return machine_code.Loop(name, address, arguments, found.facts["returns"])


class _Asked(NamedTuple):
    """What loop is asked for."""

    name: str
    made_with: tuple[Any, ...]
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def text(self) -> str:
        """All of it; sets are in order."""
        return f"{self.name} {self.made_with} {self.arguments} {_plain(self.options)}"

    def file_name(self, processor: str) -> str:
        """Of the file that holds its code for a processor."""
        name = self.name.replace(":", ".").removeprefix("mkdesc.")
        return f"{name}-{_digest(f'{self.text()} {processor}'.encode())[:16]}.loop"


class _Code(NamedTuple):
    """Machine code, and what it was made of."""

    facts: dict[str, Any]
    code: bytes


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


_KEPT = "it is kept for next time (`mkdesc compile --model NAME --detector NAME` does it ahead)"


def _say(then: str = _KEPT) -> None:
    if not _told.is_set() and sys.stderr is not None:
        _told.set()
        what = "mkdesc: compiling what this model or detector needs, some 15 s"
        print(f"{what}; {then}", file=sys.stderr)


def _function(asked: _Asked) -> Callable[..., Any]:
    module_name, _, name = asked.name.partition(":")
    function: Callable[..., Any] = getattr(import_module(module_name), name)
    return function(*asked.made_with) if asked.made_with else function


def _compile(asked: _Asked) -> _Code:
    from mkdesc._support.emitting import emit

    symbol = f"loop_{_digest(asked.text().encode())[:16]}"
    emitted = emit(_function(asked), asked.arguments, symbol, **asked.options)
    sources, constants = _made_of(asked.name.partition(":")[0])
    facts = {
        "asked": asked.text(),
        "system": machine_code.system(),
        "symbol": symbol,
        "returns": emitted.returns,
        "sources": sources,
        "constants": constants,
    }
    return _Code(facts, emitted.code)


def _read(file: Path, asked: _Asked) -> _Code | None:
    """What is in a file; None if there is none, or if it is damaged or out of date."""
    try:
        digest, _, content = file.read_bytes().partition(b"\n")
        if digest.decode() != _digest(content):
            return None
        head, _, code = content.partition(b"\n")
        facts = json.loads(head)
        fits = (
            facts["asked"] == asked.text()
            and facts["sources"].keys() >= {*_CALLING}
            and facts["system"] == machine_code.system()
            and all(_source_digest(name) == known for name, known in facts["sources"].items())
            and all(_constant(name) == known for name, known in facts["constants"].items())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError):
        return None
    return _Code(facts, code) if fits else None


def _write(file: Path, found: _Code) -> None:
    """Keep machine code, if that is possible."""
    content = json.dumps(found.facts, sort_keys=True).encode() + b"\n" + found.code
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(file) as partial:
            partial.write_bytes(_digest(content).encode() + b"\n" + content)
    except OSError:  # no room, or no right: next time it is compiled again
        return


def _folder() -> Path:
    """Where machine code is kept: beside the package or, if that cannot be, with the user's."""
    if told := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(told)
    beside = SHIPPED.parent / "__pycache__"
    try:
        beside.mkdir(exist_ok=True)
        if os.access(beside, os.W_OK):
            return beside
    except OSError:
        pass
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mkdesc"
    except RuntimeError:  # nobody has a home
        return beside


def _made_of(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """What the loops of a module are made of: modules, by name, and constants of others.

    Digests of the sources of the module and of those that it takes loops from, and the numbers
    and options that they take from modules without loops. How code is emitted and called counts,
    too: code that expects its arguments elsewhere would read anything.
    """
    sources = {name: _source_digest(name) for name in _CALLING}
    constants: dict[str, str] = {}

    def follow(name: str) -> None:
        sources[name] = _source_digest(name)
        for node in ast.parse(Path(_source(name)).read_bytes()).body:
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("mkdesc."):
                for alias in node.names:
                    full = f"{node.module}:{alias.name}"
                    of_loops = str(node.module).endswith("_numba")
                    if isinstance(_value(full), (int, float, str, dict)) and not of_loops:
                        constants[full] = _constant(full)
                    elif str(node.module) not in sources:
                        follow(str(node.module))

    follow(name)
    return sources, constants


def _source(name: str) -> str:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ImportError(name)
    return spec.origin


@cache
def _source_digest(name: str) -> str:
    return _digest(Path(_source(name)).read_bytes())


def _value(full: str) -> Any:
    name, _, constant = full.partition(":")
    return getattr(import_module(name), constant)


def _constant(full: str) -> str:
    return repr(_plain(_value(full)))


def _plain(value: Any) -> Any:
    """A value whose text is the same in every process: sets are in order."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in sorted(value.items())}
    return sorted(value) if isinstance(value, set) else value


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

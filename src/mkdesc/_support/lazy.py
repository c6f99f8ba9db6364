"""Packages whose names are imported when they are first used (PEP 562)."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazy_names(
    package: str,
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package that imports when it must.

    The names are those that the package imports for type checkers, ``if TYPE_CHECKING``. They are
    taken from its code, as frozen applications have no sources. Modules
    of the package are reached by their names as well, imported or not.

    Parameters
    ----------
    package
        Its ``__name__``.

    Examples
    --------
    >>> import mkdesc.batches
    >>> get, names, public = lazy_names("mkdesc.batches")
    >>> names() == public == ['FORMATS', 'describe_file']
    True
    >>> get("describe_file").__module__
    'mkdesc.batches.describing'
    """
    spec: Any = sys.modules[package].__spec__
    home_of: dict[str, str] = {}
    home, root = "", package.partition(".")[0]
    for step in dis.get_instructions(spec.loader.get_code(package)):
        if step.opname == "IMPORT_NAME":
            home = step.argval
        elif step.opname == "IMPORT_FROM":
            first, *others = home.split(".")
            if first == root and others[:1] != ["_support"]:  # which packages import at once
                home_of[step.argval] = home

    def get(name: str) -> object:
        home = home_of.get(name, package)
        if home != package:
            value = getattr(import_module(home), name)
            setattr(sys.modules[package], name, value)  # found at once from now on
            return value
        if not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}; it has {', '.join(names())}"
        )

    def names() -> list[str]:
        return sorted(home_of)

    return get, names, [name for name in names() if home_of[name] != package]

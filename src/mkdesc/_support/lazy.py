"""Packages whose names are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec


def lazy_names(
    package: str, homes: Mapping[str, str], rooms: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that imports nothing before it is needed.

    Modules of the package are reached by their names as well, imported or not.

    Parameters
    ----------
    package
        Its ``__name__``.
    homes
        Modules of the package, and the public names that each defines, with blanks between.
    rooms
        Modules that ``dir`` shows beside these names, likewise.

    Examples
    --------
    >>> get, names = lazy_names("mkdesc.kernels", {"vonmises": "VonMises"})
    >>> get("VonMises")(8, 3).kappa, names()
    (8.0, ['VonMises'])
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def get(name: str) -> object:
        if name in home_of:
            value = getattr(import_module(f"{package}.{home_of[name]}"), name)
            setattr(sys.modules[package], name, value)  # found at once from now on
            return value
        if not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}; it has {', '.join(names())}"
        )

    def names() -> list[str]:
        return sorted([*home_of, *rooms.split()])

    return get, names

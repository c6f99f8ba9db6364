"""The ways of computing: names, and the modules that do it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

__all__ = ["BACKENDS", "load_backend"]

#: Each module has a function ``describe``; ``reference`` is the definition.
BACKENDS = {"cpu": "mkdesc.compute.cpu.backend", "reference": "mkdesc.compute.reference"}


def load_backend(name: str) -> Callable[..., NDArray[Any]]:
    """The function that describes patches, imported when it is first needed.

    >>> load_backend("reference").__module__
    'mkdesc.compute.reference'
    """
    describe: Callable[..., NDArray[Any]] = import_module(BACKENDS[name]).describe
    return describe

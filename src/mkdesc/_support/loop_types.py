"""The types of what compiled loops take, said without numba, which takes half a second to import.

A type is the name of a number (``"int64"``, ``"float32"``, ``"float64"``, ``"bool"``), an
:class:`Array`, or a :class:`Structure` of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Array(NamedTuple):
    """An array in C order; one that is written to, or one that is only read."""

    dtype: str
    ndim: int
    written: bool


class Structure(NamedTuple):
    """A tuple, or a named one, of further types."""

    kind: type
    fields: tuple[Any, ...]

    def __repr__(self) -> str:
        """All that machine code depends on: names, too."""
        names = getattr(self.kind, "_fields", ())
        return f"{self.kind.__name__}({list(names)}, {list(self.fields)})"


def array_type(dtype: str, ndim: int, written: bool = False) -> Array:
    """The type of an array in C order; read-only unless written to."""
    return Array(dtype, ndim, written)


def type_of(structure: tuple[Any, ...]) -> Structure:
    """The type of a named tuple of whole numbers, numbers, read-only arrays, and further ones.

    >>> class Line(NamedTuple):
    ...     length: int
    ...     pixels: np.ndarray
    >>> type_of(Line(3, np.zeros(3)))
    Line(['length', 'pixels'], ['int64', Array(dtype='float64', ndim=1, written=False)])
    """

    def of(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return array_type(value.dtype.name, value.ndim)
        if isinstance(value, tuple):
            return type_of(value)
        return "int64" if isinstance(value, int) else "float64"

    return Structure(type(structure), tuple(of(value) for value in structure))

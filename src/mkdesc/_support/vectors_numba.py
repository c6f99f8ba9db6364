"""Vectors of single-precision numbers as values of compiled loops.

numba makes vectors of loops by itself, but only of short loops over few arrays, and what one loop
leaves in registers the next one reads from memory. Here a vector is a value like any other: it is
loaded, added, multiplied and stored by name.

>>> import numpy as np
>>> from numba import njit
>>> @njit
... def double(numbers, out):
...     for i in range(0, len(numbers), LANES):
...         vector = load(numbers, i)
...         store(out, i, vector + vector)
>>> numbers, out = np.arange(32, dtype=np.float32), np.empty(32, np.float32)
>>> double(numbers, out)
>>> bool((out == 2 * numbers).all())
True
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from mkdesc._support.machine_code import is_wide

#: Numbers in a vector.
LANES = 16 if is_wide() else 8

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_INDEX = ir.IntType(32)
#: A product and a sum may be rounded once.
_FLAGS = ("contract",)
_ELEMENTS = {types.uint8: (ir.IntType(8), 1), types.float32: (ir.FloatType(), 4)}


class _Vector(types.Type):
    """The type of vectors."""

    def __init__(self) -> None:
        super().__init__(name=f"vector of {LANES}")


vector = _Vector()


@register_model(_Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _define(operation: Any, instruction: str) -> None:
    """Sums, differences or products of vectors."""

    @infer_global(operation)
    class _Signature(ConcreteTemplate):
        cases: ClassVar = [signature(vector, vector, vector)]

    @lower_builtin(operation, _Vector, _Vector)
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*arguments, flags=_FLAGS)


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")


def _pointer(context: Any, builder: Any, kind: Any, array: Any, first: Any) -> tuple[Any, int]:
    """Where a vector begins in an array, and how it is aligned."""
    element, align = _ELEMENTS[kind.dtype]
    data = context.make_array(kind)(context, builder, array).data
    place = builder.gep(data, [first])
    return builder.bitcast(place, ir.VectorType(element, LANES).as_pointer()), align


def _all(number: float) -> Any:
    """A vector of one number."""
    return ir.Constant(_VECTOR, [number] * LANES)


@intrinsic
def load(typing, array, first):
    """The numbers from ``first`` on of a flat array of uint8 or float32; no bounds are checked."""

    def build(context, builder, signature, arguments):
        pointer, align = _pointer(context, builder, signature.args[0], *arguments)
        loaded = builder.load(pointer, align=align)
        return loaded if loaded.type == _VECTOR else builder.uitofp(loaded, _VECTOR)

    return vector(array, types.intp), build


@intrinsic
def store(typing, array, first, numbers):
    """Write a vector to a flat array of float32, from ``first`` on; no bounds are checked."""

    def build(context, builder, signature, arguments):
        pointer, align = _pointer(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], pointer, align=align)
        return context.get_dummy_value()

    return types.none(array, types.intp, vector), build


@intrinsic
def spread(typing, number):
    """A vector of one number."""

    def build(context, builder, signature, arguments):
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(nothing, arguments[0], _INDEX(0))
        zeros = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
        return builder.shuffle_vector(first, nothing, zeros)

    return vector(types.float32), build


@intrinsic
def reverse(typing, numbers):
    """The last number first."""

    def build(context, builder, signature, arguments):
        order = ir.Constant(ir.VectorType(_INDEX, LANES), list(range(LANES))[::-1])
        return builder.shuffle_vector(arguments[0], arguments[0], order)

    return vector(vector), build


@intrinsic
def choose(typing, numbers, limit, above, otherwise):
    """Of each two, the one ``above`` where the number is larger than ``limit``."""

    def build(context, builder, signature, arguments):
        numbers, limit, above, otherwise = arguments
        return builder.select(builder.fcmp_ordered(">", numbers, limit), above, otherwise)

    return vector(vector, vector, vector, vector), build


@intrinsic
def inverse_root(typing, numbers):
    """``1 / sqrt(x)`` of positive normal numbers, to 2e-7 of it.

    With AVX-512 it is an estimate of 14 bits and a step of Newton's; elsewhere it is divided.
    """

    def call(builder, name, *arguments):
        kind = ir.FunctionType(_VECTOR, [argument.type for argument in arguments])
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, arguments)

    def build(context, builder, signature, arguments):
        (x,) = arguments
        if not is_wide():
            return builder.fdiv(_all(1.0), call(builder, f"llvm.sqrt.v{LANES}f32", x))
        every = ir.IntType(16)(-1)
        y = call(builder, "llvm.x86.avx512.rsqrt14.ps.512", x, _all(0.0), every)
        off = builder.fmul(builder.fmul(x, y), y, flags=_FLAGS)
        off = builder.fsub(_all(1.0), off, flags=_FLAGS)
        step = builder.fmul(builder.fmul(y, _all(0.5)), off, flags=_FLAGS)
        return builder.fadd(y, step, flags=_FLAGS)

    return vector(vector), build

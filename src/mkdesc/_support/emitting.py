"""Machine code of a loop as an object file that needs nothing but the C library: by numba.

What numba's own library would do for the loop (to allocate memory, and to reshape arrays in C
order) is put beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types

from mkdesc._support.loop_types import Array, Structure
from mkdesc._support.machine_code import RESULTS

#: What may be left to the C library; LLVM adds calls of its mathematics by itself.
_LIBRARY = {"malloc", "free", "sqrt", "atan2", "pow", "powf", "exp", "expf", "fmod"}

#: Numba's insides, which :func:`emit` reads, were as it expects up to this version.
LAST_TESTED = (0, 68)

_NUMBERS: dict[str, Any] = {"bool": bool, "int64": int, "float32": np.float32, "float64": float}
_BYTE, _INT, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_POINTER, _WORDS = _BYTE.as_pointer(), _WORD.as_pointer()
#: Bytes before what is allocated: numba keeps there how often it is referred to, and where it is.
_HEAD, _PLACE = 64, 3


class Emitted(NamedTuple):
    """An object file, and the type of what its function returns."""

    code: bytes
    returns: str


def emit(
    function: Callable[..., Any], arguments: tuple[Any, ...], symbol: str, **options: Any
) -> Emitted:
    """Compile a function for arguments of these types.

    The function ``symbol`` of the code takes an address of words, the arguments of numba's.
    """
    version = tuple(map(int, numba.__version__.split(".")[:2]))
    if version > LAST_TESTED:
        raise RuntimeError(f"tested up to numba {'.'.join(map(str, LAST_TESTED))}")
    compiled = _jitted(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    compiled.compile(tuple(map(_numba_type, arguments)))
    (found,) = compiled.overloads.values()
    machine = found.library.codegen._tm
    module = llvm.parse_assembly(_without_exceptions(str(found.library._final_module)))
    module.link_in(llvm.parse_assembly(str(_runtime())))
    convention, about = compiled.targetctx.call_conv, found.fndesc
    kind = convention.get_function_type(about.restype, about.argtypes)
    module.link_in(llvm.parse_assembly(str(_entry(symbol, about.llvm_func_name, kind))))
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration and each.name != symbol:
            each.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    left = {each.name for each in module.functions if each.is_declaration}
    if unknown := {name for name in left if not name.startswith("llvm.")} - _LIBRARY:
        raise ValueError(f"{function.__name__} needs what only numba has: {sorted(unknown)}")
    returns = str(types.unliteral(found.signature.return_type))
    if returns not in RESULTS:
        raise ValueError(f"{function.__name__}: expected it to return one of {[*RESULTS]}")
    return Emitted(machine.emit_object(module), returns)


def compile_plainly(
    function: Callable[..., Any], arguments: tuple[Any, ...], **options: Any
) -> Callable[..., Any]:
    """The same function by numba alone, which compiles it when it is called first."""
    compiled = _jitted(function, **options)

    def loop(*values: Any) -> Any:
        return compiled(*[_converted(*each) for each in zip(arguments, values, strict=True)])

    return loop


def _jitted(function: Callable[..., Any], **options: Any) -> Any:
    if numba.config.DISABLE_JIT:
        raise ValueError(
            "NUMBA_DISABLE_JIT is set, but this needs numba's compiler: unset it, or describe "
            "with MKD(backend='numpy')"
        )
    return numba.njit(nogil=True, error_model="numpy", **options)(function)


def _converted(kind: Any, value: Any) -> Any:
    """An argument of the type that numba would otherwise guess."""
    if isinstance(kind, Array):
        return value
    if not isinstance(kind, Structure):
        return _NUMBERS[kind](value)
    fields = [_converted(*each) for each in zip(kind.fields, value, strict=True)]
    return tuple(fields) if kind.kind is tuple else kind.kind(*fields)


def _without_exceptions(text: str) -> str:
    """LLVM's text without the exceptions that a loop says it failed by: that it did is enough.

    They are pickles, and hold the path of the source: code would not be the same everywhere.
    """
    return re.sub(r"(?<=[ (])@\.const\.picklebuf\.[\w.]+", "null", text)


def _numba_type(kind: Any) -> Any:
    if isinstance(kind, Array):
        element = numba.from_dtype(np.dtype(kind.dtype))
        return types.Array(element, kind.ndim, "C", readonly=not kind.written)
    if not isinstance(kind, Structure):
        return types.boolean if kind == "bool" else getattr(types, kind)
    fields = [_numba_type(field) for field in kind.fields]
    return types.Tuple(fields) if kind.kind is tuple else types.NamedTuple(fields, kind.kind)


def _entry(symbol: str, name: str, kind: ir.FunctionType) -> ir.Module:
    """A function that takes the arguments of another from words of eight bytes each."""
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(_INT, [_WORDS]), symbol)
    build = ir.IRBuilder(function.append_basic_block())
    arguments = []
    for number, wanted in enumerate(kind.args):
        word = build.load(build.gep(function.args[0], [_WORD(number)]))
        if isinstance(wanted, ir.PointerType):
            arguments.append(build.inttoptr(word, wanted))
        elif isinstance(wanted, ir.DoubleType):
            arguments.append(build.bitcast(word, wanted))
        elif isinstance(wanted, ir.FloatType):
            arguments.append(build.bitcast(build.trunc(word, _INT), wanted))
        else:
            arguments.append(word if wanted == _WORD else build.trunc(word, wanted))
    build.ret(build.call(ir.Function(module, kind, name), arguments))
    return module


def _runtime() -> ir.Module:
    """What numba's library does for loops, in LLVM's language."""
    module = ir.Module()

    def declare(name: str, result: Any, *taken: Any) -> ir.Function:
        return ir.Function(module, ir.FunctionType(result, taken), name)

    def define(name: str, result: Any, *taken: Any) -> tuple[ir.IRBuilder, Any]:
        function = declare(name, result, *taken)
        return ir.IRBuilder(function.append_basic_block()), function.args

    malloc, free = declare("malloc", _POINTER, _WORD), declare("free", ir.VoidType(), _POINTER)

    build, (size,) = define("NRT_Allocate", _POINTER, _WORD)
    build.ret(build.call(malloc, [size]))
    for name in ("NRT_Free", "NRT_MemInfo_call_dtor"):
        build, (memory,) = define(name, ir.VoidType(), _POINTER)
        build.call(free, [memory])
        build.ret_void()

    build, (size, align) = define("NRT_MemInfo_alloc_aligned", _POINTER, _WORD, _INT)
    align = build.zext(align, _WORD)
    memory = build.call(malloc, [build.add(size, build.add(align, _WORD(_HEAD)))])
    with build.if_then(build.icmp_unsigned("!=", memory, _POINTER(None))):
        words = build.bitcast(memory, _WORDS)
        first = build.add(build.ptrtoint(memory, _WORD), _WORD(_HEAD))
        place = build.add(first, build.sub(align, _WORD(1)))
        place = build.and_(place, build.sub(_WORD(0), align))
        build.store(_WORD(1), words)
        build.store(place, build.gep(words, [_WORD(_PLACE)]))
    build.ret(memory)

    _define_reshape(define)
    return module


def _define_reshape(define: Callable[..., Any]) -> None:
    """The steps of an array in C order that gets another shape: 1, or 0 if its size is another."""
    taken = (_WORD, _WORDS, _WORDS, _WORD, _WORDS, _WORDS, _WORD, _INT)
    name = "numba_attempt_nocopy_reshape"
    build, (ndim, shape, _, new_ndim, new_shape, steps, itemsize, _) = define(name, _INT, *taken)

    def product(count: Any, numbers: Any, first: Any, into: Any = None) -> Any:
        """The product of numbers, from the last on; what it is before each is written."""
        before = build.block
        head, body, after = (build.append_basic_block() for _ in range(3))
        build.branch(head)
        build.position_at_end(head)
        left, total = build.phi(_WORD), build.phi(_WORD)
        build.cbranch(build.icmp_unsigned("==", left, _WORD(0)), after, body)
        build.position_at_end(body)
        index = build.sub(left, _WORD(1))
        if into is not None:
            build.store(total, build.gep(into, [index]))
        larger = build.mul(total, build.load(build.gep(numbers, [index])))
        build.branch(head)
        for phi, start, later in ((left, count, index), (total, first, larger)):
            phi.add_incoming(start, before)
            phi.add_incoming(later, body)
        build.position_at_end(after)
        return total

    old = product(ndim, shape, itemsize)
    new = product(new_ndim, new_shape, itemsize, steps)
    build.ret(build.zext(build.icmp_unsigned("==", old, new), _INT))

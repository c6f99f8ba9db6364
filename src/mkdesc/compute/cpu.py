"""The fast path on the CPU: compiled loops over blocks of patches, shared among threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.compute.plan import make_plan
from mkdesc.gradients import smoothing_taps
from mkdesc.parametrization import Parametrization
from mkdesc.patches import nonfinite_error, plain_block
from mkdesc.whitening import Projection

__all__ = ["compile_for", "describe"]

#: Patches per unit of work: small enough to share evenly, large enough to hide the call.
BLOCK = 256

_compiling = threading.Lock()


@lru_cache
def _compile(name: str, dtype: str = "float32") -> Callable[..., Any]:
    import numba
    from numba import types

    from mkdesc.compute import kernels_numba

    def array(kind: types.Type, ndim: int) -> types.Array:
        # Declared read-only, an argument may be either; one compilation serves both.
        return types.Array(kind, ndim, "C", readonly=True)

    f32, f64, i64 = types.float32, types.float64, types.int64
    out = types.Array(f32, 2, "C")
    if name == "describe_block":
        patches = array(numba.from_dtype(np.dtype(dtype)), 3)
        functions, tiles = array(f32, 2), array(i64, 2)
        assembly = [array(i64, 1), array(i64, 1), array(f32, 1), array(i64, 1)]
        signature = i64(patches, f64, array(f64, 1), i64, functions, tiles, *assembly, out)
    else:
        raw, matrix, offset = array(f32, 2), array(f32, 2), array(f32, 1)
        signature = types.void(raw, matrix, offset, f32, types.boolean, out)
    function = getattr(kernels_numba, name)
    options = {"nogil": True, "error_model": "numpy", "fastmath": name == "project_block"}
    try:
        compiled: Callable[..., Any] = numba.njit(signature, cache=True, **options)(function)
    except RuntimeError:  # no folder to keep compiled code in is writable
        compiled = numba.njit(signature, **options)(function)
    return compiled


def compile_for(dtype: str) -> Callable[..., Any]:
    """The compiled loop for ``"uint8"`` or ``"float32"`` patches, from the disk cache if there."""
    with _compiling:
        return _compile("describe_block", dtype)


def describe(
    patches: NDArray[Any],
    parametrization: Parametrization,
    n_threads: int = 1,
    first: int = 0,
    projection: Projection | None = None,
) -> NDArray[np.float32]:
    """Descriptors (N, D) of checked patches (N, W, W), projected if so.

    ``first`` is the index of the first patch, for error messages.
    """
    size = patches.shape[-1]
    plan = make_plan(parametrization, size)
    taps = smoothing_taps(size)
    dims = parametrization.dims if projection is None else projection.matrix.shape[1]
    out = np.empty((len(patches), dims), np.float32)
    if projection is not None:
        offset = projection.mean @ projection.matrix
        with _compiling:
            project = _compile("project_block")

    def run(start: int) -> None:
        block, scale = plain_block(patches[start : start + BLOCK], first + start)
        final = out[start : start + BLOCK]
        raw = final
        if projection is not None:
            raw = np.empty((len(block), parametrization.dims), np.float32)
        bad = compile_for(block.dtype.name)(block, scale, taps, *plan, raw)
        if bad >= 0:
            raise nonfinite_error(first + start + bad)
        if projection is not None:
            power, root = np.float32(projection.power), projection.square_root
            project(raw, projection.matrix, offset, power, root, final)

    starts = range(0, len(patches), BLOCK)
    if n_threads == 1 or len(starts) < 2:
        for start in starts:
            run(start)
    else:
        with ThreadPoolExecutor(min(n_threads, len(starts))) as pool:
            for _ in pool.map(run, starts):  # in order: the first bad patch is the one named
                pass
    return out

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

__all__ = ["compile_for", "describe"]

#: Patches per unit of work: small enough to share evenly, large enough to hide the call.
BLOCK = 256

_compiling = threading.Lock()


@lru_cache
def _compile_for(dtype: str) -> Callable[..., int]:
    import numba
    from numba import types

    from mkdesc.compute.kernels_numba import describe_block

    def array(kind: types.Type, ndim: int) -> types.Array:
        # Declared read-only, an argument may be either; one compilation serves both.
        return types.Array(kind, ndim, "C", readonly=True)

    f32, f64, i64 = types.float32, types.float64, types.int64
    patches = array(numba.from_dtype(np.dtype(dtype)), 3)
    functions, tiles = array(f32, 2), array(i64, 2)
    assembly = [array(i64, 1), array(i64, 1), array(f32, 1), array(i64, 1)]
    out = types.Array(f32, 2, "C")
    signature = i64(patches, f64, array(f64, 1), i64, functions, tiles, *assembly, out)
    options = {"nogil": True, "error_model": "numpy"}
    try:
        compiled: Callable[..., int] = numba.njit(signature, cache=True, **options)(describe_block)
    except RuntimeError:  # no folder to keep compiled code in is writable
        compiled = numba.njit(signature, **options)(describe_block)
    return compiled


def compile_for(dtype: str) -> Callable[..., int]:
    """The compiled loop for ``"uint8"`` or ``"float32"`` patches, from the disk cache if there."""
    with _compiling:
        return _compile_for(dtype)


def describe(
    patches: NDArray[Any],
    parametrization: Parametrization,
    n_threads: int = 1,
    first: int = 0,
) -> NDArray[np.float32]:
    """Raw descriptors (N, D) of checked patches (N, W, W).

    ``first`` is the index of the first patch, for error messages.
    """
    size = patches.shape[-1]
    plan = make_plan(parametrization, size)
    taps = smoothing_taps(size)
    out = np.empty((len(patches), parametrization.dims), np.float32)

    def run(start: int) -> None:
        block, scale = plain_block(patches[start : start + BLOCK], first + start)
        described = out[start : start + BLOCK]
        bad = compile_for(block.dtype.name)(block, scale, taps, *plan, described)
        if bad >= 0:
            raise nonfinite_error(first + start + bad)

    starts = range(0, len(patches), BLOCK)
    if n_threads == 1 or len(starts) < 2:
        for start in starts:
            run(start)
    else:
        with ThreadPoolExecutor(min(n_threads, len(starts))) as pool:
            for _ in pool.map(run, starts):  # in order: the first bad patch is the one named
                pass
    return out

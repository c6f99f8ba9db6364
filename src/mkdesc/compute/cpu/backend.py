"""The fast path on the CPU: compiled loops over blocks of patches, shared among threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.compute.cpu.plan import make_plan
from mkdesc.heads.head import Head
from mkdesc.kernels.parametrization import Parametrization
from mkdesc.kernels.patches import check_finite, nonfinite_error, plain_block
from mkdesc.kernels.pixelfeatures import own_features

__all__ = ["describe"]

#: Patches per unit of work: small enough to share evenly, large enough to hide the call.
BLOCK = 256

_compiling = threading.Lock()


def _compile(function: Callable[..., Any], signature: Any, fastmath: bool) -> Callable[..., Any]:
    import numba

    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        compiled: Callable[..., Any] = numba.njit(signature, cache=True, **options)(function)
    except RuntimeError:  # no folder to keep compiled code in is writable
        compiled = numba.njit(signature, **options)(function)
    return compiled


def _read_only(kind: Any, ndim: int) -> Any:
    """The type of an array argument; declared read-only, it may be either."""
    from numba import types

    return types.Array(kind, ndim, "C", readonly=True)


@lru_cache
def _compile_describing(dtype: str, beyond: bool, separable: bool) -> Callable[..., int]:
    from numba import from_dtype, types

    from mkdesc.compute.cpu.describe_numba import make_describe_block

    f32, f64, i64 = types.float32, types.float64, types.int64
    reals, wholes = _read_only(f64, 1), _read_only(i64, 1)
    preparing = (f64, i64, reals, f64, reals)
    table, functions = _read_only(i64, 2), _read_only(f32, 2)
    plan = (wholes, table, wholes, functions, table, functions, functions)
    assembly = (wholes, wholes, _read_only(f32, 1), wholes)
    patches, out = _read_only(from_dtype(np.dtype(dtype)), 3), types.Array(f32, 2, "C")
    signature = i64(patches, _read_only(f32, 4), *preparing, *plan, *assembly, out)
    return _compile(make_describe_block(beyond, separable), signature, fastmath=False)


def _own_features(
    block: NDArray[Any], scale: float, parametrization: Parametrization, first: int
) -> NDArray[np.float32]:
    """The registered features of patches (N, W, W) in a parametrization, (N, K, S, S)."""
    if not parametrization.own:
        return np.zeros((0, 0, 0, 0), np.float32)
    check_finite(block, first)
    prepared = parametrization.preparation.prepare(block, scale)
    features = [own_features(feature, prepared) for feature in parametrization.own]
    return np.moveaxis(np.concatenate(features, axis=-1), -1, 1).astype(np.float32, "C")


def describe(
    patches: NDArray[Any],
    parametrization: Parametrization,
    n_threads: int = 1,
    first: int = 0,
    head: Head | None = None,
) -> NDArray[np.float32]:
    """Descriptors (N, D) of checked patches (N, W, W), through the head.

    ``first`` is the index of the first patch, for error messages.
    """
    size = patches.shape[-1]
    preparation = parametrization.preparation
    factor = preparation.reduction(size)
    plan = make_plan(parametrization, size // factor)
    preparing = (
        factor,
        preparation.taps(size),
        preparation.softening,
        np.array([preparation.epsilon_square, preparation.epsilon, preparation.flat]),
    )
    dims = parametrization.dims if head is None else head.dims_out
    out = np.empty((len(patches), dims), np.float32)

    def run(start: int) -> None:
        block, scale = plain_block(patches[start : start + BLOCK], first + start)
        final = out[start : start + BLOCK]
        raw = final
        if head is not None:
            raw = np.empty((len(block), parametrization.dims), np.float32)
        with _compiling:  # from the disk cache, if it is there
            compiled = _compile_describing(
                block.dtype.name, preparation.standardise, plan.separable
            )
        own = _own_features(block, scale, parametrization, first + start)
        bad = compiled(block, own, scale, *preparing, *plan, raw)
        if bad >= 0:
            raise nonfinite_error(first + start + bad)
        if head is not None:
            final[:] = head.apply(raw)

    starts = range(0, len(patches), BLOCK)
    if n_threads == 1 or len(starts) < 2:
        for start in starts:
            run(start)
    else:
        with ThreadPoolExecutor(min(n_threads, len(starts))) as pool:
            for _ in pool.map(run, starts):  # in order: the first bad patch is the one named
                pass
    return out

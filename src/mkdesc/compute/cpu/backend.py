"""The fast path on the CPU: compiled loops over blocks of patches, shared among threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import array_type, type_of
from mkdesc._support.threads import in_threads
from mkdesc.compute.cpu.head import make_stages
from mkdesc.compute.cpu.layout import make_layout
from mkdesc.compute.cpu.structures import Layout, Preparing, double
from mkdesc.heads.head import L2, Affine, Head
from mkdesc.kernels.parametrization import CARTESIAN, Parametrization
from mkdesc.kernels.patches import NOT_FINITE, SMALLEST, PatchError, check_finite, plain_block
from mkdesc.kernels.pixelfeatures import own_features
from mkdesc.kernels.preparation import PAPER, Preparation

#: Patches per unit of work: small enough to share evenly, large enough to hide the call.
BLOCK = 256


#: Gradients of smaller patches are computed in double precision: they are hardly blurred, so what
#: the far ends of the blur add to a gradient is near the rounding of the definition.
SMALLEST_IN_VECTORS = 24


class _Kind(NamedTuple):
    """Which loop describes.

    ``beyond``: patches are reduced and standardised; ``separable``: all spatial functions are
    products of one of x and one of y; ``in_vectors``: gradients alone, folded onto a quarter.
    """

    dtype: str
    beyond: bool
    separable: bool
    in_vectors: bool


def _kind(dtype: str, preparation: Preparation, layout: Layout, size: int) -> _Kind:
    beyond, separable = preparation.standardise, layout.separable
    in_vectors = not (beyond or separable) and size >= SMALLEST_IN_VECTORS
    return _Kind(dtype, beyond, separable, in_vectors)


@locked_cache
def _compile_describing(kind: _Kind) -> Callable[..., int]:
    """The loop that describes."""
    # All layouts are of one type, and so are all preparations: any will do.
    layout, preparing = make_layout(CARTESIAN, SMALLEST), _preparing(PAPER, SMALLEST)
    arguments = (
        array_type(kind.dtype, 3),
        array_type("float32", 4),
        "float64",
        type_of(preparing),
        type_of(layout),
        array_type("float32", 2, written=True),
    )
    # No fast mathematics but where a function that they call says so.
    if kind.in_vectors:
        return compile_loop(
            "mkdesc.compute.cpu.describe_gradients_numba:make_describe_gradients",
            arguments,
            made_with=(kind.dtype == "uint8",),
            fastmath=False,
        )
    return compile_loop(
        "mkdesc.compute.cpu.describe_numba:make_describe_block",
        arguments,
        made_with=(kind.beyond, kind.separable),
        fastmath=False,
    )


@locked_cache
def compile_head() -> Callable[..., None]:
    """The loop over the stages of a head."""
    stages = make_stages(Head((Affine(np.eye(1, dtype=np.float32)), L2())))  # of the type of all
    raw, out = array_type("float32", 2), array_type("float32", 2, written=True)
    arguments = (raw, type_of(stages), out)
    return compile_loop("mkdesc.compute.cpu.head_numba:apply_block", arguments, fastmath=True)


@lru_cache(maxsize=32)
def _preparing(preparation: Preparation, size: int) -> Preparing:
    """How patches of ``size`` px are prepared, for the loops."""
    return Preparing(
        factor=preparation.reduction(size),
        taps=double(preparation.taps(size)),
        softening=preparation.softening,
        epsilons=double(
            np.array([preparation.epsilon_square, preparation.epsilon, preparation.flat])
        ),
    )


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
    *,
    head: Head | None = None,
    squares: int = 1,
    n_threads: int = 1,
    first: int = 0,
) -> NDArray[np.float32]:
    """Descriptors (N, D) of checked patches (N, W, W); see :class:`~..backends.Describe`."""
    size = patches.shape[-1]
    preparation = parametrization.preparation
    preparing = _preparing(preparation, size)
    layout = make_layout(parametrization, size // preparing.factor)
    dims = squares * parametrization.dims if head is None else head.dims_out
    out = np.empty((len(patches) // squares, dims), np.float32)
    step = BLOCK - BLOCK % squares

    def run(start: int) -> None:
        block, scale = plain_block(patches[start : start + step], first + start)
        final = out[start // squares : (start + step) // squares]
        if head is None:
            raw = final.reshape(len(block), parametrization.dims)
        else:
            raw = np.empty((len(block), parametrization.dims), np.float32)
        loop = _compile_describing(_kind(block.dtype.name, preparation, layout, size))
        own = _own_features(block, scale, parametrization, first + start)
        bad = loop(block, own, scale, preparing, layout, raw)
        if bad >= 0:
            raise PatchError(first + start + bad, NOT_FINITE)
        if head is not None:
            compile_head()(raw.reshape(len(final), -1), make_stages(head), final)

    in_threads(run, range(0, len(patches), step), n_threads)  # the first bad patch is named
    return out

"""The sums of :mod:`mkdesc.compute.terms` in plain numpy, many patches at a time.

Nothing is compiled: a few thousand patches are done before the compiled loops are ready.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.threads import one_thread_each
from mkdesc._support.work import in_order
from mkdesc.compute.terms import Quantity, Terms, make_terms
from mkdesc.heads.head import Head
from mkdesc.kernels.parametrization import Parametrization
from mkdesc.kernels.patches import check_finite, plain_block
from mkdesc.kernels.pixelvalues import pixel_values

#: Patches at a time: their planes stay near the processor.
BLOCK = 32

Array = NDArray[np.float64]


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
    preparation = parametrization.preparation
    size = patches.shape[-1] // preparation.reduction(patches.shape[-1])
    terms, combination = _terms(parametrization, size)
    step = BLOCK * squares
    functions = terms.functions.reshape(len(terms.functions), -1).T

    def run(start: int) -> NDArray[np.float32]:
        block, scale = plain_block(patches[start : start + step], first + start)
        check_finite(block, first + start)
        values = pixel_values(block, preparation, scale, parametrization.own)
        known = {quantity: _quantity(values, quantity) for quantity in terms.quantities}
        planes = np.empty((len(block), len(terms.planes), size * size))
        for p, plane in enumerate(terms.planes):
            factors = [known[quantity].reshape(len(block), -1) for quantity in plane]
            planes[:, p] = factors[0] if len(factors) == 1 else factors[0] * factors[1]
        raw = (planes @ functions).reshape(len(block), -1) @ combination
        for low, high in zip(terms.part_starts, terms.part_starts[1:], strict=False):
            raw[:, low:high] = _unit(raw[:, low:high])
        single = _unit(raw).astype(np.float32).reshape(-1, squares * terms.dims)
        return single if head is None else head.apply(single)

    with one_thread_each():
        done = list(in_order(run, range(0, len(patches), step), n_threads))
    dims = squares * terms.dims if head is None else head.dims_out
    return np.concatenate(done) if done else np.empty((0, dims), np.float32)


@lru_cache(maxsize=8)
def _terms(parametrization: Parametrization, size: int) -> tuple[Terms, Array]:
    """The terms, and the matrix (P F, D) from all sums of planes times functions to components."""
    terms = make_terms(parametrization, size)
    n_functions = len(terms.functions)
    combination = np.zeros((len(terms.planes) * n_functions, terms.dims))
    np.add.at(
        combination, (terms.plane * n_functions + terms.function, terms.component), terms.factor
    )
    return terms, combination


def _quantity(values: dict[str, Array], quantity: Quantity) -> Array:
    """A pixel quantity (N, S, S)."""
    name, number = quantity
    if name == "theta":
        turned = (number + 1) // 2 * values["theta"]
        wave = np.sin(turned) if number and number % 2 == 0 else np.cos(turned)
        return values["weight"] * wave
    if name == "intensity":
        return np.abs(values[name]) if number else values[name]
    return values[name][..., number]


def _unit(rows: Array) -> Array:
    """Rows divided by their norms; zeros stay zeros."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)

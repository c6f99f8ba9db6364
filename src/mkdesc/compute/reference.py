"""The definition in plain numpy: every pixel's feature map, weighted, summed over the patch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.heads.head import Head
from mkdesc.kernels.grid import patch_grid
from mkdesc.kernels.parametrization import Parametrization
from mkdesc.kernels.patches import check_finite, plain_block
from mkdesc.kernels.pixelvalues import pixel_values
from mkdesc.kernels.products import Product


def pixel_weights(
    values: dict[str, NDArray[np.float64]], product: Product, window: bool
) -> NDArray[np.float64]:
    """How much the pixels (S, S) count in a product: gradient magnitude and window, if so."""
    weight = values["weight"] if product.weighted else np.ones_like(values["weight"])
    return weight * patch_grid(len(weight)).window if window else weight


def unit(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """A vector divided by its norm; zeros stay zeros."""
    norm = np.linalg.norm(v)
    return v / norm if norm > 0 else v


def describe(
    patches: NDArray[Any],
    parametrization: Parametrization,
    *,
    head: Head | None = None,
    squares: int = 1,
    n_threads: int = 1,
    first: int = 0,
) -> NDArray[np.float32]:
    """Descriptors (N, D) of checked patches (N, W, W); see :class:`~..backends.Describe`.

    One patch at a time: ``n_threads`` is accepted for the sake of the common call.
    """
    preparation = parametrization.preparation
    preparation.reduction(patches.shape[-1])  # refuses sizes that do not fit
    out = np.empty((len(patches), parametrization.dims), np.float32)
    for i in range(len(patches)):
        block, scale = plain_block(patches[i : i + 1], first + i)
        check_finite(block, first + i)
        values = pixel_values(block[0], preparation, scale, parametrization.own)
        products = []
        for product in parametrization.products:
            weight = pixel_weights(values, product, preparation.window)
            v = np.einsum("ij,ijd->d", weight, product.feature_map(values))
            products.append(v if preparation.joint else unit(v))
        out[i] = unit(np.concatenate(products))
    raw = out.reshape(-1, squares * parametrization.dims)
    return raw if head is None else head.apply(raw)

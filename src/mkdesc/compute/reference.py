"""The definition in plain numpy: every pixel's feature map, weighted, summed over the patch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.gradients import EPSILON, angle, gradients, magnitude
from mkdesc.parametrization import Parametrization, attributes
from mkdesc.patches import nonfinite_error, plain_block
from mkdesc.patchgrid import patch_grid
from mkdesc.whitening import Projection

__all__ = ["describe", "pixels"]


def pixels(
    patch: NDArray[Any], scale: float = 1.0
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    """Attributes of the pixels of one patch (W, W), as angles, and their weights (W, W).

    The weight is the window times the square root of the gradient magnitude.
    """
    grid = patch_grid(patch.shape[-1])
    gx, gy = (scale * g for g in gradients(patch))
    weight = grid.window * np.sqrt(magnitude(gx, gy) + EPSILON)
    return attributes(grid, angle(gx, gy)), weight


def describe(
    patches: NDArray[Any],
    parametrization: Parametrization,
    n_threads: int = 1,
    first: int = 0,
    projection: Projection | None = None,
) -> NDArray[np.float32]:
    """Descriptors (N, D) of checked patches (N, W, W), one patch at a time, projected if so.

    ``first`` is the index of the first patch, for error messages; ``n_threads`` is accepted
    for the sake of a common call and not used.
    """
    out = np.empty((len(patches), parametrization.dims), np.float32)
    for i in range(len(patches)):
        block, scale = plain_block(patches[i : i + 1], first + i)
        if not np.isfinite(block).all():
            raise nonfinite_error(first + i)
        values, weight = pixels(block[0], scale)
        parts = []
        for part in parametrization.parts:
            v = np.einsum("ij,ijd->d", weight, part.feature_map(values))
            parts.append(v / np.linalg.norm(v))
        v = np.concatenate(parts)
        out[i] = v / np.linalg.norm(v)
    return out if projection is None else projection.apply(out)

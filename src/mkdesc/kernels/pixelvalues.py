"""What kernels may look at in the pixels of a patch, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.kernels.gradients import angle, gradients, second_order
from mkdesc.kernels.grid import PatchGrid, patch_grid
from mkdesc.kernels.pixelfeatures import OwnFeature, compress, own_features, shape_features
from mkdesc.kernels.preparation import Preparation

#: Attributes of a pixel's position, with the factor that maps each to an angle.
SPATIAL = {"x": np.pi / 2, "y": np.pi / 2, "rho": np.pi, "phi": 1.0}


def positions(grid: PatchGrid) -> dict[str, NDArray[np.float64]]:
    """The positions of pixels as angles, each (W, W)."""
    return {name: factor * getattr(grid, name) for name, factor in SPATIAL.items()}


def pixel_values(
    patch: NDArray[Any],
    preparation: Preparation,
    scale: float = 1.0,
    own: tuple[OwnFeature, ...] = (),
) -> dict[str, NDArray[np.float64]]:
    """All that kernels may look at in the pixels of ``scale * patch`` (W, W), after preparation.

    Angles (S, S) by the names of the attributes; ``intensity`` (S, S); ``shape`` (S, S, 9);
    ``weight`` (S, S), the square root of the gradient magnitude; and one's ``own`` (S, S, dims).
    Of patches (N, W, W) all but the positions have one more axis, the first one.
    """
    if preparation.standardise:
        image, scale = preparation.prepare(patch, scale), 1.0
    else:  # scaled after the differences, as the fast path does: in flat areas rounding shows
        image = preparation.prepare(patch)
    stack = image.reshape(-1, *image.shape[-2:])
    grid = patch_grid(image.shape[-1])
    gx, gy = (scale * g for g in gradients(image))
    theta = angle(gx, gy, preparation.flat)
    magnitude = np.sqrt(gx**2 + gy**2 + preparation.epsilon_square)
    return {
        **positions(grid),
        "theta": theta,
        "relative_theta": theta - grid.phi,
        "intensity": compress(image),
        "shape": shape_features(*second_order(image)),
        "weight": np.sqrt(magnitude + preparation.epsilon),
        **{
            feature.name: own_features(feature, stack).reshape(*image.shape, feature.dims)
            for feature in own
        },
    }

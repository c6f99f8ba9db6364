"""How far a detector's scores peak from what they are scores of: half a turn shows it.

Learned kernels are not symmetric, so peaks are to one side, by the same part of a pixel on every
level. In an image that is turned by half they are to the other side of the same things.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.detectors.learned import LEVELS
from mkdesc.images.detectors.learned_torch import maxima
from mkdesc.images.detectors.learned_weights import Weights

#: Strongest maxima of an image that are looked at: as many as are used.
STRONGEST = 2000


def measure_offset(
    weights: Weights, images: Iterable[NDArray[np.uint8]], device: str = "cpu"
) -> tuple[float, float]:
    """The offset of weights, right and down, in pixels of the level; medians.

    Parameters
    ----------
    weights
        Of a detector; the offset that they have already does not count.
    images
        (H, W) uint8, each.
    device
        Of PyTorch.
    """
    every = [np.empty((0, 2)), *(_half_turned(weights, image, device) for image in images)]
    offsets = np.concatenate(every)
    if not len(offsets):
        return 0.0, 0.0
    right, low = np.clip(np.median(offsets, axis=0) / 2, -0.5, 0.5).round(4).tolist()
    return right, low


def _half_turned(weights: Weights, image: NDArray[np.uint8], device: str) -> NDArray[np.float64]:
    """Offsets (N, 2) in pixels between maxima of an image and of half a turn of it."""
    from scipy.spatial import cKDTree

    levels, here = maxima(image, weights, LEVELS, device)
    _, turned = maxima(np.ascontiguousarray(image[::-1, ::-1]), weights, LEVELS, device)
    here, turned = here.strongest(STRONGEST), turned.strongest(STRONGEST)
    offsets = [np.empty((0, 2))]
    for number, level in enumerate(levels):
        one, other = (
            np.column_stack([found.x, found.y])[found.level == number] for found in (here, turned)
        )
        if len(one):
            back = np.array(level.shape[::-1]) - 1 - other
            away, nearest = map(np.asarray, cKDTree(one).query(back, distance_upper_bound=1))
            found = np.isfinite(away)
            offsets.append(one[nearest[found]] - back[found])
    return np.concatenate(offsets)

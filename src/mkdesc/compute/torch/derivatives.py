"""Smoothed patches and their derivatives, step by step as in :mod:`mkdesc.kernels`.

Equal taps are added first: in flat or symmetric neighbourhoods gradients are exactly zero. A
gradient of zero has a direction by definition (the angle 0), the shortest other has its own.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

#: Numbers in a vector of any CPU, at most.
LANES = 16


def smoothed(image: Tensor, taps: list[float]) -> Tensor:
    """Patches (N, S, S) smoothed by half a Gaussian (reach + 1,), the border replicated."""
    for axis in (2, 1):
        reach, size = len(taps) - 1, image.shape[axis]
        sides = (reach, reach, 0, 0) if axis == 2 else (0, 0, reach, reach)
        padded = pad(image[:, None], sides, mode="replicate")[:, 0]
        image = taps[0] * image
        for k, tap in enumerate(taps[1:], 1):
            before = padded.narrow(axis, reach - k, size)
            pair = before + padded.narrow(axis, reach + k, size)
            # At once is faster, but vectors then round once and what is left of a line twice.
            whole = size % LANES == 0
            image = torch.add(image, pair, alpha=tap) if whole else image + tap * pair
    return image


def _neighbours(image: Tensor) -> Tensor:
    """Patches (N, S, S) with their borders replicated by one pixel."""
    return pad(image[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]


def gradients(image: Tensor) -> tuple[Tensor, Tensor]:
    """``(gx, gy)`` of smoothed patches; see :func:`mkdesc.kernels.gradients.gradients`."""
    p = _neighbours(image)
    return p[:, 1:-1, :-2] - p[:, 1:-1, 2:], p[:, :-2, 1:-1] - p[:, 2:, 1:-1]


def second_order(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``(l, d, e)`` of smoothed patches; see :func:`mkdesc.kernels.gradients.second_order`."""
    p = _neighbours(image)
    here = p[:, 1:-1, 1:-1]
    xx = p[:, 1:-1, :-2] - 2 * here + p[:, 1:-1, 2:]
    yy = p[:, :-2, 1:-1] - 2 * here + p[:, 2:, 1:-1]
    xy = (p[:, :-2, :-2] + p[:, 2:, 2:] - p[:, :-2, 2:] - p[:, 2:, :-2]) / 4
    return xx + yy, xx - yy, 2 * xy

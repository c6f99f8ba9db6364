"""The compiled loop over patches of which gradients alone are looked at, as in the paper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mkdesc.compute.cpu.gradients_numba import (
    PAD,
    derive,
    extend,
    gradient_planes,
    padded_stride,
)
from mkdesc.compute.cpu.pixels_numba import spread
from mkdesc.compute.cpu.sums_numba import assemble, contract
from mkdesc.compute.cpu.unrolling import TILE_SUMS, TOGETHER

#: Pixels are scaled to this power of 2: squares of gradients neither vanish nor overflow.
HEADROOM = 2.0**60


def make_describe_gradients(of_bytes: bool) -> Callable[..., int]:
    """The loop over patches; ``of_bytes``: of uint8, which need no scaling and are finite."""

    def describe_gradients(patches, own, scale, preparing, layout, out):
        """Describe patches (N, W, W) into ``out`` (N, D); the first bad patch's index, or -1.

        Parameters
        ----------
        patches : (N, W, W)
        own : (0, 0, 0, 0) float32
            There are no registered features.
        scale : float64
            What pixels are multiplied by.
        preparing : Preparing
        layout : Layout
        out : (N, D) float32
        """
        taps, functions, tiles = preparing.taps, layout.functions.quarter, layout.functions.tiles
        size, n_gradient = patches.shape[1], layout.quantities.gradient
        half, step = (size + 1) // 2, functions.shape[1] + PAD
        pixels = np.zeros(size * padded_stride(size) + PAD, np.float32)
        in_x, in_y = np.zeros_like(pixels), np.zeros_like(pixels)
        shares = np.ones(half + PAD, np.float32)
        if size % 2:
            shares[half - 1] = 0.5
        epsilons = np.empty(3, np.float32)
        planes = np.zeros((TOGETHER, n_gradient, 4, step), np.float32)
        flat = planes.ravel()
        tile_sums = np.empty((TOGETHER, len(tiles), TILE_SUMS), np.float32)
        for first in range(0, len(patches), TOGETHER):
            n = min(TOGETHER, len(patches) - first)
            for k in range(n):
                patch = patches[first + k]
                gain = 1.0
                if not of_bytes:
                    width = spread(patch, size)
                    if not np.isfinite(width):
                        return first + k
                    gain = HEADROOM  # and a power of two, whatever the width: nothing is rounded
                    while width >= 1:
                        width, gain = 0.5 * width, 0.5 * gain
                # The gain cancels in the end; only the epsilons must follow it.
                follow = gain / scale
                epsilons[0] = preparing.epsilons[0] * follow**2
                epsilons[1] = preparing.epsilons[1] * follow
                epsilons[2] = (preparing.epsilons[2] * follow) ** 2
                extend(patch, np.float32(gain), size, pixels)
                derive(pixels, taps, size, in_x, in_y)
                start, harmonics = k * n_gradient * 4 * step, (n_gradient - 1) // 2
                gradient_planes(
                    in_x, in_y, taps, epsilons, shares, size, harmonics, flat, start, step
                )
            contract(planes, n, functions, tiles, tile_sums)
            for k in range(n):
                assemble(tile_sums[k].ravel(), layout.assembly, out[first + k])
        return -1

    return describe_gradients

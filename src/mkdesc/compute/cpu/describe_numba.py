"""The compiled loop over patches.

Kept apart from :mod:`mkdesc.compute.cpu.backend` so that numba is imported (and, the first time
on a machine, compiles) only when patches are really described.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mkdesc.compute.cpu.pixels_numba import (
    centred,
    curvatures,
    directions,
    gradients,
    intensities,
    keep,
    load,
    mean_and_deviation,
    multiply,
    place,
    shapes,
    smooth,
    spread,
    take_views,
    turn,
    weigh,
)
from mkdesc.compute.cpu.sums_numba import (
    assemble,
    contract,
    contract_lines,
    contract_rows,
    drop_middle,
    fold,
)
from mkdesc.compute.cpu.unrolling import LINE, TILE_SUMS, TOGETHER

#: Gradients are scaled up to this, so that their squares neither vanish nor overflow in float32.
HEADROOM = 2.0**60


def make_describe_block(beyond: bool, separable: bool) -> Callable[..., int]:
    """The loop over patches, compiled with what a parametrization needs and without the rest.

    ``beyond``: whether patches are reduced and standardised, and intensity and shape looked at.
    ``separable``: whether all spatial functions are products of one of x and one of y.
    """

    def describe_block(patches, own, scale, preparing, layout, out):
        """Describe patches (N, W, W) into ``out`` (N, D); the first bad patch's index, or -1.

        Parameters
        ----------
        patches : (N, W, W)
        own : (N, K, S, S) float32
            The features that were registered.
        scale : float64
            What pixels are multiplied by.
        preparing : Preparing
        layout : Layout
        out : (N, D) float32
        """
        factor, taps, epsilons = preparing.factor, preparing.taps, preparing.epsilons
        products, planes_of = layout.quantities.products, layout.quantities.planes
        n_gradient, n_intensity = layout.quantities.gradient, layout.quantities.intensity
        n_shape, n_own = layout.quantities.shape, layout.quantities.own
        functions, tiles = layout.functions.quarter, layout.functions.tiles
        across, down = layout.functions.across, layout.functions.down
        size = patches.shape[1] // factor
        side, n_views = (size, 1) if separable else ((size + 1) // 2, 4)
        n_plain = n_gradient + n_intensity + n_shape + n_own
        values = np.empty((size, size), np.float64)
        between = np.empty((size, size), np.float64)
        blurred = np.empty((size, size + 2), np.float64)
        views = np.empty((n_views, side + 2, side + 2), np.float64)
        derivatives = np.empty((4, n_views, side, side), np.float32)
        a, b, c = derivatives[0], derivatives[1], derivatives[2]
        flat = derivatives.reshape(4, n_views, side * side)
        u, v, w, room = flat[0], flat[1], flat[2], flat[3]
        shape = n_plain + len(products), n_views, side * side
        # Vectors may reach behind the last row.
        numbers = np.zeros(shape[0] * shape[1] * shape[2] + LINE, np.float32)
        quantities = numbers[:-LINE].reshape(shape)
        if separable:
            columns = np.empty((len(down) * len(quantities), across.shape[1]), np.float32)
            sums = np.empty((len(across), len(columns)), np.float32)
        else:
            planes = np.zeros((TOGETHER, len(quantities), 4, functions.shape[1]), np.float32)
            tile_sums = np.empty((TOGETHER, len(tiles), TILE_SUMS), np.float32)
        for first in range(0, len(patches), TOGETHER):
            n = min(TOGETHER, len(patches) - first)
            for k in range(n):
                patch = patches[first + k]
                width = spread(patch, len(patch))
                if not np.isfinite(width):
                    return first + k
                if beyond:
                    load(patch, factor, values)
                    smooth(values, taps, between, blurred)
                    take_views(blurred, views)
                    mean, deviation = mean_and_deviation(blurred)
                    gain, follow = 1.0 / (deviation * scale + preparing.softening), 1.0
                else:
                    smooth(patch, taps, between, blurred)
                    # The gain cancels in the end; only the epsilons must follow it.
                    gain = HEADROOM / max(1.0, width * scale)
                    follow = gain
                if n_gradient:
                    gradients(blurred, scale * gain, a, b)
                    flat_square = np.float32((epsilons[2] * follow) ** 2)
                    epsilon_square = np.float32(epsilons[0] * follow**2)
                    epsilon = np.float32(epsilons[1] * follow)
                    directions(u, v, flat_square, epsilon_square, epsilon, quantities)
                    for h in range(1, (n_gradient + 1) // 2):
                        if h == 1:
                            weigh(quantities, u, v, w, room)
                        else:
                            turn(w, room, u, v)
                        keep(w, 2 * h - 1, quantities)
                        keep(room, 2 * h, quantities)
                if beyond:
                    if n_intensity:
                        centred(views, mean, scale * gain, a)
                        intensities(u, n_gradient, quantities)
                    if n_shape:
                        curvatures(views, scale * gain, a, b, c)
                        shapes(u, v, w, n_gradient + n_intensity, quantities)
                    if n_own:
                        place(own, first + k, n_plain - n_own, side, quantities)
                    multiply(products, n_plain, quantities)
                if separable:
                    contract_rows(numbers, len(quantities), down, columns)
                    contract_lines(columns, across, sums)
                    assemble(sums.ravel(), layout.assembly, out[first + k])
                else:
                    if size % 2:
                        drop_middle(quantities, side)
                    for which in planes_of:
                        fold(quantities, which, planes, k)
            if not separable:
                contract(planes, n, functions, tiles, tile_sums)
                for k in range(n):
                    assemble(tile_sums[k].ravel(), layout.assembly, out[first + k])
        return -1

    return describe_block

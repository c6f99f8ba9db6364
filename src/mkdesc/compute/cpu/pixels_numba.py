"""Compiled loops over the pixels of a patch: smoothing, derivatives, and their features.

Gradients are computed in float64, step by step as in :mod:`mkdesc.kernels.gradients`: in nearly
flat patches their directions hang on the last bit. Everything after them is float32.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc._support.compiling import CAREFUL, EXACT, FAST
from mkdesc.kernels.pixelfeatures import SHAPE_EPSILON

#: Squares below it are taken for 0: some processors have no reciprocal root of smaller numbers.
SMALLEST_NORMAL = 1.2e-38


@njit(**CAREFUL)
def spread(patch, size):
    """A bound of the values of a patch; not finite if the patch is not."""
    # Each term is small enough for the sum of all to stay finite.
    share = np.float32(0.5) / np.float32(size * size)
    total = np.float32(0)
    values = patch.ravel()
    for i in range(len(values)):
        total += abs(np.float32(values[i]) * share)
    return np.float64(total) / share


@njit(**EXACT)
def load(patch, factor, values):
    """The patch, reduced by a factor, in ``values`` (S, S) float64."""
    if factor == 1:
        for y in range(len(values)):
            for x in range(len(values)):
                values[y, x] = patch[y, x]
        return
    share = 1.0 / (factor * factor)
    for y in range(len(values)):
        for x in range(len(values)):
            total = 0.0
            for dy in range(factor):
                for dx in range(factor):
                    total += patch[y * factor + dy, x * factor + dx]
            values[y, x] = total * share


@njit(**EXACT)
def smooth(values, taps, across, blurred):
    """Blur ``values`` (S, S) with 5 or 9 taps, given as 3 or 5.

    ``blurred`` (S, S + 2) gets its border in x replicated.
    """
    size = len(values)
    last = size - 1
    line = np.empty(size + 8, np.float64)
    for y in range(size):
        for x in range(size):
            line[x + 4] = values[y, x]
        for k in range(4):
            line[k] = values[y, 0]
            line[size + 4 + k] = values[y, last]
        for x in range(size):
            across[y, x] = (
                taps[0] * line[x + 4]
                + taps[1] * (line[x + 3] + line[x + 5])
                + taps[2] * (line[x + 2] + line[x + 6])
            )
        if len(taps) == 5:
            for x in range(size):
                across[y, x] = (
                    across[y, x]
                    + taps[3] * (line[x + 1] + line[x + 7])
                    + taps[4] * (line[x] + line[x + 8])
                )
    for y in range(size):
        a, b = across[max(y - 2, 0)], across[max(y - 1, 0)]
        c, d, e = across[y], across[min(y + 1, last)], across[min(y + 2, last)]
        for x in range(size):
            blurred[y, x + 1] = taps[0] * c[x] + taps[1] * (b[x] + d[x]) + taps[2] * (a[x] + e[x])
        if len(taps) == 5:
            a, b = across[max(y - 4, 0)], across[max(y - 3, 0)]
            d, e = across[min(y + 3, last)], across[min(y + 4, last)]
            for x in range(size):
                blurred[y, x + 1] = (
                    blurred[y, x + 1] + taps[3] * (b[x] + d[x]) + taps[4] * (a[x] + e[x])
                )
        blurred[y, 0] = blurred[y, 1]
        blurred[y, size + 1] = blurred[y, size]


@njit(**EXACT)
def take_views(blurred, views):
    """The upper left corner of a patch and its mirror images, with one more pixel on every side.

    ``views`` (4, S/2 + 2, S/2 + 2) are the quarters of the patch: as it is, mirrored in x, in y,
    and in both; ``views`` (1, S + 2, S + 2) is the whole. Beyond the patch its border is
    replicated.
    """
    last, side = len(blurred) - 1, views.shape[1]
    for m in range(len(views)):
        for row in range(side):
            y = min(max(row - 1, 0), last)
            here, out = blurred[last - y if m >= 2 else y], views[m, row]
            if m % 2:
                for x in range(side):
                    out[x] = here[last + 2 - x]
            else:
                for x in range(side):
                    out[x] = here[x]


@njit(**CAREFUL)
def mean_and_deviation(blurred):
    """Mean and standard deviation of a blurred patch (S, S + 2), its border left out."""
    size = len(blurred)
    total = 0.0
    for y in range(size):
        for x in range(size):
            total += blurred[y, x + 1]
    mean = total / (size * size)
    square = 0.0
    for y in range(size):
        for x in range(size):
            square += (blurred[y, x + 1] - mean) ** 2
    return mean, np.sqrt(square / (size * size))


@njit(**EXACT)
def gradients(blurred, gain, gx, gy):
    """``gain`` times the gradients of a patch, (M, side, side), as by :func:`take_views`."""
    side = gx.shape[1]
    last = len(blurred) - 1
    for m in range(len(gx)):
        for row in range(side):
            y = last - row if m >= 2 else row
            up, here, down = blurred[max(y - 1, 0)], blurred[y], blurred[min(y + 1, last)]
            out_x, out_y = gx[m, row], gy[m, row]
            if m % 2:
                for x in range(side):
                    out_x[x] = (here[last - x] - here[last - x + 2]) * gain
                    out_y[x] = (up[last - x + 1] - down[last - x + 1]) * gain
            else:
                for x in range(side):
                    out_x[x] = (here[x] - here[x + 2]) * gain
                    out_y[x] = (up[x + 1] - down[x + 1]) * gain


@njit(**EXACT)
def centred(views, mean, gain, values):
    """``gain * (pixel - mean)`` of views, (M, side, side)."""
    side = values.shape[1]
    for m in range(len(views)):
        for row in range(side):
            here, out = views[m, row + 1], values[m, row]
            for i in range(side):
                out[i] = (here[i + 1] - mean) * gain


@njit(**EXACT)
def curvatures(views, gain, blob, ridge, saddle):
    """``gain`` times the second derivatives of views, (M, side, side) each."""
    side = blob.shape[1]
    for m in range(len(views)):
        gain_xy = 0.5 * (-gain if m in (1, 2) else gain)
        for row in range(side):
            up, here, down = views[m, row], views[m, row + 1], views[m, row + 2]
            out_l, out_d, out_e = blob[m, row], ridge[m, row], saddle[m, row]
            for i in range(side):
                xx = here[i] - 2 * here[i + 1] + here[i + 2]
                yy = up[i + 1] - 2 * here[i + 1] + down[i + 1]
                out_l[i] = (xx + yy) * gain
                out_d[i] = (xx - yy) * gain
            for i in range(side):
                out_e[i] = (up[i] + down[i + 2] - up[i + 2] - down[i]) * gain_xy


@njit(**FAST)
def directions(gx, gy, flat_square, epsilon_square, epsilon, quantities):
    """Replace gradients (M, Q) by directions (cos, sin); weights sqrt(m) to ``quantities[0]``."""
    limit = max(flat_square, np.float32(SMALLEST_NORMAL))
    for m in range(quantities.shape[1]):
        for i in range(gx.shape[1]):
            u, v = gx[m, i], gy[m, i]
            square = u * u + v * v
            quantities[0, m, i] = np.sqrt(np.sqrt(square + epsilon_square) + epsilon)
            none = square <= limit  # no gradient: the angle is 0
            unit = np.float32(1) / np.sqrt(np.float32(1) if none else square)
            gx[m, i] = np.float32(1) if none else u * unit
            gy[m, i] = np.float32(0) if none else v * unit


@njit(**FAST)
def weigh(quantities, u, v, c, s):
    """Weighted cosine and sine of the directions (u, v), all (M, Q)."""
    for m in range(quantities.shape[1]):
        for i in range(u.shape[1]):
            c[m, i] = quantities[0, m, i] * u[m, i]
            s[m, i] = quantities[0, m, i] * v[m, i]


@njit(**FAST)
def turn(c, s, u, v):
    """Add the angle of the direction (u, v) to the one whose weighted cos and sin are c, s."""
    for m in range(len(c)):
        for i in range(u.shape[1]):
            turned = c[m, i] * u[m, i] - s[m, i] * v[m, i]
            s[m, i] = s[m, i] * u[m, i] + c[m, i] * v[m, i]
            c[m, i] = turned


@njit(**FAST)
def keep(values, which, quantities):
    """Copy values (M, Q) to a quantity."""
    for m in range(quantities.shape[1]):
        for i in range(values.shape[1]):
            quantities[which, m, i] = values[m, i]


@njit(**FAST)
def intensities(values, first, quantities):
    """Squeezed intensities z and ``|z|`` of values (M, Q), to ``quantities[first:]``."""
    for m in range(quantities.shape[1]):
        for i in range(values.shape[1]):
            size = abs(values[m, i])
            squeezed = np.float32(1) / (np.float32(1) + size)
            quantities[first, m, i] = values[m, i] * squeezed
            quantities[first + 1, m, i] = size * squeezed


@njit(**FAST)
def shapes(blob, ridge, saddle, first, quantities):
    """The nine features of second derivatives (M, Q), to ``quantities[first:]``."""
    for m in range(quantities.shape[1]):
        for i in range(blob.shape[1]):  # the direction, in place, and the square root of the size
            g, d, e = blob[m, i], ridge[m, i], saddle[m, i]
            strength = np.sqrt(g * g + d * d + e * e + np.float32(SHAPE_EPSILON))
            unit = np.float32(1) / strength
            quantities[first, m, i] = np.sqrt(strength)
            blob[m, i], ridge[m, i], saddle[m, i] = g * unit, d * unit, e * unit
        for i in range(blob.shape[1]):
            v, g = quantities[first, m, i], blob[m, i]
            quantities[first + 1, m, i] = v * g
            quantities[first + 4, m, i] = v * (g * g - np.float32(1 / 3))
        for i in range(blob.shape[1]):
            v, g, d = quantities[first, m, i], blob[m, i], ridge[m, i]
            quantities[first + 2, m, i] = v * d
            quantities[first + 5, m, i] = v * g * d
        for i in range(blob.shape[1]):
            v, g, e = quantities[first, m, i], blob[m, i], saddle[m, i]
            quantities[first + 3, m, i] = v * e
            quantities[first + 6, m, i] = v * g * e
        for i in range(blob.shape[1]):
            v, d, e = quantities[first, m, i], ridge[m, i], saddle[m, i]
            quantities[first + 7, m, i] = v * (d * d - e * e)
            quantities[first + 8, m, i] = v * d * e


@njit(**FAST)
def place(features, which, first, side, quantities):
    """Views of the features (N, K, S, S) of patch ``which``, to ``quantities[first:]``."""
    last = features.shape[2] - 1
    for f in range(features.shape[1]):
        for m in range(quantities.shape[1]):
            for row in range(side):
                y = last - row if m >= 2 else row
                for i in range(side):
                    x = last - i if m % 2 else i
                    quantities[first + f, m, row * side + i] = features[which, f, y, x]


@njit(**FAST)
def multiply(products, first, quantities):
    """The products of pairs (K, 2) of quantities, to ``quantities[first:]``."""
    for k in range(len(products)):
        which, other = products[k]
        for m in range(quantities.shape[1]):
            for i in range(quantities.shape[2]):
                quantities[first + k, m, i] = quantities[which, m, i] * quantities[other, m, i]

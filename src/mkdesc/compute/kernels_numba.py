"""The compiled loops of the fast path.

Gradients are computed in float64, step by step as in :mod:`mkdesc.gradients`: in nearly flat
patches their directions hang on the last bit. Everything after them is float32.

Kept apart from :mod:`mkdesc.compute.cpu` so that numba is imported (and, the first time on a
machine, compiles) only when patches are really described.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from mkdesc.pixelfeatures import SHAPE_EPSILON

# NaN and infinity must stay visible in `spread`; everywhere else patches are finite.
_FAST = {"fastmath": True, "error_model": "numpy", "nogil": True, "inline": "never"}
_CAREFUL = {**_FAST, "fastmath": {"reassoc", "nsz", "contract"}}
_EXACT = {**_FAST, "fastmath": False}

#: Gradients are scaled up to this, so that their squares neither vanish nor overflow in float32.
HEADROOM = 2.0**60
#: Patches whose planes are contracted together, while the spatial functions are in the cache.
TOGETHER = 4
#: What squared norms are kept above, to divide by their roots: nothing at all stays zeros.
NOTHING = 1e-70


@njit(**_CAREFUL)
def spread(patch, size):
    """A bound of the values of a patch; not finite if the patch is not."""
    # Each term is small enough for the sum of all to stay finite.
    share = np.float32(0.5) / np.float32(size * size)
    total = np.float32(0)
    values = patch.ravel()
    for i in range(len(values)):
        total += abs(np.float32(values[i]) * share)
    return np.float64(total) / share


@njit(**_EXACT)
def load(patch, factor, values):
    """The patch, reduced by a factor, in ``values`` (S, S) float64."""
    share = 1.0 / (factor * factor)
    for y in range(len(values)):
        for x in range(len(values)):
            total = 0.0
            for dy in range(factor):
                for dx in range(factor):
                    total += patch[y * factor + dy, x * factor + dx]
            values[y, x] = total * share


@njit(**_EXACT)
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


@njit(**_EXACT)
def mirror(blurred, quarters):
    """The upper left quarter of a patch, and those that will be folded onto it, mirrored.

    ``quarters`` (4, S/2 + 2, S/2 + 2): as it is, mirrored in x, in y, and in both, each with one
    more pixel on every side; beyond the patch its border is replicated.
    """
    last, side = len(blurred) - 1, quarters.shape[1]
    for m in range(4):
        for row in range(side):
            y = max(row - 1, 0)
            here, out = blurred[last - y if m >= 2 else y], quarters[m, row]
            if m % 2:
                for x in range(side):
                    out[x] = here[last + 2 - x]
            else:
                for x in range(side):
                    out[x] = here[x]


@njit(**_CAREFUL)
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


@njit(**_EXACT)
def gradients(blurred, gain, gx, gy):
    """``gain`` times the gradients of the upper left quarter and its mirror images, (4, S/2, S/2).

    The four are the quarter itself, mirrored in x, in y, and in both: those that will be folded
    onto each other.
    """
    half = gx.shape[1]
    last = len(blurred) - 1
    for below in range(2):
        for row in range(half):
            y = last - row if below else row
            up, here, down = blurred[max(y - 1, 0)], blurred[y], blurred[min(y + 1, last)]
            left_x, left_y = gx[2 * below, row], gy[2 * below, row]
            for x in range(half):
                left_x[x] = (here[x] - here[x + 2]) * gain
                left_y[x] = (up[x + 1] - down[x + 1]) * gain
            right_x, right_y = gx[2 * below + 1, row], gy[2 * below + 1, row]
            for x in range(half):
                right_x[x] = (here[last - x] - here[last - x + 2]) * gain
                right_y[x] = (up[last - x + 1] - down[last - x + 1]) * gain


@njit(**_EXACT)
def centred(quarters, mean, gain, values):
    """``gain * (pixel - mean)`` of mirrored quarters, (4, S/2, S/2)."""
    half = values.shape[1]
    for m in range(4):
        for row in range(half):
            here, out = quarters[m, row + 1], values[m, row]
            for i in range(half):
                out[i] = (here[i + 1] - mean) * gain


@njit(**_EXACT)
def curvatures(quarters, gain, blob, ridge, saddle):
    """``gain`` times the second derivatives of mirrored quarters, (4, S/2, S/2) each."""
    half = blob.shape[1]
    for m in range(4):
        gain_xy = 0.5 * (-gain if m in (1, 2) else gain)
        for row in range(half):
            up, here, down = quarters[m, row], quarters[m, row + 1], quarters[m, row + 2]
            out_l, out_d, out_e = blob[m, row], ridge[m, row], saddle[m, row]
            for i in range(half):
                xx = here[i] - 2 * here[i + 1] + here[i + 2]
                yy = up[i + 1] - 2 * here[i + 1] + down[i + 1]
                out_l[i] = (xx + yy) * gain
                out_d[i] = (xx - yy) * gain
            for i in range(half):
                out_e[i] = (up[i] + down[i + 2] - up[i + 2] - down[i]) * gain_xy


@njit(**_FAST)
def directions(gx, gy, flat_square, epsilon_square, epsilon, quantities):
    """Replace gradients (4, Q) by directions (cos, sin); weights sqrt(m) to ``quantities[0]``."""
    for m in range(4):
        for i in range(gx.shape[1]):
            u, v = gx[m, i], gy[m, i]
            square = u * u + v * v
            quantities[0, m, i] = np.sqrt(np.sqrt(square + epsilon_square) + epsilon)
            none = square <= flat_square  # no gradient: the angle is 0
            unit = np.float32(1) / np.sqrt(np.float32(1) if none else square)
            gx[m, i] = np.float32(1) if none else u * unit
            gy[m, i] = np.float32(0) if none else v * unit


@njit(**_FAST)
def weigh(quantities, u, v, c, s):
    """Weighted cosine and sine of the directions (u, v), all (4, Q)."""
    for m in range(4):
        for i in range(u.shape[1]):
            c[m, i] = quantities[0, m, i] * u[m, i]
            s[m, i] = quantities[0, m, i] * v[m, i]


@njit(**_FAST)
def turn(c, s, u, v):
    """Add the angle of the direction (u, v) to the one whose weighted cos and sin are c, s."""
    for m in range(4):
        for i in range(u.shape[1]):
            turned = c[m, i] * u[m, i] - s[m, i] * v[m, i]
            s[m, i] = s[m, i] * u[m, i] + c[m, i] * v[m, i]
            c[m, i] = turned


@njit(**_FAST)
def keep(values, which, quantities):
    """Copy values (4, Q) to a quantity."""
    for m in range(4):
        for i in range(values.shape[1]):
            quantities[which, m, i] = values[m, i]


@njit(**_FAST)
def intensities(values, first, quantities):
    """Squeezed intensities z and ``|z|`` of values (4, Q), to ``quantities[first:]``."""
    for m in range(4):
        for i in range(values.shape[1]):
            size = abs(values[m, i])
            squeezed = np.float32(1) / (np.float32(1) + size)
            quantities[first, m, i] = values[m, i] * squeezed
            quantities[first + 1, m, i] = size * squeezed


@njit(**_FAST)
def shapes(blob, ridge, saddle, first, quantities):
    """The nine features of second derivatives (4, Q), to ``quantities[first:]``."""
    for m in range(4):
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


@njit(**_FAST)
def drop_middle(quantities, half):
    """In an odd patch the middle row and column are their own mirror images: count them once."""
    for q in range(len(quantities)):
        for k in range(half):
            quantities[q, 1, (k + 1) * half - 1] = quantities[q, 3, (k + 1) * half - 1] = 0
            quantities[q, 2, (half - 1) * half + k] = quantities[q, 3, (half - 1) * half + k] = 0


@njit(**_FAST)
def fold(quantities, which, planes, b, p):
    """Fold a quantity, given as its four mirror images, into its parities planes[b, p]."""
    for i in range(quantities.shape[2]):
        x, y = quantities[which, 0, i], quantities[which, 1, i]
        planes[b, p, 0, i] = x + y
        planes[b, p, 1, i] = x - y
    for i in range(quantities.shape[2]):
        x, y = quantities[which, 2, i], quantities[which, 3, i]
        planes[b, p, 2, i] = x + y
        planes[b, p, 3, i] = x - y
    finish_fold(planes, b, p, quantities.shape[2])


@njit(**_FAST)
def fold_product(quantities, which, other, planes, b, p):
    """Fold the product of two quantities."""
    for i in range(quantities.shape[2]):
        x = quantities[which, 0, i] * quantities[other, 0, i]
        y = quantities[which, 1, i] * quantities[other, 1, i]
        planes[b, p, 0, i] = x + y
        planes[b, p, 1, i] = x - y
    for i in range(quantities.shape[2]):
        x = quantities[which, 2, i] * quantities[other, 2, i]
        y = quantities[which, 3, i] * quantities[other, 3, i]
        planes[b, p, 2, i] = x + y
        planes[b, p, 3, i] = x - y
    finish_fold(planes, b, p, quantities.shape[2])


@njit(**_FAST)
def finish_fold(planes, b, p, n):
    """From sums and differences in x alone to those in x and y."""
    for parity in range(2):
        for i in range(n):
            x, y = planes[b, p, parity, i], planes[b, p, parity + 2, i]
            planes[b, p, parity, i] = x + y
            planes[b, p, parity + 2, i] = x - y


@njit(**_FAST)
def contract(planes, n, functions, tiles, sums):
    """Sums over the quarter patch of planes (n, P, 4, Q) times functions (F, Q), tile by tile."""
    for t in range(len(tiles)):
        p, q, parity, first = tiles[t]
        f, g = functions[first], functions[first + 1]
        h, k = functions[first + 2], functions[first + 3]
        for b in range(n):  # several patches while the functions are in the L1 cache
            v, w = planes[b, p, parity], planes[b, q, parity]
            vf = vg = vh = vk = wf = wg = wh = wk = np.float32(0)
            for i in range(len(f)):
                vf += v[i] * f[i]
                vg += v[i] * g[i]
                vh += v[i] * h[i]
                vk += v[i] * k[i]
                wf += w[i] * f[i]
                wg += w[i] * g[i]
                wh += w[i] * h[i]
                wk += w[i] * k[i]
            out = sums[b, t]
            out[0], out[1], out[2], out[3] = vf, vg, vh, vk
            out[4], out[5], out[6], out[7] = wf, wg, wh, wk


@njit(**_FAST)
def assemble(sums, row_starts, columns, coefficients, part_starts, out):
    """Combine the sums (S,) into a descriptor; normalise its parts and the whole."""
    parts = len(part_starts) - 1
    for part in range(parts):
        square = 0.0
        for j in range(part_starts[part], part_starts[part + 1]):
            value = np.float32(0)
            for e in range(row_starts[j], row_starts[j + 1]):
                value += coefficients[e] * sums[columns[e]]
            out[j] = value
            square += np.float64(value) * np.float64(value)
        factor = np.float32(1 / np.sqrt(max(square, NOTHING) * parts))
        for j in range(part_starts[part], part_starts[part + 1]):
            out[j] *= factor


def make_describe_block(beyond: bool) -> Callable[..., int]:
    """The loop over patches, compiled with or without what the paper's descriptor has no use for.

    ``beyond``: whether patches are reduced and standardised, and intensity and shape looked at.
    """

    def describe_block(
        patches,
        scale,
        factor,
        taps,
        softening,
        epsilons,
        counts,
        factors,
        functions,
        tiles,
        row_starts,
        columns,
        coefficients,
        part_starts,
        out,
    ):
        """Describe patches (N, W, W) into ``out`` (N, D); the first bad patch's index, or -1."""
        size = patches.shape[1] // factor
        half = (size + 1) // 2
        n_gradient, n_intensity, n_shape = counts
        values = np.empty((size, size), np.float64)
        across = np.empty((size, size), np.float64)
        blurred = np.empty((size, size + 2), np.float64)
        quarters = np.empty((4, half + 2, half + 2), np.float64)
        derivatives = np.empty((4, 4, half, half), np.float32)
        a, b, c = derivatives[0], derivatives[1], derivatives[2]
        flat = derivatives.reshape(4, 4, half * half)
        u, v, w, room = flat[0], flat[1], flat[2], flat[3]
        quantities = np.empty((n_gradient + n_intensity + n_shape, 4, half * half), np.float32)
        planes = np.zeros((TOGETHER, len(factors), 4, functions.shape[1]), np.float32)
        sums = np.empty((TOGETHER, len(tiles), 8), np.float32)
        for first in range(0, len(patches), TOGETHER):
            n = min(TOGETHER, len(patches) - first)
            for k in range(n):
                patch = patches[first + k]
                width = spread(patch, len(patch))
                if not np.isfinite(width):
                    return first + k
                if beyond:
                    load(patch, factor, values)
                    smooth(values, taps, across, blurred)
                    mirror(blurred, quarters)
                    mean, deviation = mean_and_deviation(blurred)
                    gain, follow = 1.0 / (deviation * scale + softening), 1.0
                else:
                    smooth(patch, taps, across, blurred)
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
                        centred(quarters, mean, scale * gain, a)
                        intensities(u, n_gradient, quantities)
                    if n_shape:
                        curvatures(quarters, scale * gain, a, b, c)
                        shapes(u, v, w, n_gradient + n_intensity, quantities)
                if size % 2:
                    drop_middle(quantities, half)
                for p in range(len(factors)):
                    if not beyond or factors[p, 1] < 0:
                        fold(quantities, factors[p, 0], planes, k, p)
                    else:
                        fold_product(quantities, factors[p, 0], factors[p, 1], planes, k, p)
            contract(planes, n, functions, tiles, sums)
            for k in range(n):
                assemble(
                    sums[k].ravel(), row_starts, columns, coefficients, part_starts, out[first + k]
                )
        return -1

    return describe_block


@njit(**_FAST)
def raise_to(raw, i, power, x):
    """Signed power of descriptor ``i``, and l2; into ``x`` (D,)."""
    size = len(x)
    if power == np.float32(1):
        for j in range(size):
            x[j] = raw[i, j]
        return
    if power == np.float32(0.75):  # two square roots are several times faster than a power
        for j in range(size):
            root = np.sqrt(abs(raw[i, j]))
            x[j] = root * np.sqrt(root)
    else:
        for j in range(size):
            x[j] = abs(raw[i, j]) ** power
    square = 0.0
    for j in range(size):
        square += np.float64(x[j]) * np.float64(x[j])
    factor = np.float32(1 / np.sqrt(max(square, NOTHING)))
    for j in range(size):
        x[j] *= factor if raw[i, j] >= np.float32(0) else -factor


@njit(**_FAST)
def normalise(out, i, square_root):
    """Signed square root, if wanted, and l2 of row ``i``; a row of zeros stays."""
    size = out.shape[1]
    if square_root:
        for k in range(size):
            value = out[i, k]
            root = np.sqrt(abs(value))
            out[i, k] = root if value >= np.float32(0) else -root
    square = 0.0
    for k in range(size):
        square += np.float64(out[i, k]) * np.float64(out[i, k])
    factor = np.float32(1 / np.sqrt(max(square, NOTHING)))
    for k in range(size):
        out[i, k] *= factor


def project_block(raw, matrix, offset, power, square_root, out):
    """``matrix^T power(raw) - offset``, perhaps a square root, and l2, for each row."""
    x = np.empty(raw.shape[1], np.float32)
    whole = len(x) // 4 * 4
    for i in range(len(raw)):
        raise_to(raw, i, power, x)
        for k in range(out.shape[1]):
            out[i, k] = -offset[k]
        for j in range(0, whole, 4):  # four rows at a time: the sums are read and written less
            a, b, c, d = x[j], x[j + 1], x[j + 2], x[j + 3]
            p, q, r, s = matrix[j], matrix[j + 1], matrix[j + 2], matrix[j + 3]
            for k in range(out.shape[1]):
                out[i, k] += a * p[k] + b * q[k] + c * r[k] + d * s[k]
        for j in range(whole, len(x)):
            for k in range(out.shape[1]):
                out[i, k] += x[j] * matrix[j, k]
        normalise(out, i, square_root)

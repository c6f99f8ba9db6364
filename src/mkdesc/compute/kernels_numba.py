"""The compiled loops of the fast path.

Gradients are computed in float64, step by step as in :mod:`mkdesc.gradients`: in nearly flat
patches their directions hang on the last bit. Everything after them is float32.

Kept apart from :mod:`mkdesc.compute.cpu` so that numba is imported (and, the first time on a
machine, compiles) only when patches are really described.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc.gradients import EPSILON, FLAT

# NaN and infinity must stay visible in `spread`; everywhere else patches are finite.
_FAST = {"fastmath": True, "error_model": "numpy", "nogil": True, "inline": "never"}
_CAREFUL = {**_FAST, "fastmath": {"reassoc", "nsz", "contract"}}
_EXACT = {**_FAST, "fastmath": False}

#: Gradients are scaled up to this, so that their squares neither vanish nor overflow in float32.
HEADROOM = 2.0**60
#: Patches whose planes are contracted together, while the spatial functions are in the cache.
TOGETHER = 4
#: What norms are kept above, to divide by them.
TINY = np.float32(1e-30)


@njit(**_CAREFUL)
def spread(patch, size):
    """A bound of the differences within a patch; not finite if the patch is not."""
    # Each term is small enough for the sum of all to stay finite.
    share = np.float32(0.5) / np.float32(size * size)
    origin = np.float32(patch[0, 0]) * share
    total = np.float32(0)
    values = patch.ravel()
    for i in range(len(values)):
        total += abs(np.float32(values[i]) * share - origin)
    return np.float64(total) / share


@njit(**_EXACT)
def smooth(patch, size, taps, across, blurred):
    """Blur a patch with five taps; ``blurred`` (W, W+2) gets a replicated border."""
    line = np.empty(size + 4, np.float64)
    for y in range(size):
        for x in range(size):
            line[x + 2] = patch[y, x]
        line[0] = line[1] = line[2]
        line[size + 2] = line[size + 3] = line[size + 1]
        for x in range(size):
            across[y, x] = (
                taps[0] * line[x + 2]
                + taps[1] * (line[x + 1] + line[x + 3])
                + taps[2] * (line[x] + line[x + 4])
            )
    last = size - 1
    for y in range(size):
        a, b = across[max(y - 2, 0)], across[max(y - 1, 0)]
        c, d, e = across[y], across[min(y + 1, last)], across[min(y + 2, last)]
        for x in range(size):
            blurred[y, x + 1] = taps[0] * c[x] + taps[1] * (b[x] + d[x]) + taps[2] * (a[x] + e[x])
        blurred[y, 0] = blurred[y, 1]
        blurred[y, size + 1] = blurred[y, size]


@njit(**_EXACT)
def mirrored_gradients(blurred, size, gain, gx, gy):
    """``gain`` times the gradients of the upper left quarter and its mirror images.

    The four rows of ``gx``, ``gy`` (4, W/2, W/2) are the quarter itself, mirrored in x, in y,
    and in both: those that will be folded onto each other.
    """
    half = (size + 1) // 2
    last = size - 1
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


@njit(**_FAST)
def directions(gx, gy, flat_square, epsilon_square, epsilon, weight):
    """Replace gradients (4, Q) by their directions (cos, sin) and store their weights sqrt(m)."""
    for m in range(4):
        for i in range(gx.shape[1]):
            u, v = gx[m, i], gy[m, i]
            square = u * u + v * v
            weight[m, i] = np.sqrt(np.sqrt(square + epsilon_square) + epsilon)
            none = square <= flat_square  # no gradient: the angle is 0
            unit = np.float32(1) / np.sqrt(np.float32(1) if none else square)
            gx[m, i] = np.float32(1) if none else u * unit
            gy[m, i] = np.float32(0) if none else v * unit


@njit(**_FAST)
def drop_middle(weight, half):
    """In an odd patch the middle row and column are their own mirror images: count them once."""
    for k in range(half):
        weight[1, (k + 1) * half - 1] = weight[3, (k + 1) * half - 1] = 0
        weight[2, (half - 1) * half + k] = weight[3, (half - 1) * half + k] = 0


@njit(**_FAST)
def weigh(weight, u, v, c, s):
    """Weighted cosine and sine of the directions (u, v), all (4, Q)."""
    for m in range(4):
        for i in range(u.shape[1]):
            c[m, i] = weight[m, i] * u[m, i]
            s[m, i] = weight[m, i] * v[m, i]


@njit(**_FAST)
def turn(c, s, u, v):
    """Add the angle of the direction (u, v) to the one whose weighted cos and sin are c, s."""
    for m in range(4):
        for i in range(u.shape[1]):
            turned = c[m, i] * u[m, i] - s[m, i] * v[m, i]
            s[m, i] = s[m, i] * u[m, i] + c[m, i] * v[m, i]
            c[m, i] = turned


@njit(**_FAST)
def fold(mirrored, planes, b, p):
    """Fold a plane, given as its four mirror images (4, Q), into its parities planes[b, p]."""
    for i in range(mirrored.shape[1]):
        x, y = mirrored[0, i], mirrored[1, i]
        planes[b, p, 0, i] = x + y
        planes[b, p, 1, i] = x - y
    for i in range(mirrored.shape[1]):
        x, y = mirrored[2, i], mirrored[3, i]
        planes[b, p, 2, i] = x + y
        planes[b, p, 3, i] = x - y
    for parity in range(2):
        for i in range(mirrored.shape[1]):
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
        factor = np.float32(1 / np.sqrt(square * parts))
        for j in range(part_starts[part], part_starts[part + 1]):
            out[j] *= factor


def describe_block(
    patches,
    scale,
    taps,
    harmonics,
    functions,
    tiles,
    row_starts,
    columns,
    coefficients,
    part_starts,
    out,
):
    """Describe patches (N, W, W) into ``out`` (N, D); the first bad patch's index, or -1."""
    size = patches.shape[1]
    half = (size + 1) // 2
    across = np.empty((size, size), np.float64)
    blurred = np.empty((size, size + 2), np.float64)
    gx, gy = np.empty((4, half, half), np.float32), np.empty((4, half, half), np.float32)
    u, v = gx.reshape(4, half * half), gy.reshape(4, half * half)
    weight, c, s = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    planes = np.zeros((TOGETHER, 2 * harmonics + 1, 4, functions.shape[1]), np.float32)
    sums = np.empty((TOGETHER, len(tiles), 8), np.float32)
    for first in range(0, len(patches), TOGETHER):
        n = min(TOGETHER, len(patches) - first)
        for b in range(n):
            patch = patches[first + b]
            width = spread(patch, size)
            if not np.isfinite(width):
                return first + b
            # The gain cancels in the end; only the epsilons must follow it.
            gain = HEADROOM / max(1.0, width * scale)
            flat_square = np.float32((FLAT * gain) ** 2)
            epsilon, epsilon_square = np.float32(EPSILON * gain), np.float32(EPSILON * gain**2)
            smooth(patch, size, taps, across, blurred)
            mirrored_gradients(blurred, size, scale * gain, gx, gy)
            directions(u, v, flat_square, epsilon_square, epsilon, weight)
            if size % 2:
                drop_middle(weight, half)
            fold(weight, planes, b, 0)
            for h in range(1, harmonics + 1):
                if h == 1:
                    weigh(weight, u, v, c, s)
                else:
                    turn(c, s, u, v)
                fold(c, planes, b, 2 * h - 1)
                fold(s, planes, b, 2 * h)
        contract(planes, n, functions, tiles, sums)
        for b in range(n):
            assemble(
                sums[b].ravel(), row_starts, columns, coefficients, part_starts, out[first + b]
            )
    return -1


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
    square = np.float32(0)
    for j in range(size):
        square += x[j] * x[j]
    factor = np.float32(1) / np.sqrt(max(square, TINY))
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
    square = np.float32(0)
    for k in range(size):
        square += out[i, k] * out[i, k]
    factor = np.float32(1) / np.sqrt(max(square, TINY))
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

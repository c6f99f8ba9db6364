"""The compiled loops that find blobs in the differences of an octave's images."""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc.images.detectors.dog_filters_numba import LOOP
from mkdesc.images.detectors.dog_reference import BORDER, LAYERS, STEPS


@njit(**LOOP)
def flag_extrema(dogs, above, here, below, finer, coarser, size, threshold, flags):
    """First step: mark pixels that ten of their neighbours, and the threshold, do not rule out."""
    for x in range(size):
        p, q, r = here + x, above + x, below + x
        value = dogs[np.uint64(p)]
        a, b = dogs[np.uint64(p - 1)], dogs[np.uint64(p + 1)]
        c, d = dogs[np.uint64(q)], dogs[np.uint64(r)]
        e, f = dogs[np.uint64(q - 1)], dogs[np.uint64(q + 1)]
        g, h = dogs[np.uint64(r - 1)], dogs[np.uint64(r + 1)]
        i, j = dogs[np.uint64(finer + x)], dogs[np.uint64(coarser + x)]
        most = max(max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h))), max(i, j))
        least = min(min(min(min(a, b), min(c, d)), min(min(e, f), min(g, h))), min(i, j))
        high = (value > threshold) & (value >= most)
        flags[x] = high | ((value < -threshold) & (value <= least))


@njit(**LOOP)
def is_extremum(dogs, value, row, layer, column, plan):
    """Second step: whether none of all 26 neighbours is beyond."""
    for i in range(layer - 1, layer + 2):
        for j in range(row - 1, row + 2):
            at = row_at(plan, i, j) + column
            for k in range(-1, 2):
                other = dogs[at + k]
                if (other > value) if value > 0 else (other < value):
                    return False
    return True


@njit(**LOOP)
def row_at(plan, layer, row):
    """Where column 0 of a row of a difference is."""
    return plan.dog_at[layer + 2] + row % plan.depth[layer + 2] * plan.stride + plan.margin


@njit(**LOOP)
def refine(dogs, layer, row, column, plan, contrast, edge, out):
    """Move an extremum to where the parabola has it; False if it is no blob (section 4)."""
    scale = 1 / 255.0
    for _ in range(STEPS):
        here = row_at(plan, layer, row) + column
        up, down = row_at(plan, layer, row - 1) + column, row_at(plan, layer, row + 1) + column
        finer, coarser = (
            row_at(plan, layer - 1, row) + column,
            row_at(plan, layer + 1, row) + column,
        )
        finer_up = row_at(plan, layer - 1, row - 1) + column
        finer_down = row_at(plan, layer - 1, row + 1) + column
        coarser_up = row_at(plan, layer + 1, row - 1) + column
        coarser_down = row_at(plan, layer + 1, row + 1) + column
        value = np.float64(dogs[here])
        dx = (np.float64(dogs[here + 1]) - dogs[here - 1]) * 0.5
        dy = (np.float64(dogs[down]) - dogs[up]) * 0.5
        ds = (np.float64(dogs[coarser]) - dogs[finer]) * 0.5
        dxx = np.float64(dogs[here + 1]) + dogs[here - 1] - 2 * value
        dyy = np.float64(dogs[down]) + dogs[up] - 2 * value
        dss = np.float64(dogs[coarser]) + dogs[finer] - 2 * value
        dxy = (np.float64(dogs[down + 1]) - dogs[down - 1] - dogs[up + 1] + dogs[up - 1]) * 0.25
        dxs = (
            np.float64(dogs[coarser + 1]) - dogs[coarser - 1] - dogs[finer + 1] + dogs[finer - 1]
        ) * 0.25
        dys = (
            np.float64(dogs[coarser_down]) - dogs[coarser_up] - dogs[finer_down] + dogs[finer_up]
        ) * 0.25
        # Cramer's rule for the three unknowns.
        a, b, c = dyy * dss - dys * dys, dxs * dys - dxy * dss, dxy * dys - dxs * dyy
        determinant = dxx * a + dxy * b + dxs * c
        if determinant == 0:
            return False
        d, e, f = dxx * dss - dxs * dxs, dxy * dxs - dxx * dys, dxx * dyy - dxy * dxy
        x = -(a * dx + b * dy + c * ds) / determinant
        y = -(b * dx + d * dy + e * ds) / determinant
        s = -(c * dx + e * dy + f * ds) / determinant
        if abs(x) < 0.5 and abs(y) < 0.5 and abs(s) < 0.5:
            value = abs(value + 0.5 * (dx * x + dy * y + ds * s)) * scale
            if value * LAYERS < contrast:
                return False
            if f <= 0 or (dxx + dyy) ** 2 * edge >= (edge + 1) ** 2 * f:
                return False
            out[0], out[1], out[2], out[3] = layer, row, column, s
            out[4], out[5], out[6] = y, x, value
            return True
        if not (abs(x) < 1e6 and abs(y) < 1e6 and abs(s) < 1e6):
            return False
        column += np.int64(np.rint(x))
        row += np.int64(np.rint(y))
        layer += np.int64(np.rint(s))
        if (
            layer < 1
            or layer > LAYERS
            or not within(column, plan.width)
            or not within(row, plan.height)
        ):
            return False
        if abs(row - out[1]) > STEPS or abs(column - out[2]) > STEPS:
            return False
    return False


@njit(**LOOP)
def within(i, n):
    """Whether a row or column is far enough from the border."""
    return BORDER <= i < n - BORDER


@njit(**LOOP)
def blobs_of_row(
    row, low, high, plan, dogs, flags, words, threshold, contrast, edge, found, count
):
    """Add the blobs of a row of all layers to ``found``; how many there are now."""
    for layer in range(1, LAYERS + 1):
        here = row_at(plan, layer, row) + low
        above, below = row_at(plan, layer, row - 1) + low, row_at(plan, layer, row + 1) + low
        finer, coarser = row_at(plan, layer - 1, row) + low, row_at(plan, layer + 1, row) + low
        flag_extrema(dogs, above, here, below, finer, coarser, high - low, threshold, flags)
        for word in range((high - low + 7) // 8):
            if words[word] == 0:
                continue
            for x in range(8 * word, min(8 * word + 8, high - low)):
                if flags[x] and is_extremum(dogs, dogs[here + x], row, layer, low + x, plan):
                    found[count, 1], found[count, 2] = row, low + x
                    if refine(dogs, layer, row, low + x, plan, contrast, edge, found[count]):
                        count += 1
    return count

"""Compiled loops that sum planes times spatial functions, and make a descriptor of the sums."""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc._support.compiling import EXACT, FAST, TINY_SQUARE
from mkdesc._support.vectors_numba import LANES, load, spread, store
from mkdesc.compute.cpu.unrolling import LINE_FUNCTIONS


@njit(**FAST)
def drop_middle(quantities, half):
    """In an odd patch the middle row and column are their own mirror images: count them once."""
    for q in range(len(quantities)):
        for k in range(half):
            quantities[q, 1, (k + 1) * half - 1] = quantities[q, 3, (k + 1) * half - 1] = 0
            quantities[q, 2, (half - 1) * half + k] = quantities[q, 3, (half - 1) * half + k] = 0


@njit(**FAST)
def fold(quantities, which, planes, b):
    """Fold a quantity, given as its four views, into its parities planes[b, which]."""
    for i in range(quantities.shape[2]):  # sums and differences in x, then in y
        x, y = quantities[which, 0, i], quantities[which, 1, i]
        planes[b, which, 0, i] = x + y
        planes[b, which, 1, i] = x - y
    for i in range(quantities.shape[2]):
        x, y = quantities[which, 2, i], quantities[which, 3, i]
        planes[b, which, 2, i] = x + y
        planes[b, which, 3, i] = x - y
    for parity in range(2):
        for i in range(quantities.shape[2]):
            x, y = planes[b, which, parity, i], planes[b, which, parity + 2, i]
            planes[b, which, parity, i] = x + y
            planes[b, which, parity + 2, i] = x - y


@njit(**FAST)
def contract(planes, n, functions, tiles, sums):
    """Sums over the quarter of planes (n, P, 4, Q or more) times functions (F, Q), by tiles."""
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


@njit(**EXACT)
def contract_rows(planes, n_planes, functions, columns):
    """Sums over y of planes times functions of y, a few at a time: vectors run along x.

    Parameters
    ----------
    planes : (n_planes S S + .,) float32
        Finite numbers follow, as many as two vectors have.
    n_planes : int
    functions : (F, S) float32
    columns : (F n_planes, C) float32
        Written: sums of columns, and behind the S columns of a plane any finite numbers.
    """
    size, width, flat = functions.shape[1], columns.shape[1], columns.ravel()
    zero, step = spread(np.float32(0)), n_planes * width
    for first in range(0, len(functions), LINE_FUNCTIONS):
        f, g, h = functions[first], functions[first + 1], functions[first + 2]
        k, q = functions[first + 3], functions[first + 4]
        for plane in range(n_planes):
            for x in range(0, size, 2 * LANES):
                vf = vg = vh = vk = vq = zero
                wf = wg = wh = wk = wq = zero
                for y in range(size):
                    at = (plane * size + y) * size + x
                    v, w = load(planes, at), load(planes, at + LANES)
                    weight = spread(f[y])
                    vf, wf = vf + weight * v, wf + weight * w
                    weight = spread(g[y])
                    vg, wg = vg + weight * v, wg + weight * w
                    weight = spread(h[y])
                    vh, wh = vh + weight * v, wh + weight * w
                    weight = spread(k[y])
                    vk, wk = vk + weight * v, wk + weight * w
                    weight = spread(q[y])
                    vq, wq = vq + weight * v, wq + weight * w
                at = (first * n_planes + plane) * width + x
                for v, w in ((vf, wf), (vg, wg), (vh, wh), (vk, wk), (vq, wq)):
                    store(flat, at, v)
                    store(flat, at + LANES, w)
                    at += step


@njit(**FAST)
def contract_lines(lines, functions, sums):
    """Sums of lines (R, S) times functions (F, S) of one coordinate, a few at a time."""
    for first in range(0, len(functions), LINE_FUNCTIONS):
        f, g, h = functions[first], functions[first + 1], functions[first + 2]
        k, q = functions[first + 3], functions[first + 4]
        for r in range(len(lines)):
            v = lines[r]
            vf = vg = vh = vk = vq = np.float32(0)
            for i in range(len(f)):
                vf += v[i] * f[i]
                vg += v[i] * g[i]
                vh += v[i] * h[i]
                vk += v[i] * k[i]
                vq += v[i] * q[i]
            sums[first, r], sums[first + 1, r], sums[first + 2, r] = vf, vg, vh
            sums[first + 3, r], sums[first + 4, r] = vk, vq


@njit(**FAST)
def assemble(sums, assembly, out):
    """Combine the sums (S,) into a descriptor; normalise its parts and the whole."""
    row_starts, columns = assembly.row_starts, assembly.columns
    coefficients, part_starts = assembly.coefficients, assembly.part_starts
    if len(columns) == len(out):  # every component is one sum
        for j in range(len(out)):
            out[j] = coefficients[j] * sums[columns[j]]
    else:
        for j in range(len(out)):
            value = np.float32(0)
            for e in range(row_starts[j], row_starts[j + 1]):
                value += coefficients[e] * sums[columns[e]]
            out[j] = value
    parts = len(part_starts) - 1
    for part in range(parts):
        square = 0.0
        for j in range(part_starts[part], part_starts[part + 1]):
            square += np.float64(out[j]) * np.float64(out[j])
        factor = np.float32(1 / np.sqrt(max(square, TINY_SQUARE) * parts))
        for j in range(part_starts[part], part_starts[part + 1]):
            out[j] *= factor

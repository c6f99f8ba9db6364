"""The compiled stages of a head, for several descriptors together."""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc._support.compiling import FAST, TINY_SQUARE
from mkdesc.compute.cpu.head import AFFINE, POWER, RELU
from mkdesc.compute.cpu.unrolling import HEAD_TOGETHER, LANES, TILE_FUNCTIONS, TILE_PLANES


@njit(**FAST)
def raise_to(x, n, size, exponent):
    """Signed powers of ``size`` numbers of each of ``n`` rows."""
    if exponent == np.float32(1):
        return
    for i in range(n):
        row = x[i]
        if exponent == np.float32(0.5):
            for j in range(size):
                row[j] = np.copysign(np.sqrt(abs(row[j])), row[j])
        elif exponent == np.float32(0.75):  # square roots are several times faster than a power
            for j in range(size):
                root = np.sqrt(abs(row[j]))
                row[j] = np.copysign(root * np.sqrt(root), row[j])
        else:
            for j in range(size):
                row[j] = np.copysign(abs(row[j]) ** exponent, row[j])


@njit(**FAST)
def rectify(x, n, start, size):
    """Negative numbers become zero, from ``start`` on."""
    for i in range(n):
        row = x[i]
        for j in range(start, size):
            row[j] = max(row[j], np.float32(0))


@njit(**FAST)
def normalise(x, n, size):
    """Rows divided by their norms; zeros stay zeros."""
    for i in range(n):
        row = x[i]
        square = 0.0
        for j in range(size):
            square += np.float64(row[j]) * np.float64(row[j])
        factor = np.float32(1 / np.sqrt(max(square, TINY_SQUARE)))
        for j in range(size):
            row[j] *= factor


@njit(**FAST)
def multiply(x, n, rows, constants, out):
    """``rows @ x[i] + constants`` for ``n`` of the ``x`` (N, D), in tiles; rows (K, D).

    A tile is two descriptors times four rows, as in the contraction; the sums of a descriptor are
    the same in either place, so it does not matter which come together.
    """
    for k in range(0, len(rows), TILE_FUNCTIONS):
        f, g, h, q = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        for i in range(0, n, TILE_PLANES):
            v, w = x[i], x[i + 1]
            vf = vg = vh = vq = wf = wg = wh = wq = np.float32(0)
            for j in range(len(f)):
                vf += v[j] * f[j]
                vg += v[j] * g[j]
                vh += v[j] * h[j]
                vq += v[j] * q[j]
                wf += w[j] * f[j]
                wg += w[j] * g[j]
                wh += w[j] * h[j]
                wq += w[j] * q[j]
            a, b = out[i], out[i + 1]
            a[k], a[k + 1], a[k + 2], a[k + 3] = vf, vg, vh, vq
            b[k], b[k + 1], b[k + 2], b[k + 3] = wf, wg, wh, wq
    for i in range(n):
        row = out[i]
        for k in range(len(constants)):
            row[k] += constants[k]


def apply_block(raw, stages, out):
    """Take descriptors ``raw`` (N, D) through a head, a :class:`Stages`, into ``out`` (N, d)."""
    n_in, n_out = raw.shape[1], out.shape[1]
    here = np.zeros((HEAD_TOGETHER, stages.width), np.float32)
    there = np.zeros((HEAD_TOGETHER, stages.width), np.float32)
    for first in range(0, len(raw), HEAD_TOGETHER):
        n = min(HEAD_TOGETHER, len(raw) - first)
        size = n_in
        for i in range(n):
            for j in range(size):
                here[i, j] = raw[first + i, j]
        for s in range(len(stages.kinds)):
            kind = stages.kinds[s]
            if kind == POWER:
                raise_to(here, n, size, stages.exponents[s])
            elif kind == AFFINE:
                for i in range(n):  # up to whole vectors
                    for j in range(size, size + -size % LANES):
                        here[i, j] = 0
                size_in, size = size + -size % LANES, stages.sizes[s]
                padded = size + -size % TILE_FUNCTIONS
                begin, start = stages.first_weight[s], stages.first_constant[s]
                weights = stages.weights[begin : begin + padded * size_in]
                constants = stages.constants[start : start + size]
                even = n + n % TILE_PLANES
                multiply(here, even, weights.reshape(padded, size_in), constants, there)
                here, there = there, here
            elif kind == RELU:
                rectify(here, n, stages.starts[s], size)
            else:
                normalise(here, n, size)
        for i in range(n):
            for j in range(n_out):
                out[first + i, j] = here[i, j]

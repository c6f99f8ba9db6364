"""The compiled projection of raw descriptors: power, matrix, mean, normalisation."""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc._support.numba_options import FAST, NOTHING

#: Descriptors that are projected together, while a part of the matrix is in the cache.
TOGETHER = 4


@njit(**FAST)
def raise_to(raw, i, power, powers, row):
    """Signed power of descriptor ``i``, and l2; into ``powers[row]``, zeros behind it."""
    size = raw.shape[1]
    x = powers[row]
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


@njit(**FAST)
def multiply(powers, rows, products):
    """Products of all powers (n, D) with all rows (K, D), n even and K a multiple of four."""
    for k in range(0, len(rows), 4):
        f, g, h, q = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        for i in range(0, len(powers), 2):
            v, w = powers[i], powers[i + 1]
            vf = vg = vh = vq = wf = wg = wh = wq = np.float32(0)
            for j in range(powers.shape[1]):
                vf += v[j] * f[j]
                vg += v[j] * g[j]
                vh += v[j] * h[j]
                vq += v[j] * q[j]
                wf += w[j] * f[j]
                wg += w[j] * g[j]
                wh += w[j] * h[j]
                wq += w[j] * q[j]
            a, b = products[i], products[i + 1]
            a[k], a[k + 1], a[k + 2], a[k + 3] = vf, vg, vh, vq
            b[k], b[k + 1], b[k + 2], b[k + 3] = wf, wg, wh, wq


@njit(**FAST)
def finish(products, row, offset, square_root, out, i):
    """Subtract the mean, take the signed square root, if wanted, and l2; zeros stay zeros."""
    size = out.shape[1]
    for k in range(size):
        out[i, k] = products[row, k] - offset[k]
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


def project_block(raw, rows, offset, power, square_root, out):
    """``rows @ power(raw) - offset``, perhaps a square root, and l2, for each descriptor.

    ``rows`` is the transposed projection, padded with zeros to whole vectors and fours.
    """
    powers = np.zeros((TOGETHER, rows.shape[1]), np.float32)
    products = np.empty((TOGETHER, len(rows)), np.float32)
    for first in range(0, len(raw), TOGETHER):
        n = min(TOGETHER, len(raw) - first)
        for k in range(n):
            raise_to(raw, first + k, power, powers, k)
        multiply(powers, rows, products)
        for k in range(n):
            finish(products, k, offset, square_root, out, first + k)

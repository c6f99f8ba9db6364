"""The compiled loops that resample patches from an image pyramid.

Kept apart from :mod:`mkdesc.images.cutting` so that numba is imported only when patches are
really cut. All levels of the pyramid lie in one array: a slice handed from one compiled function
to another would cost an atomic count of references each time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc._support.compiling import FAST
from mkdesc.images.cutting import PAD


@njit(**FAST)
def locate(frames, k, row, first, size, level, base, fx, fy):
    """Where a row of samples lies: index of the pixel at the upper left, and the rest.

    Beyond the border the nearest point of the border is taken.
    """
    start, stride, bottom, right = level
    a, b, c = frames[k, 0, 0], frames[k, 0, 1], frames[k, 0, 2]
    d, e, f = frames[k, 1, 0], frames[k, 1, 1], frames[k, 1, 2]
    g, h, i = frames[k, 2, 0], frames[k, 2, 1], frames[k, 2, 2]
    c, f, i = c + b * row + a * first, f + e * row + d * first, i + h * row + g * first
    for j in range(size):
        share = 1 / (i + g * j)
        x = min(max((c + a * j) * share, 0.0), right)
        y = min(max((f + d * j) * share, 0.0), bottom)
        u, v = np.int32(x), np.int32(y)
        base[j] = start + (v + PAD) * stride + u + PAD
        fx[j] = x - u
        fy[j] = y - v


@njit(**FAST)
def linear(pixels, stride, base, fx, fy, size, total):
    """Add bilinearly interpolated samples to ``total`` (W,)."""
    for j in range(size):
        p, u, v = base[j], fx[j], fy[j]
        q = p + stride
        upper = pixels[p] + u * (pixels[p + 1] - pixels[p])
        lower = pixels[q] + u * (pixels[q + 1] - pixels[q])
        total[j] += upper + v * (lower - upper)


@njit(**FAST)
def cubic(pixels, stride, base, fx, fy, size, total):
    """Add samples interpolated by Catmull-Rom splines to ``total`` (W,)."""
    half = np.float32(0.5)
    for j in range(size):
        u, v = fx[j], fy[j]
        # Weights of the four neighbours along an axis; they add up to one.
        r, s = np.float32(1) - u, np.float32(1) - v
        a, d = -half * u * r * r, -half * u * u * r
        b = np.float32(1) + u * u * (np.float32(1.5) * u - np.float32(2.5))
        c = np.float32(1) + r * r * (np.float32(1.5) * r - np.float32(2.5))
        e, h = -half * v * s * s, -half * v * v * s
        f = np.float32(1) + v * v * (np.float32(1.5) * v - np.float32(2.5))
        g = np.float32(1) + s * s * (np.float32(1.5) * s - np.float32(2.5))
        p = base[j] - stride - 1
        w = a * pixels[p] + b * pixels[p + 1] + c * pixels[p + 2] + d * pixels[p + 3]
        p += stride
        x = a * pixels[p] + b * pixels[p + 1] + c * pixels[p + 2] + d * pixels[p + 3]
        p += stride
        y = a * pixels[p] + b * pixels[p + 1] + c * pixels[p + 2] + d * pixels[p + 3]
        p += stride
        z = a * pixels[p] + b * pixels[p + 1] + c * pixels[p + 2] + d * pixels[p + 3]
        total[j] += e * w + f * x + g * y + h * z


def halve(pixels, level, out):
    """Make the next level of a pyramid: a binomial filter of 5 x 5 at every second pixel.

    Parameters
    ----------
    pixels, level
        As for :func:`cut_block`; the level that is halved.
    out : (H, W) float32
        The next level with its border, which is not written.
    """
    start, stride, height, width = level
    rows, columns = (height + 1) // 2, (width + 1) // 2
    line = np.empty(width + 4, np.float32)
    for y in range(rows):
        a, b = max(2 * y - 2, 0), max(2 * y - 1, 0)
        d, e = min(2 * y + 1, height - 1), min(2 * y + 2, height - 1)
        first = start + PAD * stride + PAD
        a, b, c = first + a * stride, first + b * stride, first + 2 * y * stride
        d, e = first + d * stride, first + e * stride
        for x in range(width):
            near = pixels[np.uint64(b + x)] + pixels[np.uint64(d + x)]
            far = pixels[np.uint64(a + x)] + pixels[np.uint64(e + x)]
            line[x + 2] = np.float32(6) * pixels[np.uint64(c + x)] + np.float32(4) * near + far
        line[0] = line[1] = line[2]
        line[width + 2] = line[width + 3] = line[width + 1]
        for x in range(columns):
            near, far = line[2 * x + 1] + line[2 * x + 3], line[2 * x] + line[2 * x + 4]
            total = np.float32(6) * line[2 * x + 2] + np.float32(4) * near + far
            out[y + PAD, np.uint64(x + PAD)] = total * np.float32(1 / 256)


def cut_block(pixels, levels, frames, chosen, smooth, limit, out):
    """Resample patches into ``out`` (N, W, W).

    Parameters
    ----------
    pixels : (P,) float32
        All levels of the pyramid, one after the other, each with its border repeated.
    levels : (L, 4) int64
        Of each level: index of its first pixel, pixels from row to row, height, width.
    frames : (N, 3, 3) float64
        From pixel indices (column, row, 1) of the patch to pixels of the level.
    chosen : (N, 3) int64
        Of each frame: its level, and the number of samples per pixel along x and y.
    smooth : bool
        Whether single samples are interpolated by splines, and not linearly.
    limit : float32
        Values are rounded and kept in 0..limit; or left alone, if it is 0.
    """
    size = out.shape[1]
    base = np.empty(size, np.int64)
    fx, fy = np.empty(size, np.float32), np.empty(size, np.float32)
    total = np.empty(size, np.float32)
    for k in range(len(frames)):
        which, nx, ny = chosen[k, 0], chosen[k, 1], chosen[k, 2]
        stride = levels[which, 1]
        level = (levels[which, 0], stride, levels[which, 2] - 1.0, levels[which, 3] - 1.0)
        share = np.float32(1.0 / (nx * ny))
        for row in range(size):
            total[:] = 0
            for m in range(ny):
                y = row + (m + 0.5) / ny - 0.5
                for n in range(nx):
                    locate(frames, k, y, (n + 0.5) / nx - 0.5, size, level, base, fx, fy)
                    if smooth and nx * ny == 1:
                        cubic(pixels, stride, base, fx, fy, size, total)
                    else:
                        linear(pixels, stride, base, fx, fy, size, total)
            if limit > 0:
                for j in range(size):
                    value = total[j] * share + np.float32(0.5)
                    out[k, row, j] = np.int32(min(max(value, np.float32(0)), limit))
            else:
                for j in range(size):
                    out[k, row, j] = total[j] * share

"""The compiled template of a fit: samples around a place, their derivatives, normal equations.

Single precision, flat arrays of 15 rows of 16 samples, the last of which weighs nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mkdesc._support.compiling import CAREFUL
from mkdesc.matching.growing.window import (
    DAMPING,
    MIN_VARIANCE,
    RADIUS,
    ROW,
    SIDE,
    TINY,
    window_weights,
)

#: Samples, with those that weigh nothing.
SAMPLES = SIDE * ROW
#: Weights and offsets of the samples.
_padded = np.pad(window_weights(), ((0, 0), (0, 1)))
W = _padded.astype(np.float32).ravel()
U = np.tile(np.arange(-RADIUS, RADIUS + 2), SIDE).astype(np.float32)
V = np.repeat(np.arange(-RADIUS, RADIUS + 1), ROW).astype(np.float32)


class Room(NamedTuple):
    """Room for one fit; of each its own thread.

    Attributes
    ----------
    patch, template
        Pixels (SIDE + 3, 20) around the place, and samples (SIDE + 2, 20) between them.
    t, x, y
        (SAMPLES,): samples of the template, normalised, and their derivatives.
    z
        (SAMPLES,): samples of the other photograph, less the template's mean.
    factor
        (6, 6): Cholesky's, of the normal equations, with inverses on its diagonal.
    mean, slope
        (6,): of the template's derivatives, and of their products with the template.
    step
        (6,): what is added to the parameters.
    texture
        (1,): smaller eigenvalue of the structure matrix.
    """

    patch: np.ndarray
    template: np.ndarray
    t: np.ndarray
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    factor: np.ndarray
    mean: np.ndarray
    slope: np.ndarray
    step: np.ndarray
    texture: np.ndarray


@njit(**CAREFUL)
def make_room():
    """Room for one fit at a time."""
    return Room(
        np.zeros((SIDE + 3, 20), np.float32),
        np.zeros((SIDE + 2, 20), np.float32),
        np.zeros(SAMPLES, np.float32),
        np.zeros(SAMPLES, np.float32),
        np.zeros(SAMPLES, np.float32),
        np.zeros(SAMPLES, np.float32),
        np.zeros((6, 6)),
        np.zeros(6),
        np.zeros(6),
        np.zeros(6),
        np.zeros(1),
    )


@njit(**CAREFUL)
def cut_template(pixels, start, height, width, cx, cy, room):
    """Samples of the template with a border of one, at the level's own spacing."""
    left, top = math.floor(cx), math.floor(cy)
    fx, fy = np.float32(cx - left), np.float32(cy - top)
    left, top = int(left) - RADIUS - 1, int(top) - RADIUS - 1
    patch, template = room.patch, room.template
    if left >= 0 and top >= 0 and left + SIDE + 4 <= width and top + SIDE + 3 <= height:
        for j in range(SIDE + 3):
            row = start + (top + j) * width + left
            for i in range(SIDE + 4):
                patch[j, i] = pixels[np.uint64(row + i)]
    else:
        for j in range(SIDE + 3):
            row = start + min(max(top + j, 0), height - 1) * width
            for i in range(SIDE + 4):
                patch[j, i] = pixels[np.uint64(row + min(max(left + i, 0), width - 1))]
    for j in range(SIDE + 2):
        for i in range(SIDE + 3):
            upper = patch[j, i] + fx * (patch[j, i + 1] - patch[j, i])
            lower = patch[j + 1, i] + fx * (patch[j + 1, i + 1] - patch[j + 1, i])
            template[j, i] = upper + fy * (lower - upper)


@njit(**CAREFUL)
def normalise(room):
    """The template with mean 0 and deviation 1, and its derivatives; returns the mean.

    NaN where there is no contrast.
    """
    template, t, x, y = room.template, room.t, room.x, room.y
    mean = np.float32(0)
    for j in range(SIDE):
        for i in range(ROW):
            mean += W[j * ROW + i] * template[j + 1, i + 1]
    variance = np.float32(0)
    for j in range(SIDE):
        for i in range(ROW):
            off = template[j + 1, i + 1] - mean
            variance += W[j * ROW + i] * off * off
    if not variance >= MIN_VARIANCE:
        return np.nan
    unit = np.float32(1 / math.sqrt(np.float64(variance)))
    half = np.float32(0.5) * unit
    for j in range(SIDE):
        for i in range(ROW):
            k = j * ROW + i
            t[k] = unit * (template[j + 1, i + 1] - mean)
            x[k] = half * (template[j + 1, i + 2] - template[j + 1, i])
            y[k] = half * (template[j + 2, i + 1] - template[j, i + 1])
    return np.float64(mean)


@njit(**CAREFUL)
def products(one, two):
    """Weighted sums of products of two arrays, times 1, u, v, u u, u v, v v."""
    s0 = s1 = s2 = s3 = s4 = s5 = np.float32(0)
    for k in range(SAMPLES):
        p = W[k] * one[k] * two[k]
        pu, pv = p * U[k], p * V[k]
        s0 += p
        s1 += pu
        s2 += pv
        s3 += pu * U[k]
        s4 += pu * V[k]
        s5 += pv * V[k]
    return s0, s1, s2, s3, s4, s5


@njit(**CAREFUL)
def first_moments(values):
    """Weighted sums of values, times 1, u, v."""
    s0 = s1 = s2 = np.float32(0)
    for k in range(SAMPLES):
        p = W[k] * values[k]
        s0 += p
        s1 += p * U[k]
        s2 += p * V[k]
    return s0, s1, s2


@njit(**CAREFUL)
def factorise(room):
    """Cholesky's factor of the normal equations; returns the texture.

    The parameters: x, y, x u, x v, y u, y v.
    """
    t, x, y, h, mean, slope = room.t, room.x, room.y, room.factor, room.mean, room.slope
    mean[0], mean[2], mean[3] = first_moments(x)
    mean[1], mean[4], mean[5] = first_moments(y)
    slope[0], slope[2], slope[3], _, _, _ = products(x, t)
    slope[1], slope[4], slope[5], _, _, _ = products(y, t)
    h[0, 0], h[2, 0], h[3, 0], h[2, 2], h[3, 2], h[3, 3] = products(x, x)
    h[1, 1], h[4, 1], h[5, 1], h[4, 4], h[5, 4], h[5, 5] = products(y, y)
    h[1, 0], h[2, 1], h[3, 1], h[4, 2], h[5, 2], h[5, 3] = products(x, y)
    h[4, 0], h[5, 0], h[4, 3] = h[2, 1], h[3, 1], h[5, 2]
    for i in range(6):
        for j in range(i + 1):
            h[i, j] -= mean[i] * mean[j]
    a, b, c = h[0, 0], h[1, 0], h[1, 1]
    texture = 0.5 * (a + c) - math.sqrt(0.25 * (a - c) * (a - c) + b * b)
    for i in range(6):
        h[i, i] = h[i, i] * (1 + DAMPING) + TINY
    for i in range(6):
        for j in range(i + 1):
            total = h[i, j]
            for k in range(j):
                total -= h[i, k] * h[j, k]
            h[i, j] = 1 / math.sqrt(max(total, TINY)) if i == j else total * h[j, j]
    return max(texture, 0.0)

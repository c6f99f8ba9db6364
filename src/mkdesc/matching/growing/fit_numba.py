"""The compiled fit of one place: what :mod:`mkdesc.matching.growing.reference` derives.

Single precision, flat arrays of 15 rows of 16 samples (the last of a row weighs nothing), of
which one step needs 240 bilinear samples and nine sums.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mkdesc._support.compiling import CAREFUL
from mkdesc.matching.growing.window import (
    DAMPING,
    LARGEST,
    LONGEST_STEP,
    MAX_IDLE,
    MAX_SWELLING,
    MAX_UNREST,
    MIN_DETERMINANT,
    MIN_GAIN,
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


@njit(**CAREFUL)
def solve(h, g, n):
    """Solve the normal equations for the first ``n`` parameters, in place."""
    for i in range(n):
        total = g[i]
        for k in range(i):
            total -= h[i, k] * g[k]
        g[i] = total * h[i, i]
    for i in range(n - 1, -1, -1):
        total = g[i]
        for k in range(i + 1, n):
            total -= h[k, i] * g[k]
        g[i] = total * h[i, i]


@njit(**CAREFUL)
def sample(pixels, start, height, width, cx, cy, a, b, c, d, less, z):
    """Bilinear samples of a level; beyond the border the nearest point of the border is taken."""
    right, bottom = np.float32(width - 1), np.float32(height - 1)
    first, row = np.uint32(start), np.uint32(width)
    for k in range(SAMPLES):
        x = min(max(cx + a * U[k] + b * V[k], np.float32(0)), right)
        y = min(max(cy + c * U[k] + d * V[k], np.float32(0)), bottom)
        i, j = np.int32(x), np.int32(y)
        fx, fy = x - np.float32(i), y - np.float32(j)
        p = np.uint64(first + np.uint32(j) * row + np.uint32(i))
        q = p + np.uint64(row)
        upper = pixels[p] + fx * (pixels[p + np.uint64(1)] - pixels[p])
        lower = pixels[q] + fx * (pixels[q + np.uint64(1)] - pixels[q])
        z[k] = upper + fy * (lower - upper) - less


@njit(**CAREFUL)
def sums(room):
    """The nine sums of a step: of samples, their squares, and products with the template."""
    t, x, y, z, g = room.t, room.x, room.y, room.z, room.step
    s1 = s2 = st = g0 = g1 = g2 = g3 = g4 = g5 = np.float32(0)
    for k in range(SAMPLES):
        w = W[k] * z[k]
        s1 += w
        s2 += w * z[k]
        st += w * t[k]
        p, q = w * x[k], w * y[k]
        g0 += p
        g1 += q
        g2 += p * U[k]
        g3 += p * V[k]
        g4 += q * U[k]
        g5 += q * V[k]
    g[0], g[1], g[2], g[3], g[4], g[5] = g0, g1, g2, g3, g4, g5
    return s1, s2, st


@njit(**CAREFUL)
def nearest_level(spacing, levels):
    """The level whose pixels are as far apart as samples should be."""
    level = 0
    while spacing * spacing > 2 and level < len(levels) - 1:
        level += 1
        spacing *= 0.5
    return level


@njit(**CAREFUL)
def is_small(a, b, c, d):
    """Whether no number of a map is large, or NaN."""
    return abs(a) + abs(b) + abs(c) + abs(d) <= LARGEST


@njit(**CAREFUL)
def fit(one, two, px, py, guess, row, level, rule, room):
    """Fit the local map of one place.

    Parameters
    ----------
    one, two : Pyramid
        Of the photograph with the place, and of the other one.
    px, py : float
        The place.
    guess : (N, 6) float64
        In its ``row``: where the place is in the other photograph, and the map (its rows one
        after the other). Changed if the fit goes well.
    level : int
        Samples are 2^level pixels apart, in the photograph that is the finer of the two.
    rule : Rule
        When to stop.
    room : Room
        Its ``texture`` is written, too.

    Returns
    -------
    float
        The correlation; -1 if there is no fit.
    """
    room.texture[0] = 0.0
    x, y = guess[row, 0], guess[row, 1]
    a, b, c, d = guess[row, 2], guess[row, 3], guess[row, 4], guess[row, 5]
    area = abs(a * d - b * c)
    if not (MIN_DETERMINANT <= area <= 1 / MIN_DETERMINANT and is_small(a, b, c, d)):
        return -1.0
    if not (0 <= px <= one.levels[0, 2] - 1 and 0 <= py <= one.levels[0, 1] - 1):
        return -1.0
    scale = math.sqrt(area)
    here = nearest_level(2.0**level * max(1.0, 1 / scale), one.levels)
    spacing = 2.0**here
    there = nearest_level(spacing * scale, two.levels)
    cut_template(
        *(one.pixels, one.levels[here, 0], one.levels[here, 1], one.levels[here, 2]),
        *((px + 0.5) / spacing - 0.5, (py + 0.5) / spacing - 0.5, room),
    )
    mean = normalise(room)
    if not mean >= 0:
        return -1.0
    room.texture[0] = factorise(room)
    start, height, width = two.levels[there, 0], two.levels[there, 1], two.levels[there, 2]
    right, bottom = two.levels[0, 2] - 1, two.levels[0, 1] - 1
    share = 0.5**there
    f, reach = spacing * share, rule.reach * spacing * scale
    x0, y0, idle, step, unrest = x, y, 0, room.step, 0.0
    best, best_x, best_y, best_a, best_b, best_c, best_d = -1.0, x, y, a, b, c, d
    for number in range(rule.steps + 1):
        if not (0 <= x <= right and 0 <= y <= bottom and is_small(a, b, c, d)):
            break
        if (x - x0) ** 2 + (y - y0) ** 2 > reach * reach:
            return -1.0
        sample(
            *(two.pixels, start, height, width),
            *(np.float32((x + 0.5) * share - 0.5), np.float32((y + 0.5) * share - 0.5)),
            *(np.float32(a * f), np.float32(b * f), np.float32(c * f), np.float32(d * f)),
            *(np.float32(mean), room.z),
        )
        s1, s2, st = sums(room)
        variance = np.float64(s2 - s1 * s1)
        if not variance >= MIN_VARIANCE:
            break
        deviation = math.sqrt(variance)
        correlation = st / deviation
        if correlation > best + MIN_GAIN:
            best, idle = correlation, 0
            best_x, best_y, best_a, best_b, best_c, best_d = x, y, a, b, c, d
        else:
            idle += 1
        if idle > MAX_IDLE or number == rule.steps:
            break
        if number == rule.judged and best < rule.hope:
            return -1.0
        n = 2 if number < rule.shifts else 6
        for i in range(n):
            step[i] = (step[i] - room.mean[i] * s1) / deviation - room.slope[i]
        solve(room.factor, step, n)
        length = math.sqrt(step[0] * step[0] + step[1] * step[1])
        if idle == 0:
            unrest = length
        shorter = LONGEST_STEP / max(length, LONGEST_STEP)
        du, dv = spacing * shorter * step[0], spacing * shorter * step[1]
        if n == 6:  # the inverse of the step, then the map
            p, q = 1 + shorter * step[2], shorter * step[3]
            r, s = shorter * step[4], 1 + shorter * step[5]
            swelling = p * s - q * r
            if not 1 / MAX_SWELLING <= swelling <= MAX_SWELLING:
                break
            a, b, c, d = (
                (a * s - b * r) / swelling,
                (b * p - a * q) / swelling,
                (c * s - d * r) / swelling,
                (d * p - c * q) / swelling,
            )
        x -= a * du + b * dv
        y -= c * du + d * dv
        if n == 6 and length < rule.still:
            if idle == 0 and 0 <= x <= right and 0 <= y <= bottom:
                best_x, best_y, best_a, best_b, best_c, best_d = x, y, a, b, c, d
            break
    if unrest > MAX_UNREST:
        return -1.0
    if best > -1:
        guess[row, 0], guess[row, 1] = best_x, best_y
        guess[row, 2], guess[row, 3], guess[row, 4], guess[row, 5] = best_a, best_b, best_c, best_d
    return best


def fit_all(one, two, places, start, stop, found, level, rule, correlation, texture):
    """Fit the local maps of places ``start`` to ``stop`` - 1; see :func:`fit`.

    Parameters
    ----------
    places : (N, 2) float64
    found : (N, 6) float64
        Guesses; changed where there is a fit.
    correlation, texture : (N,) float64
    """
    room = make_room()
    for i in range(start, stop):
        correlation[i] = fit(
            *(one, two, places[i, 0], places[i, 1], found, i, level, rule, room),
        )
        texture[i] = room.texture[0]

"""The compiled fit of one place: what :mod:`mkdesc.matching.growing.reference` derives.

A step needs 240 bilinear samples of the other photograph, and nine sums.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mkdesc._support.compiling import CAREFUL
from mkdesc.matching.growing.template_numba import (
    SAMPLES,
    U,
    V,
    W,
    cut_template,
    factorise,
    make_room,
    normalise,
)
from mkdesc.matching.growing.window import (
    LARGEST,
    LONGEST_STEP,
    MAX_IDLE,
    MAX_SPARSE,
    MAX_SWELLING,
    MAX_UNREST,
    MIN_DETERMINANT,
    MIN_GAIN,
    MIN_VARIANCE,
)


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
    while spacing * spacing > MAX_SPARSE and level < len(levels) - 1:
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

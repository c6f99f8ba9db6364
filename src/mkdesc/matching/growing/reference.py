"""One fit, in plain numpy: the definition that the compiled loops are held against.

**What is fitted.** Around a place p of one photograph lie samples at offsets o from it,
weighted by a Gaussian w with sum 1. Their gray values less their mean, divided by their
deviation, are the template T(o). A local map brings the samples to the other photograph: o
lies at q + M o there, where the gray values are, normalised in the same way, Z(o). So neither
the gain of the light nor its offset counts. Sought are the place q and the map M, six numbers,
with the least

    sum over o of w(o) (Z(o) - T(o))^2  =  2 - 2 C,      C = sum of w Z T:

the correlation C of both windows is all that is left of the error.

**A step.** Lucas and Kanade (1981) linearise Z in the six numbers, and solve for a small
change of them. Its derivatives would have to be made anew in each step. The inverse
compositional way (Baker and Matthews, 2004) moves the template instead: with d = (d1, ...,
d6), the samples of T are taken at

    o' = o + D o + t,      D = (d3 d4; d5 d6),  t = (d1; d2),

so that, to first order, T(o') = T(o) + J(o) d with J = (Tx, Ty, Tx u, Tx v, Ty u, Ty v) for o
= (u, v). J is less its mean, since T(o') is normalised. The best d solves the normal equations

    (sum of w J' J) d  =  sum of w J' (Z - T),

whose matrix is the same in all steps. The diagonal is raised by a thousandth (Levenberg), for
windows in which some of the six numbers change nothing. To move the template by d is to move
the samples of the other photograph by its inverse:

    M <- M (1 + D)^-1,      q <- q - M t.

The first steps look for the place alone; a step is at most one sample long. The numbers with
the highest correlation are kept, if the step from there is a short one: where it is not, the
top was not found.

**How far apart samples are.** 2^l pixels in the photograph that is the finer of the two, that
is, with s the root of the determinant of M, about 2^l max(1, 1 / s) in the first and s times
that in the second one, each sampled where pixels are about as far apart in its pyramid.

A match that fits predicts where its neighbours are: p + r lies at q + M r. To grow from there
is the idea of Lhuillier and Quan (2002), here with maps that are fitted, and not only
correlations.

References
----------
B. Lucas, T. Kanade. An iterative image registration technique with an application to stereo
vision. IJCAI 1981.

S. Baker, I. Matthews. Lucas-Kanade 20 years on: a unifying framework. IJCV 56(3), 2004.

M. Lhuillier, L. Quan. Match propagation for image-based modeling and rendering. PAMI 24(8),
2002.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mkdesc.matching.growing.fitting import Floats, Rule
from mkdesc.matching.growing.pyramid import Pyramid
from mkdesc.matching.growing.window import (
    DAMPING,
    LARGEST,
    LONGEST_STEP,
    MAX_IDLE,
    MAX_SPARSE,
    MAX_SWELLING,
    MAX_UNREST,
    MIN_DETERMINANT,
    MIN_GAIN,
    MIN_VARIANCE,
    RADIUS,
    TINY,
    window_weights,
)


class Fit(NamedTuple):
    """The place (2,) and the map (2, 2) of a fit, its correlation, and its texture."""

    place: Floats
    map: Floats
    correlation: float
    texture: float


def fit_place(
    one: Pyramid, two: Pyramid, place: Floats, guess: Floats, local: Floats, level: int, rule: Rule
) -> Fit | None:
    """Fit the local map of one place; None if there is no fit.

    Parameters
    ----------
    one, two
        The photograph with the place, and the other one.
    place
        (2,): x and y.
    guess, local
        (2,) and (2, 2): about where that is in the other photograph, and the map.
    level
        Samples are 2^level pixels apart, in the photograph that is the finer of the two.
    rule
        When to stop.
    """
    determinant = abs(np.linalg.det(local))
    if not MIN_DETERMINANT <= determinant <= 1 / MIN_DETERMINANT or not _is_small(local):
        return None
    if not _is_inside(one, place):
        return None
    scale = np.sqrt(determinant)
    here = _nearest_level(one, 2.0**level * max(1.0, 1 / scale))
    spacing = 2.0**here
    there = _nearest_level(two, spacing * scale)

    u, v = np.meshgrid(*2 * [np.arange(-RADIUS, RADIUS + 1.0)])
    offsets, w = np.stack([u, v], axis=-1), window_weights()

    def mean(values: Floats) -> Floats:
        return np.tensordot(w, values, 2)

    def template(du: int, dv: int) -> Floats:
        return _sample(one, here, place + spacing * (offsets + np.array([du, dv])))

    gray = template(0, 0)
    deviation = np.sqrt(mean((gray - mean(gray)) ** 2))
    if deviation**2 < MIN_VARIANCE:
        return None
    t = (gray - mean(gray)) / deviation
    tx = (template(1, 0) - template(-1, 0)) / 2 / deviation
    ty = (template(0, 1) - template(0, -1)) / 2 / deviation
    j = np.stack([tx, ty, tx * u, tx * v, ty * u, ty * v], axis=-1)
    j -= mean(j)
    equations = mean(j[..., :, None] * j[..., None, :])
    texture = float(np.linalg.eigvalsh(equations[:2, :2])[0])
    equations += np.diag(DAMPING * equations.diagonal() + TINY)

    best, idle, unrest, at, start = None, 0, 0.0, np.array(guess, np.float64), guess
    for number in range(rule.steps + 1):
        if not _is_inside(two, at) or not _is_small(local):
            break
        if np.linalg.norm(at - start) > rule.reach * spacing * scale:
            return None
        z = _sample(two, there, at + spacing * offsets @ local.T)
        variance = mean((z - mean(z)) ** 2)
        if variance < MIN_VARIANCE:
            break
        z = (z - mean(z)) / np.sqrt(variance)
        correlation = float(mean(z * t))
        if best is None or correlation > best.correlation + MIN_GAIN:
            best, idle = Fit(at, local, correlation, texture), 0
        else:
            idle += 1
        if idle > MAX_IDLE or number == rule.steps:
            break
        if number == rule.judged and best.correlation < rule.hope:
            return None
        n = 2 if number < rule.shifts else 6
        step = np.zeros(6)
        step[:n] = np.linalg.solve(equations[:n, :n], mean(j * (z - t)[..., None])[:n])
        length = np.hypot(step[0], step[1])
        unrest = length if idle == 0 else unrest
        step *= LONGEST_STEP / max(length, LONGEST_STEP)
        moved = np.eye(2) + step[2:].reshape(2, 2)
        if not 1 / MAX_SWELLING <= np.linalg.det(moved) <= MAX_SWELLING:
            break
        local = local @ np.linalg.inv(moved)
        at = at - spacing * local @ step[:2]
        if n == 6 and length < rule.still:
            if idle == 0 and _is_inside(two, at):
                best = best._replace(place=at, map=local)
            break
    return best if unrest <= MAX_UNREST else None


def _sample(pyramid: Pyramid, level: int, xy: Floats) -> Floats:
    """Bilinear samples at places (..., 2) of the photograph, in one level of its pyramid."""
    from scipy.ndimage import map_coordinates

    x, y = np.moveaxis((xy + 0.5) / 2**level - 0.5, -1, 0)
    pixels = pyramid.level(level).astype(np.float64)
    return np.asarray(map_coordinates(pixels, [y, x], order=1, mode="nearest"))


def _nearest_level(pyramid: Pyramid, spacing: float) -> int:
    """The level whose pixels are about as far apart."""
    return int(
        np.clip(np.ceil(np.log2(spacing) - 0.5 * np.log2(MAX_SPARSE)), 0, len(pyramid.levels) - 1)
    )


def _is_inside(pyramid: Pyramid, xy: Floats) -> bool:
    _, height, width = pyramid.levels[0]
    return bool(0 <= xy[0] <= width - 1 and 0 <= xy[1] <= height - 1)


def _is_small(local: Floats) -> bool:
    return bool(np.abs(local).sum() <= LARGEST)

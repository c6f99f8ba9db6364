"""Many fits as tensor operations, on any device.

What :mod:`mkdesc.matching.growing.reference` derives, for all places at once: each takes every
step that the rule allows, and what has ended is not changed any more. So nothing waits for the
device between the first step and the last.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mkdesc.matching.growing.fitting import Fits, Fitter, Floats, Rule
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
    SIDE,
    TINY,
    window_weights,
)

#: Fits at a time: bounds the memory, about 40 kB for each.
MOST_AT_ONCE = 1 << 14


class TensorPyramid(NamedTuple):
    """A :class:`~mkdesc.matching.growing.pyramid.Pyramid` whose arrays are tensors."""

    pixels: Tensor
    levels: Tensor


def to_device(pyramid: Pyramid, device: torch.device) -> TensorPyramid:
    """A pyramid on a device."""
    return TensorPyramid(*(torch.tensor(values, device=device) for values in pyramid))


def make_fitter(device: torch.device, *pyramids: Pyramid) -> Fitter:
    """What fits places of these photographs on a device, where they are kept."""
    there = {id(pyramid): (pyramid, to_device(pyramid, device)) for pyramid in pyramids}

    def fit(
        one: Pyramid, two: Pyramid, places: Floats, guess: Floats, level: int, rule: Rule
    ) -> Fits:
        return fit_places(there[id(one)][1], there[id(two)][1], places, guess, level, rule)

    return fit


def fit_places(
    one: TensorPyramid, two: TensorPyramid, places: Floats, guess: Floats, level: int, rule: Rule
) -> Fits:
    """As :func:`mkdesc.matching.growing.fitting.fit_places`, on the device of the pyramids."""
    device, parts = one.pixels.device, []
    for start in range(0, len(places), MOST_AT_ONCE):
        now = slice(start, start + MOST_AT_ONCE)
        here, there = (torch.from_numpy(np.array(x[now])).to(device) for x in (places, guess))
        parts.append(_fit(one, two, here, there, level, rule).cpu().numpy())
    both = np.concatenate([np.empty((0, 8)), *parts])
    return Fits(np.ascontiguousarray(both[:, :6]), both[:, 6].copy(), both[:, 7].copy())


class _Templates(NamedTuple):
    """The first photograph's part of N fits.

    Attributes
    ----------
    samples
        (N, S): with mean 0 and deviation 1.
    derivatives
        (N, S, 6): by the six parameters, less their means, times the weights.
    shift, step
        (N, 6, 6): inverses of the normal equations, for the place alone and for all parameters.
    texture, variance
        (N,): of the gray values.
    """

    samples: Tensor
    derivatives: Tensor
    shift: Tensor
    step: Tensor
    texture: Tensor
    variance: Tensor


def _fit(
    one: TensorPyramid, two: TensorPyramid, places: Tensor, guess: Tensor, level: int, rule: Rule
) -> Tensor:
    """Fits (N, 8): what :class:`Fits` has, side by side."""
    area = _determinant(guess).abs()
    valid = (area >= MIN_DETERMINANT) & (area <= 1 / MIN_DETERMINANT) & _is_small(guess)
    valid &= _is_inside(one, places)
    unit = guess.new_tensor([0, 0, 1, 0, 0, 1])
    found = torch.where(valid[:, None], guess, unit)
    places = torch.where(valid[:, None], places, 0.0)
    scale = _determinant(found).abs().sqrt()
    here = _nearest_level(one, 2.0**level * (1 / scale).clamp(min=1))
    spacing = torch.exp2(here.double())
    there = _nearest_level(two, spacing * scale)
    template = _cut(one, here, places)
    w = _weights(guess.device)
    (u, v), start = _offsets(RADIUS, guess.device), found[:, :2]
    contrast = valid & (template.variance >= MIN_VARIANCE)
    alive, failed, top = contrast, torch.zeros_like(valid), found
    best, unrest = torch.full_like(scale, -1.0), torch.zeros_like(scale)
    idle = torch.zeros_like(here)
    for number in range(rule.steps + 1):
        alive = alive & _is_inside(two, found) & _is_small(found)
        far = (found[:, :2] - start).norm(dim=1) > rule.reach * spacing * scale
        failed, alive = failed | (alive & far), alive & ~far
        z = _sample(two, there, found[:, :2], spacing[:, None] * found[:, 2:], u, v)
        z, variance = _normalised(z, w)
        alive = alive & (variance >= MIN_VARIANCE)
        correlation = ((z * template.samples) @ w).double()
        better = alive & (correlation > best + MIN_GAIN)
        best, top = torch.where(better, correlation, best), _where(better, found, top)
        idle = torch.where(better, 0, idle + 1)
        alive = alive & (idle <= MAX_IDLE)
        if number == rule.steps:
            break
        if number == rule.judged:
            failed, alive = failed | (alive & (best < rule.hope)), alive & (best >= rule.hope)
        slope = torch.einsum("nki,nk->ni", template.derivatives, z - template.samples).double()
        inverse = template.shift if number < rule.shifts else template.step
        step = (inverse @ slope[:, :, None])[:, :, 0]
        length = step[:, :2].norm(dim=1)
        unrest = torch.where(alive & better, length, unrest)
        step = step * (LONGEST_STEP / length.clamp(min=LONGEST_STEP))[:, None]
        moved, swelling = _moved(found, step, spacing)
        alive = alive & (swelling >= 1 / MAX_SWELLING) & (swelling <= MAX_SWELLING)
        found = _where(alive, moved, found)
        if number >= rule.shifts:
            still = alive & (length < rule.still)
            top = _where(still & better & _is_inside(two, found), found, top)
            alive = alive & ~still
    fits = (best > -1) & ~failed & (unrest <= MAX_UNREST)
    told = torch.where(fits, best, -1.0), torch.where(contrast, template.texture, 0.0)
    return torch.cat([_where(fits, top, guess), torch.stack(told, dim=1)], dim=1)


def _cut(one: TensorPyramid, here: Tensor, places: Tensor) -> _Templates:
    """Templates, with samples as far apart as the pixels of their levels."""
    u, v = _offsets(RADIUS + 1, places.device)
    unit = torch.exp2(here.double())[:, None] * places.new_tensor([1, 0, 0, 1])
    gray = _sample(one, here, places, unit, u, v).reshape(-1, SIDE + 2, SIDE + 2)
    w, (u, v) = _weights(places.device), _offsets(RADIUS, places.device)
    samples, variance = _normalised(gray[:, 1:-1, 1:-1].flatten(1), w)
    half = 0.5 / variance.clamp(min=MIN_VARIANCE).sqrt()[:, None]
    x = half * (gray[:, 1:-1, 2:] - gray[:, 1:-1, :-2]).flatten(1)
    y = half * (gray[:, 2:, 1:-1] - gray[:, :-2, 1:-1]).flatten(1)
    j = torch.stack([x, y, x * u, x * v, y * u, y * v], dim=2)
    j = j - torch.einsum("k,nki->ni", w, j)[:, None]
    weighted = w[:, None] * j
    equations = (weighted.mT @ j).double()
    diagonal = equations.diagonal(dim1=1, dim2=2)
    (a, c), b = diagonal[:, :2].unbind(1), equations[:, 0, 1]
    texture = (0.5 * (a + c) - torch.hypot(0.5 * (a - c), b)).clamp(min=0)
    equations = equations + torch.diag_embed(DAMPING * diagonal + TINY)
    shift = torch.zeros_like(equations)
    shift[:, :2, :2] = torch.linalg.inv_ex(equations[:, :2, :2]).inverse
    step = torch.linalg.inv_ex(equations).inverse
    return _Templates(samples, weighted, shift, step, texture, variance)


def _moved(found: Tensor, step: Tensor, spacing: Tensor) -> tuple[Tensor, Tensor]:
    """Places and maps (N, 6) after a step of the templates (N, 6), and the step's determinant."""
    a, b, c, d = step[:, 2:].unbind(1)
    inverse = torch.stack([1 + d, -b, -c, 1 + a], dim=1)  # but for the determinant
    swelling = inverse[:, 0] * inverse[:, 3] - b * c
    local = found[:, 2:].reshape(-1, 2, 2) @ (inverse / swelling[:, None]).reshape(-1, 2, 2)
    at = found[:, :2] - (local @ (spacing[:, None] * step[:, :2])[:, :, None])[:, :, 0]
    return torch.cat([at, local.flatten(1)], dim=1), swelling


def _sample(
    pyramid: TensorPyramid, level: Tensor, at: Tensor, local: Tensor, u: Tensor, v: Tensor
) -> Tensor:
    """Bilinear samples (N, S), in levels (N,), at places (N, 2) plus maps (N, 4) of offsets (S,).

    Beyond the border the nearest point of the border is taken.
    """
    first, height, width = pyramid.levels[level, :, None].unbind(1)
    share = torch.exp2(-level.double())[:, None]
    cx, cy = ((at + 0.5) * share - 0.5).float().unbind(1)
    a, b, c, d = (local * share).float().unbind(1)
    x = cx[:, None] + a[:, None] * u + b[:, None] * v
    y = cy[:, None] + c[:, None] * u + d[:, None] * v
    x = torch.minimum(x.nan_to_num(0).clamp(min=0), (width - 1).float())
    y = torch.minimum(y.nan_to_num(0).clamp(min=0), (height - 1).float())
    i, j = x.long(), y.long()
    x, y = x - i, y - j
    p = first + j * width + i
    q = p + width
    upper = torch.lerp(pyramid.pixels[p], pyramid.pixels[p + 1], x)
    lower = torch.lerp(pyramid.pixels[q], pyramid.pixels[q + 1], x)
    return torch.lerp(upper, lower, y)


def _normalised(values: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Samples (N, S) with mean 0 and deviation 1, and the variance (N,) that they had."""
    off = values - (values @ w)[:, None]
    variance = (off * off) @ w
    return off / variance.clamp(min=MIN_VARIANCE).sqrt()[:, None], variance


def _weights(device: torch.device) -> Tensor:
    return torch.tensor(window_weights().ravel(), dtype=torch.float32, device=device)


def _offsets(radius: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The x and y (S,) of samples, row by row."""
    line = torch.arange(-radius, radius + 1, dtype=torch.float32, device=device)
    return line.repeat(len(line)), line.repeat_interleave(len(line))


def _nearest_level(pyramid: TensorPyramid, spacing: Tensor) -> Tensor:
    """The levels (N,) whose pixels are about as far apart."""
    level = (spacing.log2() - 0.5 * math.log2(MAX_SPARSE)).ceil()
    return level.clamp(0, len(pyramid.levels) - 1).long()


def _is_inside(pyramid: TensorPyramid, at: Tensor) -> Tensor:
    last = pyramid.levels[0, 1:].flip(0) - 1
    return ((at[:, :2] >= 0) & (at[:, :2] <= last)).all(dim=1)


def _is_small(found: Tensor) -> Tensor:
    return found[:, 2:].abs().sum(dim=1) <= LARGEST


def _determinant(found: Tensor) -> Tensor:
    return found[:, 2] * found[:, 5] - found[:, 3] * found[:, 4]


def _where(which: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """Rows (N, 6) of the one or the other."""
    return torch.where(which[:, None], yes, no)

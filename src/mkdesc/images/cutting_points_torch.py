"""Squares around points of several images, cut at once on their device, without waiting for it.

The same pixels as :mod:`mkdesc.images.cutting` gives for points, interpolated linearly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from mkdesc._support.launching import blocks, launches
from mkdesc.images.cutting import MOST_SAMPLES

#: Pixels per program of the kernels.
HALVED, CUT = 512, 256
#: Samples that plain operations take at a time: bounds the memory.
MOST_AT_ONCE = 1 << 24


class Levels(NamedTuple):
    """The levels of images of one size: numbers of each, (L,) int64, on the device."""

    starts: Tensor
    heights: Tensor
    widths: Tensor


def _sizes(shape: tuple[int, int]) -> list[tuple[int, int]]:
    """All levels: the smaller side is at least one pixel on each."""
    sizes = [shape]
    for _ in range(int(math.log2(min(shape)))):
        height, width = sizes[-1]
        sizes.append(((height + 1) // 2, (width + 1) // 2))
    return sizes


@lru_cache(maxsize=32)
def _levels(shape: tuple[int, int], device: torch.device) -> Levels:
    sizes = _sizes(shape)
    starts = [0]
    for height, width in sizes[:-1]:
        starts.append(starts[-1] + height * width)
    return Levels(
        torch.tensor(starts, device=device),
        torch.tensor([height for height, _ in sizes], device=device),
        torch.tensor([width for _, width in sizes], device=device),
    )


def cut_points(images: Tensor, points: Tensor, size: int, sides: Sequence[float]) -> Tensor:
    """Cut squares around points out of gray images, in one go.

    Parameters
    ----------
    images
        (B, H, W), uint8 or float32.
    points
        (B, N, 4) float32: x, y, sigma, angle; a sigma of 0 is taken for 1 (rows that are padded).
    size
        Side W of the patches in pixels.
    sides
        Sides of the squares in units of sigma, one or several for each point.

    Returns
    -------
    Tensor of shape (B, N, len(sides), W, W)
        uint8 if the images are, rounded; float32 otherwise.

    Examples
    --------
    >>> image = torch.arange(100, dtype=torch.uint8).reshape(1, 10, 10)
    >>> cut_points(image, torch.tensor([[[4.5, 5.5, 1, 0]]]), 4, [4.0])[0, 0, 0, 0]
    tensor([43, 44, 45, 46], dtype=torch.uint8)
    """
    shape = (images.shape[1], images.shape[2])
    levels, pyramid = _levels(shape, images.device), _pyramid(images)
    x, y, sigma, angle = points[:, :, None].double().unbind(-1)
    sigma = torch.where(sigma > 0, sigma, 1)
    step = torch.stack([sigma[..., 0] * (side / size) for side in sides], -1)
    # As for frames of any kind: mkdesc.images.cutting.choose_levels.
    most = len(_sizes(shape)) - 1
    shorter = step * (1 - 1e-9)
    finest = (shorter / MOST_SAMPLES).log2().ceil().clamp(0, most)
    level = shorter.log2().floor().clamp(0, most).maximum(finest)
    factor = torch.exp2(level)
    longest = torch.where(level > 0, 2**0.5, 1.0)
    samples = (shorter / (factor * longest)).ceil().clamp(1, MOST_SAMPLES)
    radians = torch.deg2rad(angle)
    along = step / factor
    squares = torch.stack(
        [x / factor, y / factor, along * radians.cos(), along * radians.sin()], -1
    )
    chosen = torch.stack([level, samples], -1)
    shape_out = (*step.shape, size, size)
    whole = images.dtype == torch.uint8
    if not launches(images):
        out = _by_plain_operations(pyramid, levels, squares, chosen.long(), size)
        out = out.add(0.5).clamp(0, 255).to(torch.uint8) if whole else out
        return out.view(shape_out)
    from mkdesc.images.cutting_triton import cut_squares

    out = images.new_empty(shape_out, dtype=torch.uint8 if whole else torch.float32)
    count = step.numel()
    if count:
        cut_squares[(count, blocks(size * size, CUT))](
            pyramid, *levels, squares.float().contiguous(), chosen.int().contiguous(), out,
            pyramid.shape[1], count // len(images), SIZE=size, WHOLE=whole, BLOCK=CUT,
        )  # fmt: skip
    return out


def _pyramid(images: Tensor) -> Tensor:
    """All levels of images (B, H, W), one after the other: (B, P) float32."""
    sizes = _sizes((images.shape[1], images.shape[2]))
    total = sum(height * width for height, width in sizes)
    out = torch.empty((len(images), total), device=images.device)
    height, width = sizes[0]
    out[:, : height * width] = images.flatten(1)
    start = 0
    for before, after in pairwise(sizes):
        end = start + before[0] * before[1]
        last = end + after[0] * after[1]
        if launches(images):
            from mkdesc.images.cutting_triton import halve

            n = len(images) * after[0] * after[1]
            halve[(blocks(n, HALVED),)](
                out[:, start:], out[:, end:], n, *before, total, BLOCK=HALVED
            )
        else:
            level = out[:, start:end].view(-1, *before)
            out[:, end:last] = _half_as_large(level).flatten(1)
        start = end
    return out


def _half_as_large(levels: Tensor) -> Tensor:
    taps = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0], device=levels.device) / 16
    wide = pad(levels[:, None], (2, 2, 2, 2), mode="replicate")
    rows = conv2d(wide, taps.view(1, 1, 1, 5), stride=(1, 2))
    return conv2d(rows, taps.view(1, 1, 5, 1), stride=(2, 1))[:, 0]


def _by_plain_operations(
    pyramid: Tensor, levels: Levels, squares: Tensor, chosen: Tensor, size: int
) -> Tensor:
    """Patches (M, W, W) of squares and what is chosen for them (B, N, sides, ...)."""
    batch = len(pyramid)
    image = torch.arange(batch, device=pyramid.device) * pyramid.shape[1]
    image = image[:, None, None].expand(squares.shape[:3]).flatten()
    squares, chosen = squares.flatten(0, 2), chosen.flatten(0, 2)
    flat = pyramid.flatten()
    steps = torch.arange(size, device=pyramid.device, dtype=torch.float64) - (size - 1) / 2
    parts = []
    step = max(1, MOST_AT_ONCE // size**2)
    for begin in range(0, len(squares), step):
        part = slice(begin, begin + step)
        x, y, c, s = squares[part, :, None, None].unbind(1)
        level, samples = chosen[part].unbind(1)
        start = (image[part] + levels.starts[level])[:, None, None]
        height, width = (t[level][:, None, None] for t in (levels.heights, levels.widths))
        total = torch.zeros((len(x), size, size), device=pyramid.device)
        most = int(samples.max())
        many = samples[:, None, None]
        for sample in range(most * most):
            i, j = sample % most, sample // most
            u = steps + (i + 0.5) / many - 0.5
            v = steps[:, None] + (j + 0.5) / many - 0.5
            px = (x + c * u - s * v).clamp_min(0).minimum(width - 1)
            py = (y + s * u + c * v).clamp_min(0).minimum(height - 1)
            left, top = px.floor().long(), py.floor().long()
            fx, fy = (px - left).float(), (py - top).float()
            right, below = (left + 1).minimum(width - 1), (top + 1).minimum(height - 1)
            top, below = start + top * width, start + below * width
            upper = torch.lerp(flat[top + left], flat[top + right], fx)
            lower = torch.lerp(flat[below + left], flat[below + right], fx)
            wanted = (i < many) & (j < many)
            total += torch.lerp(upper, lower, fy) * wanted
        parts.append(total / (many * many))
    return torch.cat(parts) if parts else pyramid.new_empty((0, size, size))

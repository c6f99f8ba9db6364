"""The octaves of batches of images, and the extrema in them, for :mod:`.dog_torch`.

All octaves of an image lie one after the other in its memory.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d, max_pool2d

from mkdesc._support.launching import blocks, launches
from mkdesc.images.detectors.dog_reference import (
    BORDER,
    LAYERS,
    count_octaves,
    gaussian,
    layer_sigmas,
)
from mkdesc.images.detectors.padded_torch import starts_of

#: Differences of the images of an octave.
DIFFERENCES = LAYERS + 2
#: Pixels and squares per program of the kernels.
PIXELS, CELLS = 512, 256


def sizes_of(shape: tuple[int, int]) -> list[tuple[int, int]]:
    """Heights and widths of octaves."""
    return [
        (2 * shape[0] // 2**octave, 2 * shape[1] // 2**octave)
        for octave in range(count_octaves(*shape))
    ]


@lru_cache(maxsize=32)
def _half(sigma: float, device: torch.device) -> Tensor:
    return torch.tensor([float(tap) for tap in gaussian(sigma)], device=device)


@lru_cache(maxsize=64)
def _mirrored(length: int, reach: int, device: torch.device) -> Tensor:
    """Indices (length + 2 reach,) of a line that is mirrored beyond its ends."""
    index = np.abs(np.arange(-reach, length + reach)) % max(2 * length - 2, 1)
    return torch.from_numpy(np.minimum(index, max(2 * length - 2, 1) - index)
                            .clip(0, length - 1)).to(device)  # fmt: skip


def blurred(images: Tensor, sigma: float, out: Tensor | None = None) -> Tensor:
    """Images (B, H, W) by a separable filter; beyond the border they are mirrored."""
    half = _half(sigma, images.device)
    reach = len(half) - 1
    batch, height, width = images.shape
    out = torch.empty_like(images) if out is None else out
    if launches(images):
        from mkdesc.images.detectors.dog_triton import blur

        images = images if images[0].is_contiguous() else images.contiguous()
        between = torch.empty((batch, height, width), device=images.device)
        n = batch * height * width
        for source, target, down in ((images, between, True), (between, out, False)):
            blur[(blocks(n, PIXELS),)](
                source, half, target, n, height, width, source.stride(0), target.stride(0),
                REACH=reach, DOWN=down, BLOCK=PIXELS,
            )  # fmt: skip
        return out
    taps = torch.cat([half[1:].flip(0), half])
    wide = images.index_select(1, _mirrored(height, reach, images.device))
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        wide = conv2d(wide[:, None], taps.view(1, 1, -1, 1))[:, 0]
        wide = wide.index_select(2, _mirrored(width, reach, images.device))
        out.copy_(conv2d(wide[:, None], taps.view(1, 1, 1, -1))[:, 0])
    return out


def doubled(images: Tensor) -> Tensor:
    """Twice the size: pixel 2 i is pixel i, and those between are means."""
    for axis in (1, 2):
        length = images.shape[axis]
        after = torch.cat(
            [images.narrow(axis, 1, length - 1), images.narrow(axis, length - 1, 1)], axis
        )
        images = torch.stack([images, (images + after) / 2], axis + 1).flatten(axis, axis + 1)
    return images


class Octaves(NamedTuple):
    """The octaves of B images, each one's pixels one after the other.

    Attributes
    ----------
    layers
        (B, 3 P): the images that extrema are of.
    dogs
        (B, 5 P): differences of images.
    """

    layers: Tensor
    dogs: Tensor


def octaves_of(images: Tensor, sigma: float, sizes: list[tuple[int, int]]) -> Octaves:
    """The octaves of images (B, H, W), of these sizes."""
    batch = len(images)
    starts = starts_of([height * width for height, width in sizes])
    layers = torch.empty((batch, LAYERS * starts[-1]), device=images.device)
    dogs = torch.empty((batch, DIFFERENCES * starts[-1]), device=images.device)
    first, *others = layer_sigmas(sigma)
    image = blurred(doubled(images.float()), first)
    for (height, width), start, end in zip(sizes, starts, starts[1:], strict=False):
        kept = layers[:, LAYERS * start : LAYERS * end].view(batch, LAYERS, height, width)
        differ = dogs[:, DIFFERENCES * start : DIFFERENCES * end]
        differ = differ.view(batch, DIFFERENCES, height, width)
        for number, more in enumerate(others):
            out = kept[:, number] if number < LAYERS else None
            blurrier = blurred(image, more, out)
            torch.sub(blurrier, image, out=differ[:, number])
            image = blurrier
        image = kept[:, LAYERS - 1, : height // 2 * 2 : 2, : width // 2 * 2 : 2].contiguous()
    return Octaves(layers, dogs)


def extrema_of(
    dogs: Tensor, sizes: list[tuple[int, int]], threshold: float
) -> tuple[Tensor, Tensor]:
    """The strongest extremum of each square of 2 x 2 px of all layers of all octaves.

    Returns its strength (B, C), 0 if there is none, and its pixel in the layer.
    """
    starts = starts_of([DIFFERENCES * height * width for height, width in sizes])
    if not launches(dogs):
        found = [
            _of_one(dogs[:, start:end].view(-1, DIFFERENCES, *size), threshold)
            for size, start, end in zip(sizes, starts, starts[1:], strict=False)
        ]
        values, pixels = (torch.cat(each, 1) for each in zip(*found, strict=True))
        return values, pixels
    from mkdesc.images.detectors.dog_triton import find_extrema

    cells = [(blocks(height, 2), blocks(width, 2)) for height, width in sizes]
    firsts = starts_of([LAYERS * down * across for down, across in cells])
    values = dogs.new_empty((len(dogs), firsts[-1]))
    pixels = torch.empty_like(values, dtype=torch.int64)
    for size, start, (down, across), first in zip(sizes, starts, cells, firsts, strict=False):
        n = len(dogs) * LAYERS * down * across
        find_extrema[(blocks(n, CELLS),)](
            dogs[:, start:], values, pixels, n, *size, down, across, dogs.shape[1], firsts[-1],
            first, threshold, LAYERS=LAYERS, BORDER=BORDER, BLOCK=CELLS,
        )  # fmt: skip
    return values, pixels


def _of_one(dogs: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """The same of one octave (B, 5, H, W), by plain operations."""
    inner = dogs[:, 1:-1]
    high = max_pool2d(dogs, 3, 1, 1)
    low = -max_pool2d(-dogs, 3, 1, 1)
    most = torch.maximum(torch.maximum(high[:, :-2], high[:, 1:-1]), high[:, 2:])
    least = torch.minimum(torch.minimum(low[:, :-2], low[:, 1:-1]), low[:, 2:])
    found = ((inner > threshold) & (inner >= most)) | ((inner < -threshold) & (inner <= least))
    for axis in (2, 3):
        found.narrow(axis, 0, BORDER).zero_()
        found.narrow(axis, found.shape[axis] - BORDER, BORDER).zero_()
    strength = torch.where(found, inner.abs(), 0)
    values, pixels = max_pool2d(strength, 2, ceil_mode=True, return_indices=True)
    return values.flatten(1), pixels.flatten(1)

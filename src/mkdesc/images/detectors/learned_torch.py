"""The operations of the learned detector with PyTorch; its network, which can be taught.

Functions take batches (B, H, W) of images in [0, 1]; :mod:`.learned_reference` says what is meant,
and :mod:`.learned_padded_torch` finds keypoints. Kernels of :mod:`.learned_triton` take the place
of plain operations on CUDA.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, interpolate, max_pool2d, pad

from mkdesc._support.launching import blocks, launches
from mkdesc.images.detectors.learned_reference import (
    ANGLE_RADIUS,
    ANGLE_SIGMA,
    NORMALISED_RADIUS,
    SOFTENING,
    level_sizes,
)
from mkdesc.images.detectors.learned_weights import Convolution, Weights
from mkdesc.images.detectors.padded_torch import starts_of

#: Pixels per program of a kernel.
PIXELS, CONVOLVED, CELLS = 512, 512, 128
#: One maximum at most is in a square of so many pixels.
CELL = 3


class Scorer(nn.Module):
    """Scores (B, H - 2 m, W - 2 m) of images (B, H, W): a margin of m pixels has none."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.margin = weights.margin
        self.convs = nn.ModuleList()
        for weight, bias in weights.layers:
            conv = nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2])
            with torch.no_grad():
                conv.weight.copy_(torch.from_numpy(weight.copy()))
                conv.bias.copy_(torch.from_numpy(bias.copy()))
            self.convs.append(conv)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of images."""
        x = normalised(images)[:, None]
        for i, conv in enumerate(self.convs):
            x = conv(x.relu() if i else x)
        return x[:, 0]

    def layers(self) -> tuple[Convolution, ...]:
        """The weights as they are now."""
        return tuple(
            Convolution(
                conv.weight.detach().cpu().numpy().copy(),
                conv.bias.detach().cpu().numpy().copy(),
            )
            for conv in self.convs
        )


def normalised(images: Tensor) -> Tensor:
    """Images minus their means, over their deviations, in 31 x 31 px (what is inside of them)."""

    def mean(values: Tensor) -> Tensor:
        side, r = 2 * NORMALISED_RADIUS + 1, NORMALISED_RADIUS
        rows = avg_pool2d(values[:, None], (side, 1), 1, (r, 0), count_include_pad=False)
        return avg_pool2d(rows, (1, side), 1, (0, r), count_include_pad=False)[:, 0]

    centre = mean(images)
    deviation = (mean(images * images) - centre * centre).clamp_min(0).sqrt()
    return (images - centre) / (deviation + SOFTENING)


def pyramid(images: Tensor, levels: int, least: int) -> list[Tensor]:
    """Images (B, H, W) in ever smaller sizes, each made of the one before."""
    made: list[Tensor] = []
    for size in level_sizes(tuple(images.shape[1:]), levels, least):
        if made:
            images = interpolate(
                images[:, None], size, mode="bilinear", align_corners=False, antialias=True
            )[:, 0]
        made.append(images)
    return made


def gaussian(sigma: float, radius: int, device: torch.device) -> Tensor:
    """Taps (2 radius + 1,) of a Gaussian, that add up to 1."""
    offsets = torch.arange(-radius, radius + 1, dtype=torch.float32, device=device)
    taps = torch.exp(-0.5 * (offsets / sigma) ** 2)
    return taps / taps.sum()


def mean_gradients(images: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient (x and y, each (B, H, W)) around every pixel, in a Gaussian of 4 px."""
    wide = pad(images[:, None], (1, 1, 1, 1), mode="replicate")
    across = (wide[:, :, 1:-1, 2:] - wide[:, :, 1:-1, :-2]) / 2
    down = (wide[:, :, 2:, 1:-1] - wide[:, :, :-2, 1:-1]) / 2
    taps = gaussian(ANGLE_SIGMA, ANGLE_RADIUS, images.device)
    both, r = torch.cat([across, down], 1), ANGLE_RADIUS
    rows, columns = taps.expand(2, 1, 1, -1), taps[:, None].expand(2, 1, -1, -1)
    both = conv2d(pad(both, (r, r, 0, 0), mode="replicate"), rows, groups=2)
    both = conv2d(pad(both, (0, 0, r, r), mode="replicate"), columns, groups=2)
    return both[:, 0], both[:, 1]


def only_maxima(scores: Tensor) -> Tensor:
    """Scores (B, H, W) where they are larger than all others within 5 x 5 px, else -infinity."""
    height, width = scores.shape[1:]
    wide = pad(scores, (2, 2, 2, 2), value=-torch.inf)
    rows = [wide[:, k : k + height] for k in range(5)]
    without = torch.maximum(torch.maximum(rows[0], rows[1]), torch.maximum(rows[3], rows[4]))
    column = torch.maximum(without, rows[2])
    others = without[:, :, 2 : 2 + width]
    for k in (0, 1, 3, 4):
        others = torch.maximum(others, column[:, :, k : k + width])
    inner = torch.where(scores > others, scores, -torch.inf)[:, 1:-1, 1:-1]
    return pad(inner, (1, 1, 1, 1), value=-torch.inf)


def vertex(before: Tensor, middle: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
    """Where a parabola through three values has its top, from the middle one; how it bends."""
    bend = 2 * middle - before - after
    return (after - before) / (2 * bend), bend


def cells_of(size: tuple[int, int]) -> tuple[int, int]:
    """How many squares of 3 x 3 px cover a level, down and across; one maximum each, at most."""
    return blocks(size[0], CELL), blocks(size[1], CELL)


@lru_cache(maxsize=8)
def _scorer(weights: Weights, device: torch.device) -> Scorer:
    return Scorer(weights).to(device).eval().requires_grad_(False)


class Arranged(NamedTuple):
    """A layer as the kernel wants it: by eight channels."""

    weights: Tensor
    biases: Tensor
    coming: int
    side: int


@lru_cache(maxsize=8)
def _arranged(network: Weights, device: torch.device) -> list[Arranged]:
    layers = []
    for weight, bias in network.layers:
        out, coming, side, _ = weight.shape
        count = blocks(out, 8)
        padded = np.zeros((8 * count, coming, side, side), np.float32)
        padded[:out] = weight
        own = padded.reshape(count, 8, coming, side, side).transpose(0, 2, 3, 4, 1)
        biases = np.zeros(8 * count, np.float32)
        biases[:out] = bias
        layers.append(
            Arranged(
                torch.from_numpy(np.ascontiguousarray(own)).to(device),
                torch.from_numpy(biases).to(device),
                coming,
                side,
            )
        )
    return layers


def scores_of(images: Tensor, network: Weights) -> Tensor:
    """Scores (B, H - 2 m, W - 2 m) of a level (B, H, W)."""
    if not launches(images):
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            return _scorer(network, images.device)(images)
    from mkdesc.images.detectors import learned_triton as kernels

    images = images.contiguous()
    batch, height, width = images.shape
    n = images.numel()
    sums, squares, normal = (torch.empty_like(images) for _ in range(3))
    size = (n, height, width)
    wide = {"RADIUS": NORMALISED_RADIUS, "BLOCK": PIXELS}
    kernels.sum_columns[(blocks(n, PIXELS),)](images, sums, squares, *size, **wide)
    kernels.normalise[(blocks(n, PIXELS),)](
        images, sums, squares, normal, *size, SOFTENING, **wide
    )
    planes, stored = normal, 1
    layers = _arranged(network, images.device)
    for number, (weights, biases, coming, side) in enumerate(layers):
        last = number + 1 == len(layers)
        channels = 1 if last else 8 * len(weights)
        smaller = (batch, channels, height - side + 1, width - side + 1)
        target = images.new_empty(smaller)
        n = smaller[0] * smaller[2] * smaller[3]
        kernels.convolve[(blocks(n, CONVOLVED), len(weights))](
            planes, weights, biases, target, n, height, width,
            COMING=coming, STORED=stored, SIDE=side, RELU=number > 0, EIGHT=not last,
            BLOCK=CONVOLVED, num_warps=4,
        )  # fmt: skip
        planes, stored = target, channels
        height, width = smaller[2:]
    return planes[:, 0]


def cell_maxima(scores: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Of each cell of all levels, the score (B, C) of its maximum, and its pixel in the level."""
    if not launches(scores[0]):
        found = [max_pool2d(only_maxima(s), CELL, ceil_mode=True, return_indices=True)
                 for s in scores]  # fmt: skip
        values, pixels = zip(*found, strict=True)
        return (
            torch.cat([each.flatten(1) for each in values], 1),
            torch.cat([each.flatten(1) for each in pixels], 1),
        )
    from mkdesc.images.detectors.learned_triton import find_maxima

    cells = [cells_of((s.shape[1], s.shape[2])) for s in scores]
    starts = starts_of([down * across for down, across in cells])
    values = scores[0].new_empty((len(scores[0]), starts[-1]))
    pixels = torch.empty_like(values, dtype=torch.int64)
    for score, (down, across), start in zip(scores, cells, starts, strict=False):
        n = len(score) * down * across
        find_maxima[(blocks(n, CELLS),)](
            score, values, pixels, n, *score.shape[1:], down, across, starts[-1], start,
            BLOCK=CELLS,
        )  # fmt: skip
    return values, pixels

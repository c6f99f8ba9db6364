"""The learned detector with PyTorch: for GPUs, and to teach it.

Functions take batches (B, H, W) of images in [0, 1]; :mod:`.learned_reference` says what is meant.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, interpolate, pad

from mkdesc.images.detectors.learned_reference import (
    ANGLE_RADIUS,
    ANGLE_SIGMA,
    LEAST_BEND,
    NORMALISED_RADIUS,
    SOFTENING,
    Maxima,
    level_sizes,
    no_maxima,
)
from mkdesc.images.detectors.learned_weights import Convolution, Weights


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


def strict_maxima(scores: Tensor) -> Tensor:
    """Where scores (B, H, W) are larger than all others within 5 x 5 px."""
    height, width = scores.shape[1:]
    wide = pad(scores, (2, 2, 2, 2), value=-math.inf)
    largest = torch.ones_like(scores, dtype=torch.bool)
    for dy in range(5):
        for dx in range(5):
            if (dy, dx) != (2, 2):
                largest &= scores > wide[:, dy : dy + height, dx : dx + width]
    return largest


@lru_cache(maxsize=8)
def _scorer(weights: Weights, device: str) -> Scorer:
    return Scorer(weights).to(device).eval()


@torch.inference_mode()
def maxima(
    gray: NDArray[np.uint8], weights: Weights, levels: int, device: str
) -> tuple[list[Tensor], Maxima]:
    """The levels (H, W) of an image, and all maxima on them."""
    image = torch.tensor(gray, device=device).float()[None] / 255
    scorer, m = _scorer(weights, device), weights.margin
    images, found = pyramid(image, levels, 2 * m + 3), []
    for level, smaller in enumerate(images):
        score = scorer(smaller)
        largest = strict_maxima(score)[0]
        largest[[0, -1]] = False
        largest[:, [0, -1]] = False
        row, column = largest.nonzero().unbind(1)
        wide = score[0].double()
        middle = wide[row, column]
        x, bend_x = vertex(wide[row, column - 1], middle, wide[row, column + 1])
        y, bend_y = vertex(wide[row - 1, column], middle, wide[row + 1, column])
        which = torch.full_like(row, level)
        parts = (which, column + m, row + m, column + x + m, row + y + m, middle.float())
        bent = torch.minimum(bend_x, bend_y) > LEAST_BEND
        found.append([part[bent] for part in parts])
    if not found:
        return [], no_maxima()
    every = (torch.cat(parts).cpu().numpy() for parts in zip(*found, strict=True))
    return [smaller[0] for smaller in images], Maxima(*every)


def vertex(before: Tensor, middle: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
    """Where a parabola through three values has its top, from the middle one; how it bends."""
    bend = 2 * middle - before - after
    return (after - before) / (2 * bend), bend


@torch.inference_mode()
def angles(images: list[Tensor], found: Maxima) -> NDArray[np.float64]:
    """Angles (N,) of maxima, in degrees, clockwise as seen in the image."""
    out = np.zeros(len(found.level))
    for level, image in enumerate(images):
        here = np.flatnonzero(found.level == level)
        at = (torch.from_numpy(found.row[here]), torch.from_numpy(found.column[here]))
        across, down = (g[0].cpu()[at].double().numpy() for g in mean_gradients(image[None]))
        out[here] = np.degrees(np.arctan2(down, across)) % 360
    return out

"""The learned detector with PyTorch: for GPUs, and to teach it.

Functions take batches (B, H, W) of images in [0, 1]; :mod:`.learned_reference` says what is meant.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, interpolate, pad

from mkdesc.images.detectors.learned_weights import Convolution, Weights

__all__ = ["Scorer", "gaussian", "level_sizes", "mean_gradients", "pyramid", "strict_maxima"]

#: Half the side of the square in which an image is normalised, and what is added to its deviation.
NORMALISED_RADIUS, SOFTENING = 15, 0.02
#: Sigma of the Gaussian in which gradients are averaged for a keypoint's angle, and its radius.
ANGLE_SIGMA, ANGLE_RADIUS = 4.0, 12


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
                conv.bias.copy_(torch.from_numpy(bias.copy()))  # type: ignore[union-attr]
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
                conv.weight.detach().cpu().numpy().copy(),  # type: ignore[union-attr,operator]
                conv.bias.detach().cpu().numpy().copy(),  # type: ignore[union-attr,operator]
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


def level_sizes(height: int, width: int, levels: int, least: int) -> list[tuple[int, int]]:
    """Heights and widths of the levels of a pyramid by 1 / sqrt 2; none smaller than ``least``."""
    sizes = [
        (round(height * 2 ** (-level / 2)), round(width * 2 ** (-level / 2)))
        for level in range(levels)
    ]
    return [size for size in sizes if min(size) >= least]


def pyramid(images: Tensor, levels: int, least: int) -> list[Tensor]:
    """Images (B, H, W) in ever smaller sizes, each made of the one before."""
    made: list[Tensor] = []
    for size in level_sizes(images.shape[1], images.shape[2], levels, least):
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
    both = torch.cat([across, down])
    r = ANGLE_RADIUS
    both = conv2d(pad(both, (r, r, 0, 0), mode="replicate"), taps.view(1, 1, 1, -1))
    both = conv2d(pad(both, (0, 0, r, r), mode="replicate"), taps.view(1, 1, -1, 1))
    return both[: len(images), 0], both[len(images) :, 0]


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

"""The learned detector for batches of images on a device, without waiting for it.

:mod:`.learned_reference` says what is meant, :mod:`.learned_torch` has the plain operations;
kernels of :mod:`.learned_triton` take their place on CUDA.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

from mkdesc._support.launching import blocks, launches
from mkdesc.images.detectors.learned_reference import (
    ANGLE_RADIUS,
    LEAST_BEND,
    NORMALISED_RADIUS,
    SOFTENING,
    angle_taps,
    level_sizes,
)
from mkdesc.images.detectors.learned_torch import Scorer, mean_gradients, pyramid, vertex
from mkdesc.images.detectors.learned_weights import Weights
from mkdesc.images.detectors.padded_torch import (
    PaddedKeypoints,
    choose_first,
    in_batches,
    one_a_place,
    padded,
    shown,
    starts_of,
    taken,
)

#: Pixels per program of a kernel.
PIXELS, CONVOLVED, CELLS = 512, 512, 128
#: Pixels of images that are looked at together: bounds the memory, some 100 bytes for each.
MOST_AT_ONCE = 1 << 24
#: One maximum at most is in a square of so many pixels.
CELL = 3


class Choice(NamedTuple):
    """Which of the maxima are wanted.

    Attributes
    ----------
    most
        How many keypoints of an image.
    maxima
        How many maxima to choose them from.
    sigma
        Of a keypoint of the first level.
    radius
        Pixels of the first level within which there is one keypoint; None: any number.
    coarser
        What a score counts more on the next coarser level.
    upright
        Whether angles are not wanted.
    """

    most: int
    maxima: int
    sigma: float
    radius: float | None
    coarser: float
    upright: bool


class Table(NamedTuple):
    """The levels of images of one size: numbers of each, (L,), on the device.

    Attributes
    ----------
    cells
        Where the squares of the next level begin.
    scores, images
        Where the scores and the pixels of the level begin.
    wide
        How many scores are in a row.
    heights, widths
        Of the level.
    down, across
        Pixels of the image for one of the level.
    factors, sigmas
        Of its scores and of its keypoints.
    taps
        (25,): weights of gradients.
    """

    cells: Tensor
    scores: Tensor
    images: Tensor
    wide: Tensor
    heights: Tensor
    widths: Tensor
    down: Tensor
    across: Tensor
    factors: Tensor
    sigmas: Tensor
    taps: Tensor


def _cells(size: tuple[int, int]) -> tuple[int, int]:
    return blocks(size[0], CELL), blocks(size[1], CELL)


@lru_cache(maxsize=32)
def _table(
    shape: tuple[int, int], levels: int, margin: int, choice: Choice, device: torch.device
) -> Table:
    sizes = level_sizes(shape, levels, 2 * margin + 3)
    inner = [(height - 2 * margin, width - 2 * margin) for height, width in sizes]
    cells = starts_of([down * across for down, across in map(_cells, inner)])

    def whole(numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=device)

    def real(numbers: list[float]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.float64, device=device)

    return Table(
        cells=whole(cells[1:]),
        scores=whole(starts_of([height * width for height, width in inner])[:-1]),
        images=whole(starts_of([height * width for height, width in sizes])[:-1]),
        wide=whole([width for _, width in inner]),
        heights=whole([height for height, _ in sizes]),
        widths=whole([width for _, width in sizes]),
        down=real([shape[0] / height for height, _ in sizes]),
        across=real([shape[1] / width for _, width in sizes]),
        factors=real([choice.coarser**level for level in range(len(sizes))]),
        sigmas=real([choice.sigma * 2 ** (level / 2) for level in range(len(sizes))]),
        taps=torch.from_numpy(angle_taps()).to(device),
    )


def detect(
    images: Tensor, weights: Weights, levels: int, choice: Choice, masks: Tensor | None = None
) -> PaddedKeypoints:
    """Keypoints of images (B, H, W) uint8 on any device.

    Parameters
    ----------
    images
        (B, H, W) uint8.
    weights
        The network.
    levels
        Of the pyramid.
    choice
        Which keypoints are wanted.
    masks
        (B, H, W): keypoints are looked for where it is not zero; None: everywhere.
    """

    def some(images: Tensor, masks: Tensor | None) -> PaddedKeypoints:
        return _detect(images, weights, levels, choice, masks)

    shape = (images.shape[1], images.shape[2])
    if not len(images) or not level_sizes(shape, levels, 2 * weights.margin + 3):
        return padded(images, choice.most)
    return in_batches(some, images, masks, MOST_AT_ONCE)


def _detect(
    images: Tensor, weights: Weights, levels: int, choice: Choice, masks: Tensor | None
) -> PaddedKeypoints:
    shape = (images.shape[1], images.shape[2])
    table = _table(shape, levels, weights.margin, choice, images.device)
    made = pyramid(images.float() * (1 / 255), levels, 2 * weights.margin + 3)
    scores = [_scores(level, weights) for level in made]
    values, pixels = _maxima(scores)
    flat = torch.cat([score.flatten(1) for score in scores], 1)
    # All maxima are refined, which tells those that are mere rounding.
    number = torch.arange(values.shape[1], device=values.device)
    level = torch.bucketize(number, table.cells, right=True)
    wide, margin = table.wide[level], weights.margin
    at = table.scores[level] + pixels
    middle = values.clamp_min(-1e30).double()
    inner = at.clamp(1, flat.shape[1] - 2)
    to_x, bend_x = vertex(taken(flat, inner - 1).double(), middle, taken(flat, inner + 1).double())
    above, below = (at - wide).clamp_min(0), (at + wide).clamp_max(flat.shape[1] - 1)
    to_y, bend_y = vertex(taken(flat, above).double(), middle, taken(flat, below).double())
    there = torch.isfinite(values) & (torch.minimum(bend_x, bend_y) > LEAST_BEND)
    row, column = pixels // wide + margin, pixels % wide + margin
    x = (column + to_x + 0.5) * table.across[level] - 0.5
    y = (row + to_y + 0.5) * table.down[level] - 0.5
    if masks is not None:
        there &= shown(x.round(), y.round(), masks)
    factor = table.factors[level].float()
    weighed = torch.where(values > 0, values * factor, values / factor)
    weighed = torch.where(there, weighed, -torch.inf)
    best, which = weighed.topk(min(choice.maxima, weighed.shape[1]), dim=1)
    x, y, level = taken(x, which), taken(y, which), level[which]
    kept = best > -torch.inf
    if choice.radius is not None:
        radius = choice.radius / choice.sigma * table.sigmas[level]
        kept = one_a_place(x.float(), y.float(), radius.float(), kept)
    chosen, counts = choose_first(kept, choice.most)
    x, y, level, best = (taken(each, chosen) for each in (x, y, level, best))
    angle = torch.zeros_like(x)
    if not choice.upright:
        which = taken(which, chosen)
        angle = _angles(made, table, level, taken(row, which), taken(column, which))
    points = torch.stack([x, y, table.sigmas[level], angle], -1).float()
    return padded(images, choice.most, points, best, counts)


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


def _scores(images: Tensor, network: Weights) -> Tensor:
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


def _maxima(scores: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Of each cell of all levels, the score (B, C) of its maximum, and its pixel in the level."""
    if not launches(scores[0]):
        found = [max_pool2d(_only_maxima(s), CELL, ceil_mode=True, return_indices=True)
                 for s in scores]  # fmt: skip
        values, pixels = zip(*found, strict=True)
        return (
            torch.cat([each.flatten(1) for each in values], 1),
            torch.cat([each.flatten(1) for each in pixels], 1),
        )
    from mkdesc.images.detectors.learned_triton import find_maxima

    cells = [_cells((s.shape[1], s.shape[2])) for s in scores]
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


def _only_maxima(scores: Tensor) -> Tensor:
    """Scores (B, H, W) where they are larger than all others within 5 x 5 px, else -infinity."""
    height, width = scores.shape[1:]
    wide = pad(scores, (2, 2, 2, 2), value=-torch.inf)
    rows = [wide[:, k : k + height] for k in range(5)]
    without = torch.maximum(torch.maximum(rows[0], rows[1]), torch.maximum(rows[3], rows[4]))
    column = torch.maximum(without, rows[2])
    others = without[:, :, 2 : 2 + width]
    for k in (0, 1, 3, 4):
        others = torch.maximum(others, column[:, :, k : k + width])
    largest = scores > others
    largest[:, :1] = largest[:, -1:] = False
    largest[:, :, :1] = largest[:, :, -1:] = False
    return torch.where(largest, scores, -torch.inf)


def _angles(
    made: list[Tensor], table: Table, level: Tensor, row: Tensor, column: Tensor
) -> Tensor:
    """Angles (B, N) of keypoints, in degrees, clockwise as seen in the image."""
    if launches(row):
        from mkdesc.images.detectors import learned_triton as kernels

        flat = torch.cat([each.flatten(1) for each in made], 1)
        batch, n = row.shape
        sums = flat.new_empty((batch, n, 2))
        kernels.mean_gradients[(n, batch)](
            flat, table.images, table.heights, table.widths, level, row, column, table.taps,
            sums, n, flat.shape[1], RADIUS=ANGLE_RADIUS, WIDE=32,
        )  # fmt: skip
        across, down = sums.unbind(-1)
    else:
        both = [mean_gradients(each) for each in made]
        at = table.images[level] + row * table.widths[level] + column
        across, down = (
            taken(torch.cat([pair[k].flatten(1) for pair in both], 1), at) for k in (0, 1)
        )
    return torch.rad2deg(torch.atan2(down.double(), across.double())) % 360

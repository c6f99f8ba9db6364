"""The learned detector with PyTorch: batches of images, on a device that is not waited for.

:mod:`.learned_reference` says what is meant, :mod:`.learned_torch` has the plain operations;
kernels of :mod:`.learned_triton` take their place on CUDA.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mkdesc._support.launching import launches
from mkdesc.images.detectors.learned_reference import (
    ANGLE_RADIUS,
    COARSER,
    LEAST_BEND,
    LEVELS,
    SIGMA,
    Maxima,
    angle_taps,
    candidates,
    level_sizes,
    no_maxima,
)
from mkdesc.images.detectors.learned_torch import (
    cell_maxima,
    cells_of,
    mean_gradients,
    pyramid,
    scores_of,
    vertex,
)
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
from mkdesc.images.detectors.places import RADIUS

#: Pixels of images that are looked at together: bounds the memory, some 100 bytes for each.
MOST_AT_ONCE = 1 << 24


class Table(NamedTuple):
    """The levels of images of one size: numbers of each, (L,), on the device.

    Attributes
    ----------
    cells
        Where the squares of the next level begin.
    scores, images
        Where the scores and the pixels of the level begin.
    heights, widths
        Of the level.
    taps
        (25,): weights of gradients.
    """

    cells: Tensor
    scores: Tensor
    images: Tensor
    heights: Tensor
    widths: Tensor
    taps: Tensor


class Peaks(NamedTuple):
    """The maximum of each cell of the scores of B images, C on all levels.

    Attributes
    ----------
    level
        (C,) int64.
    column, row
        (B, C) int64: pixels of the level.
    x, y
        (B, C) float64: places, in pixels of the level.
    score
        (B, C) float32: -infinity where a cell has no maximum.
    """

    level: Tensor
    column: Tensor
    row: Tensor
    x: Tensor
    y: Tensor
    score: Tensor


@lru_cache(maxsize=32)
def _table(sizes: tuple[tuple[int, int], ...], margin: int, device: torch.device) -> Table:
    inner = [(height - 2 * margin, width - 2 * margin) for height, width in sizes]
    cells = starts_of([down * across for down, across in map(cells_of, inner)])

    def whole(numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=device)

    return Table(
        cells=whole(cells[1:]),
        scores=whole(starts_of([height * width for height, width in inner])[:-1]),
        images=whole(starts_of([height * width for height, width in sizes])[:-1]),
        heights=whole([height for height, _ in sizes]),
        widths=whole([width for _, width in sizes]),
        taps=torch.from_numpy(angle_taps()).to(device),
    )


def _table_of(made: list[Tensor], margin: int) -> Table:
    """The table of the levels (B, H, W) of images."""
    return _table(tuple((len(one[0]), len(one[0, 0])) for one in made), margin, made[0].device)


@torch.inference_mode()
def maxima(
    gray: NDArray[np.uint8], weights: Weights, levels: int, device: str
) -> tuple[list[Tensor], Maxima]:
    """The levels (1, H, W) of an image, and all maxima on them, as of the reference."""
    image = torch.tensor(gray, device=device).float()[None] * (1 / 255)
    made = pyramid(image, levels, 2 * weights.margin + 3)
    if not made:
        return [], no_maxima()
    level, *others = _find_peaks(made, weights)
    there = others[-1][0] > -torch.inf
    parts = (level[there], *(each[0, there] for each in others))
    return [one[0] for one in made], Maxima(*(part.cpu().numpy() for part in parts))


@torch.inference_mode()
def angles(images: list[Tensor], found: Maxima) -> NDArray[np.float64]:
    """Angles (N,) of maxima on levels (H, W), in degrees, clockwise as seen in the image."""
    if not images:
        return np.empty(0)
    made = [image[None] for image in images]
    at = (torch.from_numpy(part[None]) for part in (found.level, found.row, found.column))
    degrees = _angles(made, _table_of(made, 0), *(part.to(images[0].device) for part in at))
    return np.asarray(degrees[0].cpu().numpy())


def detect(
    images: Tensor,
    weights: Weights,
    n: int,
    masks: Tensor | None = None,
    *,
    repeats: bool = False,
    upright: bool = False,
) -> PaddedKeypoints:
    """Keypoints of images (B, H, W) on any device.

    Parameters
    ----------
    images
        (B, H, W) uint8, or float32 in [0, 1].
    weights
        The network.
    n
        How many keypoints of an image, at most.
    masks
        (B, H, W): keypoints are looked for where it is not zero; None: everywhere.
    repeats
        Whether to keep keypoints of several levels that are of one place.
    upright
        Whether angles are not wanted.
    """

    def some(images: Tensor, masks: Tensor | None) -> PaddedKeypoints:
        return _detect(images, weights, n, masks, repeats, upright)

    shape = (images.shape[1], images.shape[2])
    if not len(images) or not level_sizes(shape, LEVELS, 2 * weights.margin + 3):
        return padded(images, n)
    return in_batches(some, images, masks, MOST_AT_ONCE)


def _detect(
    images: Tensor, weights: Weights, n: int, masks: Tensor | None, repeats: bool, upright: bool
) -> PaddedKeypoints:
    gray = images * (1 / 255) if images.dtype == torch.uint8 else images
    made = pyramid(gray, LEVELS, 2 * weights.margin + 3)
    table, peaks = _table_of(made, weights.margin), _find_peaks(made, weights)
    level, score = peaks.level, peaks.score
    x = (peaks.x + 0.5) * (images.shape[2] / table.widths.double())[level] - 0.5
    y = (peaks.y + 0.5) * (images.shape[1] / table.heights.double())[level] - 0.5
    factor = (COARSER ** level.double()).float()
    score = torch.where(score > 0, score * factor, score / factor)
    if masks is not None:
        score = torch.where(shown(x.round(), y.round(), masks), score, -torch.inf)
    best, which = score.topk(min(n if repeats else candidates(n), score.shape[1]), dim=1)
    x, y, level = taken(x, which), taken(y, which), level[which]
    octaves = level.double() / 2
    kept = best > -torch.inf
    if not repeats:
        radius = RADIUS * torch.exp2(octaves).float()
        kept = one_a_place(x.float(), y.float(), radius, kept)
    chosen, counts = choose_first(kept, n)
    x, y, level, octaves, best = (taken(each, chosen) for each in (x, y, level, octaves, best))
    angle = torch.zeros_like(x)
    if not upright:
        which = taken(which, chosen)
        angle = _angles(made, table, level, taken(peaks.row, which), taken(peaks.column, which))
    points = torch.stack([x, y, SIGMA * torch.exp2(octaves), angle], -1).float()
    return padded(images, n, points, best, counts)


def _find_peaks(made: list[Tensor], weights: Weights) -> Peaks:
    """The maxima on the levels (B, H, W) of images."""
    table, margin = _table_of(made, weights.margin), weights.margin
    scores = [scores_of(level, weights) for level in made]
    values, pixels = cell_maxima(scores)
    flat = torch.cat([score.flatten(1) for score in scores], 1)
    # All maxima are refined, which tells those that are mere rounding.
    number = torch.arange(values.shape[1], device=values.device)
    level = torch.bucketize(number, table.cells, right=True)
    wide = (table.widths - 2 * margin)[level]
    at = table.scores[level] + pixels
    middle = values.clamp_min(-1e30).double()
    inner = at.clamp(1, flat.shape[1] - 2)
    to_x, bend_x = vertex(taken(flat, inner - 1).double(), middle, taken(flat, inner + 1).double())
    above, below = (at - wide).clamp_min(0), (at + wide).clamp_max(flat.shape[1] - 1)
    to_y, bend_y = vertex(taken(flat, above).double(), middle, taken(flat, below).double())
    there = torch.isfinite(values) & (torch.minimum(bend_x, bend_y) > LEAST_BEND)
    row, column = pixels // wide + margin, pixels % wide + margin
    score = torch.where(there, values, -torch.inf)
    return Peaks(level, column, row, column + to_x, row + to_y, score)


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

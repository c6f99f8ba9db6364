"""SIFT's blobs for batches of images on a device, without waiting for it.

:mod:`.dog_reference` says what is computed. Of all extrema as many are refined as there is room
for, the strongest; all octaves of an image lie one after the other in its memory.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mkdesc._support.launching import blocks, launches
from mkdesc.images.detectors.dog_octaves_torch import (
    DIFFERENCES,
    extrema_of,
    octaves_of,
    sizes_of,
)
from mkdesc.images.detectors.dog_reference import BINS, BORDER, LAYERS, STEPS, first_threshold
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

#: Pixels of images that are looked at together: bounds the memory, some 400 bytes for each.
MOST_AT_ONCE = 1 << 24


class Choice(NamedTuple):
    """Which blobs are wanted: as :class:`~mkdesc.images.detectors.dog.Dog` has it.

    Attributes
    ----------
    most
        How many keypoints of an image.
    extrema, blobs
        How many extrema to refine, and how many blobs to choose from.
    radius
        Pixels within which there is one keypoint.
    upright
        Whether angles are not wanted.
    contrast, edge, sigma
        As OpenCV's.
    """

    most: int
    extrema: int
    blobs: int
    radius: float
    upright: bool
    contrast: float
    edge: float
    sigma: float


class Table(NamedTuple):
    """The octaves of images of one size: numbers of each, (O,), on the device.

    Attributes
    ----------
    cells
        Where the squares of the next octave begin.
    starts
        Where its pixels would begin if every octave had one image.
    heights, widths
        Of the octave.
    factors
        Pixels of the photograph for one of the octave.
    rows, columns
        Steps (K,) from the middle of the largest square in which directions are looked at.
    """

    cells: Tensor
    starts: Tensor
    heights: Tensor
    widths: Tensor
    factors: Tensor
    rows: Tensor
    columns: Tensor


@lru_cache(maxsize=32)
def _table(shape: tuple[int, int], sigma: float, device: torch.device) -> Table:
    sizes = sizes_of(shape)
    cells = starts_of([LAYERS * blocks(height, 2) * blocks(width, 2) for height, width in sizes])
    reach = round(4.5 * sigma * 2 ** ((LAYERS + 0.5) / LAYERS)) + 1
    steps = np.arange(-reach, reach + 1)

    def whole(numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=device)

    return Table(
        cells=whole(cells[1:]),
        starts=whole(starts_of([height * width for height, width in sizes])[:-1]),
        heights=whole([height for height, _ in sizes]),
        widths=whole([width for _, width in sizes]),
        factors=torch.tensor([0.5 * 2.0**octave for octave in range(len(sizes))],
                             dtype=torch.float64, device=device),
        rows=whole(np.repeat(steps, len(steps)).tolist()),
        columns=whole(np.tile(steps, len(steps)).tolist()),
    )  # fmt: skip


class Blobs(NamedTuple):
    """Extrema (B, M): octave, layer and pixel, how far they are from it, and their contrast."""

    octave: Tensor
    layer: Tensor
    row: Tensor
    column: Tensor
    to_layer: Tensor
    to_row: Tensor
    to_column: Tensor
    contrast: Tensor
    good: Tensor

    def take(self, indices: Tensor) -> Blobs:
        """Some of each image."""
        return Blobs._make(taken(values, indices) for values in self)


def detect(images: Tensor, choice: Choice, masks: Tensor | None = None) -> PaddedKeypoints:
    """Blobs of images (B, H, W) uint8 on any device.

    Parameters
    ----------
    images
        (B, H, W) uint8.
    choice
        Which keypoints are wanted.
    masks
        (B, H, W): keypoints are looked for where it is not zero; None: everywhere.
    """

    def some(images: Tensor, masks: Tensor | None) -> PaddedKeypoints:
        return _detect(images, choice, masks)

    if not len(images) or 2 * min(images.shape[1:]) <= 2 * BORDER:
        return padded(images, choice.most)
    return in_batches(some, images, masks, MOST_AT_ONCE)


def _detect(images: Tensor, choice: Choice, masks: Tensor | None) -> PaddedKeypoints:
    shape = (images.shape[1], images.shape[2])
    sizes = [size for size in sizes_of(shape) if min(size) > 2 * BORDER]
    table = _table(shape, choice.sigma, images.device)
    octaves = octaves_of(images, choice.sigma, sizes)
    values, pixels = extrema_of(octaves.dogs, sizes, first_threshold(choice.contrast))
    strength, which = values.topk(min(choice.extrema, values.shape[1]), dim=1)
    octave = torch.bucketize(which, table.cells, right=True)
    width = table.widths[octave]
    before = torch.cat([table.cells.new_zeros(1), table.cells])[octave]
    each = ((table.heights[octave] + 1) // 2) * ((width + 1) // 2)
    layer = (which - before) // each + 1
    pixel = taken(pixels, which)
    row, column = pixel // width, pixel % width
    blobs = _refined(octaves.dogs, table, octave, layer, row, column, strength > 0, choice)
    factor = table.factors[octave]
    x, y = (blobs.column + blobs.to_column) * factor, (blobs.row + blobs.to_row) * factor
    scale = choice.sigma * 2 ** ((blobs.layer + blobs.to_layer) / LAYERS)
    good = blobs.good
    if masks is not None:
        good &= shown((x + 0.5).floor(), (y + 0.5).floor(), masks)
    contrast = torch.where(good, blobs.contrast, -1)
    contrast, order = contrast.topk(min(choice.blobs, contrast.shape[1]), dim=1)
    x, y, scale, factor = (taken(each, order) for each in (x, y, scale, factor))
    reach = torch.full_like(x, choice.radius).float()
    kept = one_a_place(x.float(), y.float(), reach, contrast >= 0)
    chosen, counts = choose_first(kept, choice.most)
    x, y, scale, factor, contrast = (
        taken(each, chosen) for each in (x, y, scale, factor, contrast)
    )
    angle = torch.zeros_like(x)
    if not choice.upright:
        these = blobs.take(taken(order, chosen))
        angle = _angles(octaves.layers, table, these, scale)
    points = torch.stack([x, y, scale * factor, angle], -1).float()
    return padded(images, choice.most, points, contrast.float(), counts)


def _refined(
    dogs: Tensor,
    table: Table,
    octave: Tensor,
    layer: Tensor,
    row: Tensor,
    column: Tensor,
    good: Tensor,
    choice: Choice,
) -> Blobs:
    """Where the parabola through the neighbours has its extremum, if it is a blob (section 4)."""
    height, width = table.heights[octave], table.widths[octave]
    plane, start = height * width, DIFFERENCES * table.starts[octave]
    moving = good
    done = torch.zeros_like(good)
    zero = torch.zeros_like(row, dtype=torch.float64)
    x, y, s, contrast = zero, zero, zero, zero
    for _ in range(STEPS):
        at = start + layer * plane + row * width + column
        at = torch.where(moving, at, start + plane + width + 1)

        def near(
            dl: int, dr: int, dc: int,
            at: Tensor = at, plane: Tensor = plane, width: Tensor = width,
        ) -> Tensor:  # fmt: skip
            return taken(dogs, at + dl * plane + dr * width + dc).double()

        value = near(0, 0, 0)
        right, left, below, above = near(0, 0, 1), near(0, 0, -1), near(0, 1, 0), near(0, -1, 0)
        coarser, finer = near(1, 0, 0), near(-1, 0, 0)
        dx, dy, ds = (right - left) / 2, (below - above) / 2, (coarser - finer) / 2
        dxx, dyy = right + left - 2 * value, below + above - 2 * value
        dss = coarser + finer - 2 * value
        dxy = (near(0, 1, 1) - near(0, 1, -1) - near(0, -1, 1) + near(0, -1, -1)) / 4
        dxs = (near(1, 0, 1) - near(1, 0, -1) - near(-1, 0, 1) + near(-1, 0, -1)) / 4
        dys = (near(1, 1, 0) - near(1, -1, 0) - near(-1, 1, 0) + near(-1, -1, 0)) / 4
        # Cramer's rule for the three unknowns.
        a, b, c = dyy * dss - dys * dys, dxs * dys - dxy * dss, dxy * dys - dxs * dyy
        d, e, f = dxx * dss - dxs * dxs, dxy * dxs - dxx * dys, dxx * dyy - dxy * dxy
        determinant = dxx * a + dxy * b + dxs * c
        by_x = -(a * dx + b * dy + c * ds) / determinant
        by_y = -(b * dx + d * dy + e * ds) / determinant
        by_s = -(c * dx + e * dy + f * ds) / determinant
        far = torch.maximum(torch.maximum(by_x.abs(), by_y.abs()), by_s.abs())
        there = moving & (determinant != 0) & (far < 0.5)
        peak = (value + (dx * by_x + dy * by_y + ds * by_s) / 2).abs() / 255
        edge = (dxx + dyy) ** 2 * choice.edge < (choice.edge + 1) ** 2 * f
        x, y, s = (torch.where(there, new, old) for new, old in ((by_x, x), (by_y, y), (by_s, s)))
        contrast = torch.where(there, peak, contrast)
        done = done | (there & (peak * LAYERS >= choice.contrast) & (f > 0) & edge)
        moving = moving & (determinant != 0) & (far >= 0.5) & (far < 1e6)
        step_x, step_y, step_s = (
            torch.where(moving, step, 0).round().long() for step in (by_x, by_y, by_s)
        )
        column, row, layer = column + step_x, row + step_y, layer + step_s
        inside = (layer >= 1) & (layer <= LAYERS) & (row >= BORDER) & (row < height - BORDER)
        moving = moving & inside & (column >= BORDER) & (column < width - BORDER)
    return Blobs(octave, layer, row, column, s, y, x, contrast, done)


def _angles(layers: Tensor, table: Table, blobs: Blobs, scale: Tensor) -> Tensor:
    """The strongest direction (B, N) around blobs, in degrees, clockwise (section 5)."""
    counts = (_counts_by_kernel if launches(layers) else _counts)(layers, table, blobs, scale)
    smooth = 6 * counts
    for shift, share in ((1, 4), (2, 1)):
        smooth = smooth + share * (counts.roll(shift, 2) + counts.roll(-shift, 2))
    highest, peak = smooth.max(2)
    before, after = ((peak + by) % BINS for by in (-1, 1))
    left, right = (smooth.gather(2, side[..., None])[..., 0] for side in (before, after))
    exactly = peak + 0.5 * (left - right) / (left - 2 * highest + right)
    return (-exactly.double() * (360 / BINS)).nan_to_num() % 360


def _counts_by_kernel(layers: Tensor, table: Table, blobs: Blobs, scale: Tensor) -> Tensor:
    """Gradients around blobs by their direction (B, N, 36)."""
    from mkdesc.images.detectors.dog_triton import count_directions

    batch, n = scale.shape
    counts = layers.new_empty((batch, n, BINS))
    side = math.isqrt(len(table.rows))
    places = (blobs.octave, blobs.layer.clamp(1, LAYERS), blobs.row, blobs.column)
    count_directions[(n, batch)](
        layers, table.starts, table.heights, table.widths, *places, scale.float().contiguous(),
        counts, n, layers.shape[1], LAYERS=LAYERS, BINS=BINS, SIDE=side,
        BLOCK=1 << (side * side - 1).bit_length(),
    )  # fmt: skip
    return counts


def _counts(layers: Tensor, table: Table, blobs: Blobs, scale: Tensor) -> Tensor:
    """The same by plain operations."""
    octave = blobs.octave
    height, width = table.heights[octave][..., None], table.widths[octave][..., None]
    plane, start = height * width, LAYERS * table.starts[octave][..., None]
    row, column = blobs.row[..., None] + table.rows, blobs.column[..., None] + table.columns
    reach = (4.5 * scale).round()[..., None]
    near = (table.rows.abs() <= reach) & (table.columns.abs() <= reach)
    near &= (row > 0) & (row < height - 1) & (column > 0) & (column < width - 1)
    row, column = row.clamp_min(1), column.clamp_min(1)
    row, column = torch.minimum(row, height - 2), torch.minimum(column, width - 2)
    at = start + (blobs.layer.clamp(1, LAYERS)[..., None] - 1) * plane + row * width + column

    def pixel(by: Tensor | int) -> Tensor:
        return taken(layers, (at + by).flatten(1)).view(at.shape)

    dx, dy = pixel(1) - pixel(-1), pixel(-width) - pixel(width)
    far = (table.rows**2 + table.columns**2) / (2 * (1.5 * scale[..., None]) ** 2)
    weight = torch.exp(-far.float()) * torch.hypot(dx, dy) * near
    bins = (torch.rad2deg(torch.atan2(dy, dx)) % 360 * (BINS / 360)).round().long() % BINS
    counts = torch.zeros((*scale.shape, BINS), device=scale.device)
    return counts.scatter_add_(2, bins, weight)

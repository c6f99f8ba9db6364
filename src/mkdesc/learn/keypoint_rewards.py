"""Drawing keypoints by chance, matching them, and what each was worth: the reward of DISK.

In every cell of a level one pixel is drawn by the softmax of its scores, and accepted with the
sigmoid of its score. Accepted points of two views are described by a model that stays as it is
and matched by mutual nearest neighbours; right matches are rewarded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import conv2d, grid_sample, logsigmoid, pad

from mkdesc.images.detectors.learned_torch import Scorer, gaussian, mean_gradients, pyramid
from mkdesc.learn.keypoint_pairs import mutual_nearest, table_of
from mkdesc.learn.keypoint_views import Pairs, ViewRecipe, project

#: Unit vectors (N, D) of patches (N, k, W, W) in [0, 1], of k squares of each keypoint.
Describe = Callable[[Tensor], Tensor]

#: Levels have at least this many pixels beyond the margin of the network.
LEAST = 32


@dataclass(frozen=True)
class KeypointRecipe:
    """How keypoints are taught.

    Attributes
    ----------
    channels, kernels
        Of the network: outputs of all layers but the last, and sides of the kernels of all.
    cell
        Side of the cells in which one point is drawn, in pixels of a level.
    levels
        How many levels of the pyramid points are drawn on.
    upright
        Whether points have no angle.
    right, wrong
        Distances in pixels of a level, times at most two for coarse ones: nearer matches are
        right, those farther away wrong.
    wrong_cost, point_cost
        What a wrong match and any point cost, beside the reward of 1 of a right match.
    views
        How much views differ.
    pairs, size
        Pairs of views per step, and the side of a view in pixels.
    squares
        How many times the squares of a model, what it is used at, are described; one is drawn for
        each step.
    rate
        Learning rate, at its largest.
    """

    channels: tuple[int, ...] = (8, 8)
    kernels: tuple[int, ...] = (5, 5, 5)
    cell: int = 8
    levels: int = 3
    upright: bool = False
    right: float = 1.5
    wrong: float = 3.0
    wrong_cost: float = 0.15
    point_cost: float = 0.005
    views: ViewRecipe = field(default_factory=ViewRecipe)
    pairs: int = 8
    size: int = 384
    squares: tuple[float, ...] = (0.75, 1.0, 1.375)
    rate: float = 2e-3


class Drawn(NamedTuple):
    """Points of views (2 B, N, ...).

    Attributes
    ----------
    places
        (2 B, N, 2) x and y in pixels of the view.
    scales
        (2 B, N) pixels of the view that one of their level stands for.
    used
        (2 B, N) whether they are there at all.
    log_probability
        (2 B, N) of having been drawn and accepted.
    patches
        (n, k, W, W) of those that are used.
    """

    places: Tensor
    scales: Tensor
    used: Tensor
    log_probability: Tensor
    patches: Tensor


class Look(NamedTuple):
    """What is described of a keypoint.

    Attributes
    ----------
    sides
        Sides of its squares, in pixels of its level.
    patch_size
        Side of their patches in pixels.
    """

    sides: tuple[float, ...]
    patch_size: int

    def times(self, factor: float) -> Look:
        """Larger squares."""
        return Look(tuple(factor * side for side in self.sides), self.patch_size)


class MatchedKeypoints(NamedTuple):
    """What matching came to: rewards (2 B, N), and counts."""

    rewards: Tensor
    right: Tensor
    matches: Tensor
    points: Tensor


def draw_points(
    scorer: Scorer,
    pairs: Pairs,
    recipe: KeypointRecipe,
    look: Look,
    generator: torch.Generator,
) -> Drawn:
    """Draw points of all views by chance; gradients flow to the log probabilities."""
    found = []
    for level in pyramid(pairs.images, recipe.levels, 2 * scorer.margin + LEAST):
        scores, cell = scorer(level), recipe.cell
        count, rows, columns = len(scores), scores.shape[1] // cell, scores.shape[2] // cell
        cells = scores[:, : rows * cell, : columns * cell]
        cells = cells.view(count, rows, cell, columns, cell).transpose(2, 3)
        cells = cells.reshape(count, rows * columns, cell * cell)
        with torch.no_grad():
            chance = torch.rand(cells.shape, generator=generator, device=cells.device)
            gumbel = -torch.log(-torch.log(chance.clamp(1e-9, 1 - 1e-7)))
            chosen = (cells + gumbel).argmax(-1, keepdim=True)
        score = cells.gather(-1, chosen)[..., 0]
        log_probability = cells.log_softmax(-1).gather(-1, chosen)[..., 0] + logsigmoid(score)
        with torch.no_grad():
            drawn = torch.rand(score.shape, generator=generator, device=score.device)
            number = torch.arange(rows * columns, device=score.device)
            y = number // columns * cell + chosen[..., 0] // cell + scorer.margin
            x = number % columns * cell + chosen[..., 0] % cell + scorer.margin
            at = torch.stack([x, y], dim=-1)
            used = (drawn < score.sigmoid()) & shown(pairs.inside, at, level)
            patches = _cut(level, at, used, recipe.upright, look)
        found.append((*_in_view(at.float(), level, pairs), used, log_probability, patches))
    return _together(found)


@torch.no_grad()
def match_points(
    drawn: Drawn, pairs: Pairs, describe: Describe, recipe: KeypointRecipe, cost: float
) -> MatchedKeypoints:
    """Describe and match points, and reward them.

    Parameters
    ----------
    drawn, pairs
        Points, and the views they are in.
    describe
        What describes patches.
    recipe
        What is right, and what wrong.
    cost
        Share of the costs that is charged.
    """
    vectors, used = table_of(describe(drawn.patches), drawn.used), drawn.used
    half = len(used) // 2
    nearest, mutual = mutual_nearest(vectors, used)
    moved = project(pairs.to_other, drawn.places)
    size = pairs.images.shape[-1]
    visible = ((moved > 0) & (moved < size - 1)).all(-1)
    partner = drawn.places.roll(half, 0).gather(1, nearest[..., None].expand(-1, -1, 2))
    unit = torch.maximum(drawn.scales, drawn.scales.roll(half, 0).gather(1, nearest)).clamp_max(2)
    distance = (moved - partner).norm(dim=-1) / unit
    right, wrong = mutual & (distance < recipe.right), mutual & (distance > recipe.wrong)
    reward = right.float() - cost * (recipe.wrong_cost * wrong.float() + recipe.point_cost)
    return MatchedKeypoints(
        reward * (used & visible),
        right[:half].sum(),
        (mutual & visible)[:half].sum(),
        used.sum() / 2,
    )


def shown(inside: Tensor, at: Tensor, level: Tensor) -> Tensor:
    """Whether points (B, N, 2) of a level are where the view shows its photograph."""
    height, width = inside.shape[1:]
    scale = width / level.shape[-1]
    x, y = ((at.float() + 0.5) * scale - 0.5).round().long().unbind(-1)
    return inside.flatten(1).gather(1, y.clamp(0, height - 1) * width + x.clamp(0, width - 1))


def _in_view(at: Tensor, level: Tensor, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Places (B, N, 2) in the view, and the scale of the level for each (B, N)."""
    scale = pairs.images.shape[-1] / level.shape[-1]
    return (at + 0.5) * scale - 0.5, torch.full(at.shape[:2], scale, device=at.device)


def _together(levels: Sequence[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]) -> Drawn:
    """Points of all levels; patches in the order in which a mask of them selects."""
    places, scales, used, log_probability, patches = zip(*levels, strict=True)
    every = torch.cat(used, 1)
    ordered = patches[0].new_empty((int(every.sum()), *patches[0].shape[1:]))
    number = every.flatten().cumsum(0).view(every.shape) - 1
    start = 0
    for mine, cut in zip(used, patches, strict=True):
        ordered[number[:, start : start + mine.shape[1]][mine]] = cut
        start += mine.shape[1]
    return Drawn(
        torch.cat(places, 1), torch.cat(scales, 1), every, torch.cat(log_probability, 1), ordered
    )


def _cut(level: Tensor, at: Tensor, used: Tensor, upright: bool, look: Look) -> Tensor:
    """Patches (n, k, W, W) of the points (B, N, 2) of a level (B, H, W) that are used."""
    height, width = level.shape[1:]
    which = torch.arange(len(level), device=level.device)[:, None].expand(used.shape)[used]
    x, y = at[used].unbind(-1)
    if upright:
        cos, sin = (
            torch.ones_like(x, dtype=torch.float32),
            torch.zeros_like(x, dtype=torch.float32),
        )
    else:
        flat = which * (height * width) + y * width + x
        across, down = (g.flatten()[flat] for g in mean_gradients(level))
        length = (across**2 + down**2).sqrt().clamp_min(1e-12)
        cos, sin = across / length, down / length
    frames = (x, y, cos, sin)
    cut = [_sampled(level, which, frames, side, look.patch_size) for side in look.sides]
    return torch.stack(cut, dim=1)


def _sampled(
    level: Tensor, which: Tensor, frames: tuple[Tensor, ...], side: float, patch_size: int
) -> Tensor:
    """Patches (n, W, W) of squares: centres, and cosines and sines of angles, (n,) each."""
    height, width = level.shape[1:]
    step = side / patch_size
    smooth = _smoothed(level, 0.5 * math.sqrt(step**2 - 1)) if step > 1.05 else level
    offsets = (torch.arange(patch_size, device=level.device) + 0.5 - patch_size / 2) * step
    u, v = offsets[None, None, :], offsets[None, :, None]
    x, y, cos, sin = (value[:, None, None] for value in frames)
    px, py = x + cos * u - sin * v, y + sin * u + cos * v
    # One tall picture of all views: rows of other views are never reached.
    px, py = px.clamp(0, width - 1), py.clamp(0, height - 1)
    tall = py + (which * height)[:, None, None]
    rows = len(level) * height
    grid = torch.stack([px * (2 / (width - 1)) - 1, tall * (2 / (rows - 1)) - 1], dim=-1)
    picture = smooth.reshape(1, 1, rows, width)
    n = len(which)
    return grid_sample(picture, grid.view(1, n * patch_size, patch_size, 2), align_corners=True)[
        0, 0
    ].view(n, patch_size, patch_size)


def _smoothed(level: Tensor, sigma: float) -> Tensor:
    radius = max(1, round(3 * sigma))
    taps = gaussian(sigma, radius, level.device)
    wide = pad(level[:, None], (radius, radius, radius, radius), mode="replicate")
    return conv2d(conv2d(wide, taps.view(1, 1, 1, -1)), taps.view(1, 1, -1, 1))[:, 0]

"""Drawing keypoints by chance, matching them, and what each was worth: the reward of DISK.

In every cell of a level one pixel is drawn by the softmax of its scores, and accepted with the
sigmoid of its score. Accepted points of two views are described by a model that stays as it is
and matched by mutual nearest neighbours; right matches are rewarded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from mkdesc.images.detectors.learned_torch import Scorer, mean_gradients, pyramid
from mkdesc.learn.keypoint_pairs import Found, mutual_nearest
from mkdesc.learn.keypoint_views import Pairs, ViewRecipe, project

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
    """Points of views, and the logarithms (2 B, N) of their probabilities.

    They are those of having been drawn and accepted; what was not accepted is not used.
    """

    found: Found
    log_probability: Tensor


class MatchedKeypoints(NamedTuple):
    """What matching came to: rewards (2 B, N), and counts."""

    rewards: Tensor
    right: Tensor
    matches: Tensor
    points: Tensor


def draw_points(
    scorer: Scorer, pairs: Pairs, recipe: KeypointRecipe, generator: torch.Generator
) -> Drawn:
    """Draw points of all views by chance; gradients flow to the log probabilities."""
    drawn, found = [], []
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
        drawn.append(cells.log_softmax(-1).gather(-1, chosen)[..., 0] + logsigmoid(score))
        with torch.no_grad():
            accepted = torch.rand(score.shape, generator=generator, device=score.device)
            number = torch.arange(rows * columns, device=score.device)
            y = number // columns * cell + chosen[..., 0] // cell + scorer.margin
            x = number % columns * cell + chosen[..., 0] % cell + scorer.margin
            at, scale = torch.stack([x, y], dim=-1), pairs.images.shape[-1] / level.shape[-1]
            used = (accepted < score.sigmoid()) & shown(pairs.inside, at, level)
            angles = torch.zeros_like(score) if recipe.upright else _angles(level, x, y)
            places = (at + 0.5) * scale - 0.5
            found.append(Found(places, torch.full_like(score, scale), angles, used))
    every = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
    return Drawn(Found(*every), torch.cat(drawn, 1))


@torch.no_grad()
def match_points(
    drawn: Drawn, pairs: Pairs, vectors: Tensor, recipe: KeypointRecipe, cost: float
) -> MatchedKeypoints:
    """Match points, and reward them.

    Parameters
    ----------
    drawn, pairs
        Points, and the views they are in.
    vectors
        (2 B, N, d) unit vectors of the points.
    recipe
        What is right, and what wrong.
    cost
        Share of the costs that is charged.
    """
    places, scales, _, used = drawn.found
    half = len(used) // 2
    nearest, mutual = mutual_nearest(vectors, used)
    moved = project(pairs.to_other, places)
    size = pairs.images.shape[-1]
    visible = ((moved > 0) & (moved < size - 1)).all(-1)
    partner = places.roll(half, 0).gather(1, nearest[..., None].expand(-1, -1, 2))
    unit = torch.maximum(scales, scales.roll(half, 0).gather(1, nearest)).clamp_max(2)
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


def _angles(level: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Angles (V, N) of pixels of a level (V, H, W), in degrees."""
    at = y * level.shape[2] + x
    across, down = (each.flatten(1).gather(1, at) for each in mean_gradients(level))
    return torch.atan2(down, across).rad2deg()

"""Keypoints that a detector finds in two views of a photograph, and which of them match.

Both views go through the detector, so that places, scales and angles differ as much as they do
between photographs, and there are keypoints that the other view has none for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from mkdesc.images.detectors.learned import COARSER, LEVELS, SPARE
from mkdesc.images.detectors.learned_reference import LEAST_BEND
from mkdesc.images.detectors.learned_torch import Scorer, mean_gradients, pyramid, strict_maxima
from mkdesc.images.detectors.places import RADIUS
from mkdesc.learn.keypoint_rewards import shown
from mkdesc.learn.keypoint_views import project

#: Pixels, times the scale of a keypoint (at most twice): what is nearer to where a keypoint should
#: be is its partner; only what is farther away than the second is certainly another place.
PARTNER, OTHER = 1.5, 4.0
#: Octaves by which the scales of partners may differ.
OCTAVES = 0.8
#: Views whose keypoints are compared with each other at a time: bounds the memory.
VIEWS_AT_ONCE = 8


class Found(NamedTuple):
    """Keypoints of views, the best N of each.

    Attributes
    ----------
    places
        (V, N, 2) x and y in pixels of the view.
    scales
        (V, N) pixels of the view that one of their level stands for.
    angles
        (V, N) in degrees.
    used
        (V, N) whether there is a keypoint: there may be fewer than N.
    """

    places: Tensor
    scales: Tensor
    angles: Tensor
    used: Tensor


class Moved(NamedTuple):
    """Where keypoints of B first views are in the second ones.

    Attributes
    ----------
    places, scales
        (B, N, 2) and (B, N), in pixels of the second view.
    known
        (B, N) whether that is known.
    """

    places: Tensor
    scales: Tensor
    known: Tensor


@torch.no_grad()
def find_points(scorer: Scorer, images: Tensor, inside: Tensor, count: int) -> Found:
    """Find the best keypoints of all views, as the learned detector does.

    Parameters
    ----------
    scorer
        The network of the detector.
    images, inside
        (V, H, W) views in [0, 1], and where they show their photographs.
    count
        How many, at most.
    """
    found = []
    for number, level in enumerate(pyramid(images, LEVELS, 2 * scorer.margin + 3)):
        found.append(_on_level(scorer, level, number, inside, count))
    strength, places, scales, angles = (
        torch.cat(parts, dim=1) for parts in zip(*found, strict=True)
    )
    # All are compared with each other: no more than the detector itself compares.
    some = min(round(SPARE * count) + 100, strength.shape[1])
    strength, chosen = strength.topk(some)
    places = places.gather(1, chosen[..., None].expand(-1, -1, 2))
    scales, angles = scales.gather(1, chosen), angles.gather(1, chosen)
    kept = torch.cat(
        [
            _unbeaten(*part)
            for part in zip(
                strength.split(VIEWS_AT_ONCE),
                places.split(VIEWS_AT_ONCE),
                scales.split(VIEWS_AT_ONCE),
                strict=True,
            )
        ]
    )
    best, chosen = strength.masked_fill(~kept, -math.inf).topk(min(count, kept.shape[1]))
    return Found(
        places.gather(1, chosen[..., None].expand(-1, -1, 2)),
        scales.gather(1, chosen),
        angles.gather(1, chosen),
        best > -math.inf,
    )


def _on_level(
    scorer: Scorer, level: Tensor, number: int, inside: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Strengths, places, scales and angles (V, n) of the strongest maxima of a level."""
    scores, m = scorer(level), scorer.margin
    height, width = scores.shape[1:]
    peaks = scores.masked_fill(~strict_maxima(scores), -math.inf)
    strength, flat = peaks[:, 1:-1, 1:-1].flatten(1).topk(min(count, (height - 2) * (width - 2)))
    row, column = flat // (width - 2) + 1, flat % (width - 2) + 1

    def score(down: int, across: int) -> Tensor:
        return scores.flatten(1).gather(1, (row + down) * width + column + across)

    bend_x = 2 * score(0, 0) - score(0, -1) - score(0, 1)
    bend_y = 2 * score(0, 0) - score(-1, 0) - score(1, 0)
    x = column + m + (score(0, 1) - score(0, -1)) / (2 * bend_x)
    y = row + m + (score(1, 0) - score(-1, 0)) / (2 * bend_y)
    pixel = torch.stack([column + m, row + m], dim=-1)
    good = shown(inside, pixel, level) & (torch.minimum(bend_x, bend_y) > LEAST_BEND)
    good &= strength > -math.inf
    factor = COARSER**number
    strength = torch.where(strength > 0, strength * factor, strength / factor)
    at = (row + m) * level.shape[2] + column + m
    across, down = (gradient.flatten(1).gather(1, at) for gradient in mean_gradients(level))
    places = torch.stack([x, y], dim=-1).masked_fill(~good[..., None], 0.0)
    return (
        strength.masked_fill(~good, -math.inf),
        (places + 0.5) * _ratios(inside, level) - 0.5,
        torch.full_like(x, 2 ** (number / 2)),
        torch.atan2(down, across).rad2deg(),
    )


def _ratios(images: Tensor, level: Tensor) -> Tensor:
    """How many pixels of images, along x and y, one of a level stands for."""
    sizes = torch.tensor([images.shape[1:], level.shape[1:]], dtype=torch.float32)
    return (sizes[0] / sizes[1]).flip(0).to(level.device)


def _unbeaten(strength: Tensor, places: Tensor, scales: Tensor) -> Tensor:
    """Which (V, n) have no stronger one of the same place."""
    near = distances(places, places) < RADIUS * torch.minimum(
        scales[:, :, None], scales[:, None, :]
    )
    return ~(near & (strength[:, None, :] > strength[:, :, None])).any(-1)


def distances(first: Tensor, second: Tensor) -> Tensor:
    """Distances (..., N, M) of places (..., N, 2) and (..., M, 2), exact where they are near."""
    return torch.cdist(first, second, compute_mode="donot_use_mm_for_euclid_dist")


def move(found: Found, to_second: Tensor) -> Moved:
    """Keypoints of first views through homographies (B, 3, 3) to the second ones."""
    first, scales = found.places[: len(to_second)], found.scales[: len(to_second)]
    places = project(to_second, first)
    return Moved(places, scales * _stretch(to_second, first), torch.ones_like(scales, dtype=bool))


@torch.no_grad()
def partners(found: Found, moved: Moved) -> Tensor:
    """Which keypoint of the second view each one of the first matches; -1: none.

    Parameters
    ----------
    found
        Keypoints of B first views, then of B second ones.
    moved
        Where the first should be.

    Returns
    -------
    Tensor of shape (B, N), int64
    """
    half = len(found.used) // 2
    others, other_scales = found.places[half:], found.scales[half:]
    scales = moved.scales
    unit = (scales[:, :, None] * other_scales[:, None, :]).sqrt().clamp(1, 2)
    distance = distances(moved.places, others) / unit
    octaves = (scales[:, :, None] / other_scales[:, None, :]).log2().abs()
    both = (found.used[:half] & moved.known)[:, :, None] & found.used[half:, None, :]
    fits = both & (distance < PARTNER) & (octaves < OCTAVES)
    cost = (distance + octaves).masked_fill(~fits, math.inf)
    least, partner = cost.min(2)
    own = torch.arange(cost.shape[1], device=cost.device)
    mutual = (cost.argmin(1).gather(1, partner) == own) & (least < math.inf)
    return partner.masked_fill(~mutual, -1)


def near(moved: Moved, others: Tensor) -> Tensor:
    """Which (B, N, N) of the second keypoints, at places (B, N, 2), may show what a first does."""
    reach = OTHER * moved.scales.clamp(1, 2)
    return distances(moved.places, others) < reach[..., None]


def _stretch(homographies: Tensor, points: Tensor) -> Tensor:
    """How many pixels (B, N) one pixel becomes there."""
    w = (points @ homographies[:, 2, :2, None])[..., 0] + homographies[:, None, 2, 2]
    area = torch.linalg.det(homographies)[:, None].abs() / w.abs().clamp_min(1e-6) ** 3
    return area.sqrt()

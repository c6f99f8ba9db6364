"""Keypoints that a detector finds in two views of a photograph, and which of them match.

Both views go through the detector, so that places, scales and angles differ as much as they do
between photographs, and there are keypoints that the other view has none for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mkdesc.images.cutting_torch import cut_squares
from mkdesc.images.detectors.learned_padded_torch import detect
from mkdesc.images.detectors.learned_reference import SIGMA
from mkdesc.images.detectors.learned_weights import Weights
from mkdesc.learn.keypoint_views import project

#: Pixels, times the scale of a keypoint (at most twice): what is nearer to where a keypoint should
#: be is its partner; only what is farther away than the second is certainly another place.
PARTNER, OTHER = 1.5, 4.0
#: Octaves by which the scales of partners may differ.
OCTAVES = 0.8


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

    @property
    def points(self) -> Tensor:
        """(V, N, 4) x, y, sigma and angle."""
        rest = torch.stack([SIGMA * self.scales, self.angles], dim=-1)
        return torch.cat([self.places, rest], dim=-1)


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
def find_points(
    weights: Weights, images: Tensor, inside: Tensor, count: int, upright: bool = False
) -> Found:
    """Find the best keypoints of all views, by the learned detector.

    Parameters
    ----------
    weights
        The network of the detector.
    images, inside
        (V, H, W) views in [0, 1], and where they show their photographs.
    count
        How many, at most.
    upright
        Whether they have no angle.
    """
    found = detect(images, weights, count, inside, upright=upright)
    used = found.there()
    scales = torch.where(used, found.points[..., 2] / SIGMA, 1)
    return Found(found.points[..., :2], scales, found.points[..., 3], used)


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


def cut(images: Tensor, found: Found, patch_size: int, sides: Sequence[float]) -> Tensor:
    """Patches (n, k, W, W) of the keypoints of images (V, H, W) that are used, of k squares each.

    ``sides`` are in units of sigma.
    """
    which, points = found.used.nonzero()[:, 0], found.points[found.used]
    cuts = [cut_squares(images, which, points, patch_size, side) for side in sides]
    return torch.stack(cuts, dim=1)


def table_of(vectors: Tensor, used: Tensor) -> Tensor:
    """Vectors (n, d) of the keypoints (V, N) that are used, in their places (V, N, d)."""
    table = vectors.new_zeros((*used.shape, vectors.shape[1]), dtype=torch.float32)
    table[used] = vectors.float()
    return table


def mutual_nearest(vectors: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
    """For each keypoint, the nearest one of the other view, and whether that is mutual.

    Parameters
    ----------
    vectors
        (2 B, N, d) unit vectors of B first views, then of B second ones.
    used
        (2 B, N) whether there is a keypoint.

    Returns
    -------
    Tensor of shape (2 B, N), int64
    Tensor of shape (2 B, N), bool
    """
    half = len(used) // 2
    alike = vectors[:half] @ vectors[half:].mT
    alike = alike.masked_fill(~(used[:half, :, None] & used[half:, None, :]), -2)
    forth, back = alike.argmax(2), alike.argmax(1)
    own = torch.arange(used.shape[1], device=used.device)
    nearest = torch.cat([forth, back])
    mutual = torch.cat([back.gather(1, forth), forth.gather(1, back)]) == own
    return nearest, mutual & used & used.roll(half, 0).gather(1, nearest)


@torch.no_grad()
def count_matches(vectors: Tensor, used: Tensor, near: Tensor) -> Tensor:
    """Right and all mutual nearest neighbours, and keypoints of the first views: (3,).

    Parameters
    ----------
    vectors, used
        As for :func:`mutual_nearest`.
    near
        (B, N, N) which of the second views may show what one of the first does: right matches.
    """
    nearest, mutual = (each[: len(near)] for each in mutual_nearest(vectors, used))
    right = mutual & near.gather(2, nearest[..., None])[..., 0]
    return torch.stack([right.sum(), mutual.sum(), used[: len(near)].sum()])

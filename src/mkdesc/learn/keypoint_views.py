"""Pairs of views of photographs, made where keypoints are taught: random homographies and light.

All photographs stay on the device, in halved sizes too; nothing goes to and fro but a few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, grid_sample, pad

#: Half the taps of the blur that views get.
_BLUR_RADIUS = 6


@dataclass(frozen=True)
class ViewRecipe:
    """How much two views of a photograph differ.

    Attributes
    ----------
    rotation
        Degrees by which the second is turned against the first, at most. 180: any, and the first
        is turned, too.
    scale
        Logarithm of the change of scale, at most.
    tilt
        Logarithm of the compression along one direction, at most.
    perspective
        How much scale changes from the middle to the border, at most.
    zoom
        Logarithm of how many pixels of a photograph one of a view stands for, at most.
    """

    rotation: float = 25.0
    scale: float = 0.8
    tilt: float = 0.8
    perspective: float = 0.25
    zoom: float = 1.0


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of views.

    Attributes
    ----------
    images
        (2 B, S, S) in [0, 1]: B first views, then B second ones.
    inside
        (2 B, S, S): whether pixels show the photograph, not what lies beyond it.
    to_other
        (2 B, 3, 3): from each view to its other.
    photos
        (B,) the number of the photograph that both are of.
    """

    images: Tensor
    inside: Tensor
    to_other: Tensor
    photos: NDArray[np.int64]


class Photos:
    """Photographs on a device, each in its own size and halved ones.

    Parameters
    ----------
    images
        (H, W) uint8.
    device
        Of PyTorch.
    """

    def __init__(self, images: Sequence[NDArray[np.uint8]], device: torch.device) -> None:
        self.device = device
        self._sizes = [image.shape for image in images]
        self._levels = [_halved(torch.tensor(image, device=device)) for image in images]

    def __len__(self) -> int:
        return len(self._levels)

    def pairs(
        self,
        count: int,
        size: int,
        recipe: ViewRecipe,
        rng: np.random.Generator,
        generator: torch.Generator,
    ) -> Pairs:
        """Random pairs.

        Parameters
        ----------
        count, size
            How many pairs, and the side of a view in pixels.
        recipe
            How much they differ.
        rng
            Draws photographs and homographies.
        generator
            Of the device: draws light and noise.
        """
        chosen = rng.choice(len(self), count, replace=count > len(self))
        sizes = [self._sizes[i] for i in chosen]
        zooms = draw_zooms(sizes, size, recipe, rng)
        centres = _centres(sizes, size, zooms, rng)
        maps = [view_maps(centres, zooms, size, recipe, rng, second) for second in (False, True)]
        images, inside = self.views(np.tile(chosen, 2), np.concatenate(maps), size, generator)
        first, second = maps
        other = np.concatenate([np.linalg.inv(second) @ first, np.linalg.inv(first) @ second])
        to_other = torch.tensor(other, dtype=torch.float32, device=self.device)
        return Pairs(images, inside, to_other, chosen)

    def views(
        self,
        chosen: NDArray[np.int64],
        to_photo: NDArray[np.float64],
        size: int,
        generator: torch.Generator,
    ) -> tuple[Tensor, Tensor]:
        """Views (V, S, S) in another light, and where they show their photographs.

        Parameters
        ----------
        chosen, to_photo
            (V,) and (V, 3, 3): of which photograph each is a view, and how it maps to it.
        size, generator
            As for :meth:`pairs`.
        """
        images, inside = self._warp(chosen, to_photo, size)
        return _lit(images, generator).contiguous(), inside

    def image(self, number: int) -> Tensor:
        """A photograph (H, W) in [0, 1], as it is."""
        return self._levels[number][0].float() / 255

    def size(self, number: int) -> tuple[int, ...]:
        """Height and width of a photograph."""
        return self._sizes[number]

    def _warp(
        self, chosen: NDArray[Any], to_photo: NDArray[np.float64], size: int
    ) -> tuple[Tensor, Tensor]:
        """Views (N, S, S) of photographs, and where they are inside; 2 x 2 samples per pixel."""
        middle = np.array([size / 2 - 0.5, size / 2 - 0.5, 1.0])
        maps = torch.tensor(to_photo, dtype=torch.float32, device=self.device)
        samples = (torch.arange(2 * size, device=self.device) + 0.5) / 2 - 0.5
        y, x = torch.meshgrid(samples, samples, indexing="ij")
        grid = torch.stack([x, y, torch.ones_like(x)]).view(3, -1)
        u, v, w = (maps @ grid).unbind(1)
        at = torch.stack([u / w, v / w], dim=-1).view(len(maps), 2 * size, 2 * size, 2)
        extents = np.array([self._sizes[photo][::-1] for photo in chosen], np.float32)
        extent = torch.from_numpy(extents).to(self.device)[:, None, None]
        scaled = (at + 0.5) * (2 / extent) - 1
        views = []
        for photo, homography, grid_of_view in zip(chosen, to_photo, scaled, strict=True):
            # Samples are half a pixel of the view apart: the size whose pixels are about as far.
            step = 0.5 * _local_scale(homography, middle)
            levels = self._levels[photo]
            which = int(np.clip(round(np.log2(max(step, 1e-3))), 0, len(levels) - 1))
            image = levels[which]
            sampled = grid_sample(
                image[None, None].float(),
                grid_of_view[None],
                padding_mode="border",
                align_corners=False,
            )
            views.append(sampled[0, 0])
        stacked = avg_pool2d(torch.stack(views)[:, None], 2)[:, 0] / 255
        inside = (scaled.abs() <= 1).all(dim=-1)
        seen = avg_pool2d(inside[:, None].float(), 2)[:, 0] == 1
        return stacked, seen


def project(homographies: Tensor, points: Tensor) -> Tensor:
    """Points (B, N, 2) through homographies (B, 3, 3)."""
    moved = points @ homographies[:, :, :2].mT + homographies[:, None, :, 2]
    return moved[..., :2] / moved[..., 2:].clamp_min(1e-6)


def _halved(image: Tensor) -> list[Tensor]:
    """An image (H, W) uint8, and halves of it, down to 64 px."""
    levels = [image]
    while min(levels[-1].shape) >= 128:
        half = avg_pool2d(levels[-1][None, None].float(), 2, ceil_mode=True)[0, 0]
        levels.append(half.round().to(torch.uint8))
    return levels


def _local_scale(homography: NDArray[np.float64], point: NDArray[np.float64]) -> float:
    """How many pixels of the photograph one of the view stands for, there."""
    w = float(homography[2] @ point)
    return float(np.sqrt(abs(np.linalg.det(homography)) / abs(w) ** 3))


def draw_zooms(
    sizes: Sequence[tuple[int, ...]], size: int, recipe: ViewRecipe, rng: np.random.Generator
) -> NDArray[np.float64]:
    """How many pixels (B,) of photographs one of a view stands for, in its middle."""
    # As much of a photograph as it has: a view shows at most all of its shorter side.
    shorter = np.array(sizes, np.float64).min(axis=1)
    most = np.minimum(np.exp(recipe.zoom), shorter / size)
    return np.exp(rng.uniform(np.minimum(0, np.log(most)), np.log(most)))


def _centres(
    sizes: Sequence[tuple[int, ...]],
    size: int,
    zooms: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Middles (B, 2) of views, in photographs."""
    half = (zooms * size / 2)[:, None]
    extents = np.array(sizes, np.float64)[:, ::-1]
    return rng.uniform(np.minimum(half, extents / 2), np.maximum(extents - half, extents / 2))


def view_maps(
    centres: NDArray[np.float64],
    zooms: NDArray[np.float64],
    size: int,
    recipe: ViewRecipe,
    rng: np.random.Generator,
    second: bool,
) -> NDArray[np.float64]:
    """Random maps (B, 3, 3) from views to photographs.

    Parameters
    ----------
    centres, zooms
        (B, 2) and (B,): what the middle of a view shows, about, and how large.
    size, recipe
        As for :meth:`Photos.pairs`.
    rng
        What draws.
    second
        Whether they are second views: first ones differ less from their photographs.
    """
    n = len(zooms)
    some = 1.0 if second else 0.3
    any_turn = recipe.rotation >= 180
    turn = np.radians(rng.uniform(-1, 1, n) * (180 if any_turn else recipe.rotation * second))
    stretch = np.exp(rng.uniform(-1, 1, n) * recipe.scale * second)
    tilt = np.exp(rng.uniform(0, 1, n) * recipe.tilt * some)
    axis = rng.uniform(0, np.pi, n)
    slope = rng.uniform(-1, 1, (n, 2)) * recipe.perspective * some
    squeeze = np.zeros((n, 2, 2))
    squeeze[:, 0, 0], squeeze[:, 1, 1] = np.sqrt(tilt), 1 / np.sqrt(tilt)
    full, from_middle, to_centre = (np.tile(np.eye(3), (n, 1, 1)) for _ in range(3))
    linear = _turns(turn) @ _turns(axis) @ squeeze @ _turns(-axis)
    full[:, :2, :2] = linear * (zooms * stretch)[:, None, None]
    full[:, 2, :2] = slope / (size / 2)
    from_middle[:, :2, 2] = -(size / 2 - 0.5)
    to_centre[:, :2, 2] = centres + rng.uniform(-0.15, 0.15, (n, 2)) * (zooms * size / 2)[:, None]
    return to_centre @ full @ from_middle


def _turns(angles: NDArray[np.float64]) -> NDArray[np.float64]:
    cos, sin = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)


def _lit(images: Tensor, generator: torch.Generator) -> Tensor:
    """Images with another gamma, contrast, brightness, blur and noise each."""
    n, device = len(images), images.device

    def uniform(low: float, high: float) -> Tensor:
        drawn = torch.rand(n, generator=generator, device=device)
        return (low + (high - low) * drawn)[:, None, None]

    sigma = 2 * uniform(0, 1) ** 2 + 1e-3
    offsets = torch.arange(-_BLUR_RADIUS, _BLUR_RADIUS + 1, device=device)
    taps = torch.exp(-0.5 * (offsets / sigma) ** 2)
    taps = taps / taps.sum(-1, keepdim=True)
    r = _BLUR_RADIUS
    wide = pad(images[None], (r, r, r, r), mode="replicate")
    wide = conv2d(wide, taps[:, :, None, :], groups=n)
    changed = conv2d(wide, taps[:, :, :, None], groups=n)[0]
    changed = changed.clamp(1e-4, 1) ** torch.exp(uniform(-0.5, 0.5))
    changed = (changed - 0.5) * torch.exp(uniform(-0.5, 0.3)) + 0.5 + uniform(-0.15, 0.15)
    noise = torch.randn(changed.shape, generator=generator, device=device)
    return (changed + noise * (0.06 * uniform(0, 1) ** 2)).clamp(0, 1)

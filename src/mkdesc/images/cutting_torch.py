"""Cutting patches out of images in the memory of a GPU, as :mod:`mkdesc.images.cutting` does.

Photographs that are on a device, say for a detector there, need not leave it to be described.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import conv2d, grid_sample, pad

from mkdesc._support.check import check_choice
from mkdesc.images.cutting import INTERPOLATIONS, MOST_SAMPLES, choose_levels
from mkdesc.images.frames import SIDE, square_frames

#: Samples that are taken at a time: bounds the memory.
MOST_AT_ONCE = 1 << 24


def cut_patches(
    image: Tensor,
    frames: Tensor | ArrayLike | Sequence[Any],
    patch_size: int = 64,
    side: float | Sequence[float] = SIDE,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Cut patches out of a gray image, on its device.

    Parameters
    ----------
    image
        (H, W) or (1, H, W), uint8 or floats.
    frames
        Where: points (N, 4) of x, y, sigma, angle, affine frames (N, 2, 3) or projective ones
        (N, 3, 3), as for :func:`mkdesc.images.cut_patches`; kornia's LAFs are affine
        frames. Patches do not depend on them for gradients.
    patch_size
        Side W of the patches in pixels.
    side
        Side of the square in units of sigma, for points. Several: as many squares of each; of
        frames the first square is given, and the others have its centre and shape.
    interpolation
        ``"linear"``, or ``"cubic"`` for patches finer than the image.

    Returns
    -------
    Tensor of shape (N, W, W); with several sides, k, (N, k, W, W)
        uint8 if the image is, rounded; float32 otherwise.

    Examples
    --------
    >>> image = torch.arange(100, dtype=torch.uint8).reshape(10, 10)
    >>> cut_patches(image, [[[2, 0, 4.5], [0, 2, 5.5]]], patch_size=4)[0, 0]
    tensor([43, 44, 45, 46], dtype=torch.uint8)
    """
    check_choice("interpolation", interpolation, INTERPOLATIONS)
    shape = tuple(image.shape)
    if image.ndim == 3 and shape[0] == 1:
        image = image[0]
    if image.ndim != 2 or not min(shape):
        raise ValueError(f"image: expected (H, W) or (1, H, W), got {shape}")
    if image.dtype != torch.uint8 and not image.is_floating_point():
        raise ValueError(f"image: expected uint8 or floats, got {image.dtype}")
    if isinstance(frames, Tensor):
        frames = frames.detach().double().cpu().numpy()
    squares = square_frames(frames, side)
    placed, chosen = choose_levels(squares.reshape(-1, 3, 3), patch_size, tuple(image.shape))
    out = image.new_empty((len(placed), patch_size, patch_size), dtype=torch.float32)
    level, at = image.to(torch.float32), 0
    for which in np.unique(chosen, axis=0):  # sorted by level
        while at < which[0]:
            level, at = _half_as_large(level[None])[0], at + 1
        nx, ny = int(which[1]), int(which[2])
        these = np.flatnonzero((chosen == which).all(axis=1))
        step = max(1, MOST_AT_ONCE // (patch_size**2 * nx * ny))
        for start in range(0, len(these), step):
            part = these[start : start + step]
            there = torch.from_numpy(placed[part]).to(image.device)
            cubic = interpolation == "cubic" and nx * ny == 1
            found = _sample(level, there, patch_size, nx, ny, cubic)
            out[torch.from_numpy(part).to(image.device)] = found
    if isinstance(side, Sequence):
        out = out.view(*squares.shape[:2], patch_size, patch_size)
    return out.add(0.5).clamp(0, 255).to(torch.uint8) if image.dtype == torch.uint8 else out


def cut_squares(
    images: Tensor, which: Tensor, points: Tensor, patch_size: int, side: float
) -> Tensor:
    """Cut squares out of many images of one size at once, as :func:`cut_patches` does.

    Parameters
    ----------
    images
        (V, H, W) floats.
    which
        (N,) the image that each square is cut from.
    points
        (N, 4): x, y, sigma and angle of each, on the same device.
    patch_size, side
        Side of a patch in pixels, and of its square in units of sigma.

    Returns
    -------
    Tensor of shape (N, W, W), float32

    Examples
    --------
    >>> images = torch.rand(2, 50, 60)
    >>> points = torch.tensor([[30.0, 20.0, 1.5, 40.0]])
    >>> cut = cut_squares(images, torch.tensor([1]), points, 8, 10.0)
    >>> torch.allclose(cut, cut_patches(images[1], points, 8, 10.0), atol=1e-4)
    True
    """
    x, y, sigma, angle = points.double().unbind(1)
    step = sigma * (side / patch_size) * (1 - 1e-9)
    most = int(np.log2(min(images.shape[1:])))
    chosen = step.log2().floor().clamp(0, most)
    longest = torch.where(chosen > 0, 2**0.5, 1.0)
    samples = (step / (2**chosen * longest)).ceil().clamp(1, MOST_SAMPLES)
    out = images.new_empty((len(points), patch_size, patch_size), dtype=torch.float32)
    frame = torch.stack([x, y, step * angle.deg2rad().cos(), step * angle.deg2rad().sin()], dim=1)
    level = images.float()
    for number in range(int(chosen.max()) + 1 if len(points) else 0):
        level = _half_as_large(level) if number else level
        for count in samples[chosen == number].unique().long().tolist():
            these = ((chosen == number) & (samples == count)).nonzero()[:, 0]
            for part in these.split(max(1, MOST_AT_ONCE // (patch_size * count) ** 2)):
                placed = frame[part] / 2**number
                out[part] = _sample_squares(level, which[part], placed, patch_size, count)
    return out


def _sample_squares(
    level: Tensor, which: Tensor, frame: Tensor, size: int, samples: int
) -> Tensor:
    """Patches (N, size, size) out of a level (V, H, W); frames (N, 4): centre, step along x."""
    height, width = level.shape[1:]
    number = torch.arange(size * samples, device=level.device)
    offsets = ((number + 0.5) / samples - size / 2).float()
    x, y, across, down = frame.float()[:, :, None, None].unbind(1)
    u, v = offsets[None, None, :], offsets[None, :, None]
    at_x = (x + across * u - down * v).clamp(0, width - 1)
    at_y = (y + down * u + across * v).clamp(0, height - 1)
    # One tall picture of all images: no sample is between the rows of two.
    tall = at_y + (which * height)[:, None, None]
    rows = len(level) * height
    grid = torch.stack([at_x * (2 / (width - 1)) - 1, tall * (2 / (rows - 1)) - 1], dim=-1)
    found = grid_sample(
        level.reshape(1, 1, rows, width), grid.view(1, -1, size * samples, 2), align_corners=True
    )
    return found.view(len(frame), size, samples, size, samples).mean(dim=(2, 4))


def _half_as_large(levels: Tensor) -> Tensor:
    """The next level of pyramids (V, H, W): binomial filter, border replicated, half of it."""
    taps = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0], device=levels.device) / 16
    padded = pad(levels[:, None], (2, 2, 2, 2), mode="replicate")
    blurred = conv2d(conv2d(padded, taps.view(1, 1, 1, 5)), taps.view(1, 1, 5, 1))
    return blurred[:, 0, ::2, ::2]


def _sample(level: Tensor, frames: Tensor, size: int, nx: int, ny: int, cubic: bool) -> Tensor:
    """Patches (N, size, size), each pixel the mean of nx x ny samples of a level (H, W)."""
    height, width = level.shape
    columns = (torch.arange(size * nx, device=level.device, dtype=torch.float64) + 0.5) / nx - 0.5
    rows = (torch.arange(size * ny, device=level.device, dtype=torch.float64) + 0.5) / ny - 0.5
    across, down = columns.repeat(len(rows)), rows.repeat_interleave(len(columns))
    grid = torch.stack([across, down, torch.ones_like(across)])
    x, y, w = (frames @ grid).unbind(dim=1)
    x, y = (x / w).clamp(0, width - 1), (y / w).clamp(0, height - 1)
    left, top = x.floor().long(), y.floor().long()
    weights_x, weights_y = (_weights((z - z.floor()).float(), cubic) for z in (x, y))
    first = -1 if cubic else 0
    total = torch.zeros_like(x, dtype=torch.float32)
    flat = level.flatten()
    for j, weight_y in enumerate(weights_y):
        line = (top + first + j).clamp(0, height - 1) * width
        for i, weight_x in enumerate(weights_x):
            pixel = flat[line + (left + first + i).clamp(0, width - 1)]
            total += weight_y * weight_x * pixel
    return total.view(len(frames), size, ny, size, nx).mean(dim=(2, 4))


def _weights(u: Tensor, cubic: bool) -> list[Tensor]:
    """Weights of the two neighbours of a place, or of four, by Catmull-Rom splines."""
    if not cubic:
        return [1 - u, u]
    r = 1 - u
    return [
        -0.5 * u * r * r,
        1 + u * u * (1.5 * u - 2.5),
        1 + r * r * (1.5 * r - 2.5),
        -0.5 * u * u * r,
    ]

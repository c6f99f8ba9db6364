"""First and second derivatives of prepared patches; the sign is that of published models."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def _neighbours(image: Array) -> Array:
    """The image with its border replicated by one pixel."""
    return np.pad(image, [(0, 0)] * (image.ndim - 2) + [(1, 1), (1, 1)], mode="edge")


def gradients(image: ArrayLike) -> tuple[Array, Array]:
    """Gradients ``(gx, gy)`` of images (..., W, W).

    Both are *left minus right* and *above minus below*, the opposite of the usual sign, as
    in the authors' code: published whitening models expect it.

    Examples
    --------
    >>> ramp = np.tile(np.arange(8.0), (8, 1))
    >>> gx, gy = gradients(ramp)
    >>> float(gx[4, 4]), float(gy[4, 4])
    (-2.0, 0.0)
    """
    p = _neighbours(np.asarray(image, np.float64))
    return p[..., 1:-1, :-2] - p[..., 1:-1, 2:], p[..., :-2, 1:-1] - p[..., 2:, 1:-1]


def angle(gx: Array, gy: Array, flat: float) -> Array:
    """Gradient angle ``atan2(gy, gx)``; 0 where there is no gradient larger than ``flat``."""
    return np.where(np.hypot(gx, gy) > flat, np.arctan2(gy, gx), 0.0)


def second_order(image: ArrayLike) -> tuple[Array, Array, Array]:
    """Second derivatives of images (..., W, W) as ``(l, d, e)``.

    ``l = Ixx + Iyy`` responds to blobs, ``d = Ixx - Iyy`` and ``e = 2 Ixy`` to ridges and saddles.

    Examples
    --------
    >>> bowl = np.add.outer(np.arange(8.0) ** 2, np.arange(8.0) ** 2)
    >>> [float(part[4, 4]) for part in second_order(bowl)]
    [4.0, 0.0, 0.0]
    """
    p = _neighbours(np.asarray(image, np.float64))
    here = p[..., 1:-1, 1:-1]
    xx = p[..., 1:-1, :-2] - 2 * here + p[..., 1:-1, 2:]
    yy = p[..., :-2, 1:-1] - 2 * here + p[..., 2:, 1:-1]
    xy = (p[..., :-2, :-2] + p[..., 2:, 2:] - p[..., :-2, 2:] - p[..., 2:, :-2]) / 4
    return xx + yy, xx - yy, 2 * xy

"""Gradients of patches, with the smoothing and the sign that published models rely on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["EPSILON", "FLAT", "angle", "gradients", "magnitude", "smoothing_taps"]

#: Added to the squared gradient and to the magnitude before their square roots.
EPSILON = 1e-8
#: Gradients up to this are none at all: single precision cannot tell their direction.
FLAT = 1e-36


def smoothing_taps(size: int) -> NDArray[np.float64]:
    """Half of the 5-tap Gaussian (centre, 1 px, 2 px) for ``size``-px patches, shape (3,).

    Its sigma is 1.4 px on a 64-px patch and grows with the patch; five taps always.

    >>> bool(np.isclose(smoothing_taps(64) @ [1, 2, 2], 1))
    True
    """
    sigma = 1.4 * size / 64
    taps = np.exp(-(np.arange(3.0) ** 2) / (2 * sigma**2))
    half: NDArray[np.float64] = taps / (taps @ [1, 2, 2])
    return half


def _smooth_rows(image: NDArray[np.float64], taps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smooth (..., W, W) along its last axis, the border replicated."""
    padded = np.pad(image, [(0, 0)] * (image.ndim - 1) + [(2, 2)], mode="edge")
    # Equal taps are added first, so that a symmetric neighbourhood has a gradient of exactly 0.
    return (
        taps[0] * padded[..., 2:-2]
        + taps[1] * (padded[..., 1:-3] + padded[..., 3:-1])
        + taps[2] * (padded[..., :-4] + padded[..., 4:])
    )


def _difference_rows(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Left neighbour minus right neighbour along the last axis, the border replicated."""
    padded = np.pad(image, [(0, 0)] * (image.ndim - 1) + [(1, 1)], mode="edge")
    return padded[..., :-2] - padded[..., 2:]


def gradients(patches: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smoothed gradients ``(gx, gy)`` of patches (..., W, W).

    Both are *left minus right* and *above minus below*, the opposite of the usual sign, as
    in the authors' code: published whitening models expect it.

    Examples
    --------
    >>> ramp = np.tile(np.arange(8.0), (8, 1))
    >>> gx, gy = gradients(ramp)
    >>> round(float(gx[4, 4]), 6), float(gy[4, 4])
    (-2.0, 0.0)
    """
    image = np.asarray(patches, np.float64)
    taps = smoothing_taps(image.shape[-1])
    smooth = _smooth_rows(_smooth_rows(image, taps).swapaxes(-1, -2), taps)  # transposed
    return _difference_rows(smooth.swapaxes(-1, -2)), _difference_rows(smooth).swapaxes(-1, -2)


def magnitude(gx: NDArray[np.float64], gy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gradient magnitude, kept above zero by the authors' epsilon."""
    value: NDArray[np.float64] = np.sqrt(gx**2 + gy**2 + EPSILON)
    return value


def angle(gx: NDArray[np.float64], gy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gradient angle ``atan2(gy, gx)``; 0 where there is no gradient."""
    return np.where(np.hypot(gx, gy) > FLAT, np.arctan2(gy, gx), 0.0)

"""Images as they come, gray or colour and of any depth, to what the computations take."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.arrays import (
    HIGHEST,
    LOWEST,
    hint_at_few_bits,
    in_native_order,
    out_of_range,
    unmasked,
)

_TYPES = ("uint8", "uint16", "float32", "float64")


def as_gray(image: ArrayLike, rgb: bool = False) -> NDArray[Any]:
    """Check an image and return it as gray (H, W): uint8, uint16 or float32.

    Parameters
    ----------
    image
        (H, W), (H, W, 1), (H, W, 3) or (H, W, 4); uint8, uint16, float32 or float64. Transparency
        is ignored.
    rgb
        Whether red is the first of the colours; OpenCV's own order has blue first.

    Examples
    --------
    >>> as_gray(np.full((4, 6, 3), 200, np.uint8)).shape
    (4, 6)
    """
    if image is None:
        raise ValueError(
            "image: expected an array, got None (cv2.imread returns None for files it cannot read)"
        )
    if isinstance(image, (str, PathLike)):
        raise ValueError(
            f"image: expected an array, got {str(image)!r}; to read a file, use "
            "mkdesc.images.read_gray(...), or cv2.imread(...)"
        )
    array = unmasked(image, "image")
    if array.dtype.name not in _TYPES:
        raise ValueError(f"image: expected {', '.join(_TYPES)}, got {array.dtype}")
    array = in_native_order(array)
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise ValueError(f"image: expected (H, W), (H, W, 3) or (H, W, 4), got {array.shape}")
    if 0 in array.shape:
        raise ValueError(f"image: expected at least one pixel, got {array.shape}")
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            array = np.asarray(array, np.float32)
        if not np.isfinite(array).all():
            raise ValueError("image: has NaN, infinity or numbers beyond float32")
    if array.ndim == 2:
        return np.ascontiguousarray(array)
    if array.shape[2] == 1:
        return np.ascontiguousarray(array[..., 0])
    red, blue = (0, 2) if rgb else (2, 0)
    return _mixed(array[..., red], array[..., 1], array[..., blue])


def _mixed(red: NDArray[Any], green: NDArray[Any], blue: NDArray[Any]) -> NDArray[Any]:
    """Gray of three colours (H, W), to the last bit as OpenCV mixes integers."""
    if red.dtype.kind == "f":
        share = np.array([0.299, 0.587, 0.114], np.float32)
        return np.asarray(share[0] * red + share[1] * green + share[2] * blue)
    total = np.multiply(red, np.uint32(9798), dtype=np.uint32)  # shares of 1 << 15
    for colour, part in ((green, 19235), (blue, 3735)):
        total += np.multiply(colour, np.uint32(part), dtype=np.uint32)
    total += np.uint32(1 << 14)
    total >>= np.uint32(15)
    return total.astype(red.dtype)


def check_gray_range(gray: NDArray[Any]) -> None:
    """Refuse floats (H, W) that are not from 0 to 1, and hint at few bits, as with patches.

    >>> check_gray_range(np.array([[0.0, 255.0]]))
    Traceback (most recent call last):
    ValueError: image: has values from 0 to 255; floats must be from 0 to 1: divide by 255, or ...
    """
    hint_at_few_bits(gray)
    if gray.dtype.kind == "f":
        low, high = float(gray.min()), float(gray.max())
        if low < LOWEST or high > HIGHEST:
            raise ValueError(f"image: {out_of_range(low, high)}")


def as_gray_uint8(image: ArrayLike) -> NDArray[np.uint8]:
    """Gray uint8 (H, W), as OpenCV's detectors want it; floats are from 0 to 1, or are clipped.

    Examples
    --------
    >>> as_gray_uint8(np.array([[0.0, 0.5, 1.0]])).tolist()
    [[0, 128, 255]]
    """
    gray = as_gray(image)
    if gray.dtype == np.uint8:
        return gray
    check_gray_range(gray)
    if gray.dtype == np.uint16:
        return np.asarray((gray.astype(np.uint32) + 128) // 257, np.uint8)
    return np.asarray(gray.clip(0, 1) * 255 + 0.5, np.uint8)

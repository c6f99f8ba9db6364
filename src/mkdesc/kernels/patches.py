"""What may come in as patches: shapes, types and values, checked once for every computation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
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

#: Smallest patch side that can be described.
SMALLEST = 8

#: What :class:`PatchError` says of a patch with NaN or infinity.
NOT_FINITE = "has NaN or infinity"

_TYPES = ("uint8", "uint16", "float32", "float64")


class PatchError(ValueError):
    """Something is wrong with one of many patches: which, and what."""

    def __init__(self, index: int, what: str) -> None:
        super().__init__(f"patches[{index}] {what}")
        self.index, self.what = index, what


@contextmanager
def naming_stacks(squares: int) -> Iterator[None]:
    """Errors of squares, counted one by one, name the stack of ``squares`` that they are in.

    >>> with naming_stacks(2):
    ...     raise PatchError(5, "is torn")
    Traceback (most recent call last):
    mkdesc.kernels.patches.PatchError: patches[2] is torn
    """
    try:
        yield
    except PatchError as error:
        raise PatchError(error.index // squares, error.what) from None


def as_patches(patches: ArrayLike, squares: int = 1) -> NDArray[Any]:
    """Check shape and type of patches and return them, without copying.

    Parameters
    ----------
    patches
        (N, W, W), (N, 1, W, W) or a single (W, W); uint8, uint16, float32 or float64.
    squares
        How many squares around a keypoint there are; if several, only (N, squares, W, W) will do.

    Returns
    -------
    ndarray of shape (N, W, W), or (N, squares, W, W) if there are several

    Examples
    --------
    >>> as_patches(np.zeros((5, 1, 32, 32), np.uint8)).shape
    (5, 32, 32)
    >>> as_patches(np.zeros((5, 2, 32, 32), np.uint8), squares=2).shape
    (5, 2, 32, 32)
    """
    array = unmasked(patches, "patches")
    if array.dtype.name not in _TYPES:
        raise ValueError(f"patches: expected {', '.join(_TYPES)}, got {array.dtype}")
    array = in_native_order(array)
    shape = array.shape
    expected = "(N, W, W), (N, 1, W, W) or (W, W)"
    if squares > 1:
        fits = array.ndim == 4 and shape[1] == squares
        expected = f"(N, {squares}, W, W), for {squares} squares around each keypoint"
    else:
        if array.ndim == 2:
            array = array[None]
        elif array.ndim == 4 and shape[1] == 1:
            array = array[:, 0]
        fits = array.ndim == 3
    if not fits or array.shape[-2] != array.shape[-1]:
        raise ValueError(f"patches: expected {expected}, got {shape}")
    if array.shape[-1] < SMALLEST:
        raise ValueError(f"patches: expected a side of at least {SMALLEST} px, got {shape}")
    return array


def check_finite(block: NDArray[Any], first: int = 0) -> None:
    """Refuse patches (N, W, W) with NaN or infinity; ``first`` is the index of the first one."""
    bad = ~np.isfinite(block).all(axis=(1, 2))
    if bad.any():
        raise PatchError(first + int(bad.argmax()), NOT_FINITE)


def check_range(patches: NDArray[Any], first: int = 0) -> None:
    """Refuse floats (N, ..., W, W) that are not from 0 to 1 but, for instance, from 0 to 255.

    What interpolation adds is fine; few bits are hinted at. ``first`` is the index of the first
    patch, for error messages.

    >>> check_range(np.linspace(0, 255, 64).reshape(1, 8, 8))
    Traceback (most recent call last):
    mkdesc.kernels.patches.PatchError: patches[0] has values from 0 to 255; floats must be ...
    """
    hint_at_few_bits(patches)
    if patches.dtype.kind != "f":
        return
    each = tuple(range(1, patches.ndim))
    for start in range(0, len(patches), 256):  # few enough to stay in the cache
        block = patches[start : start + 256]
        low, high = block.min(axis=each), block.max(axis=each)
        bad = ((low < LOWEST) | (high > HIGHEST)) & np.isfinite(high) & np.isfinite(low)
        if bad.any():
            i = int(bad.argmax())
            raise PatchError(first + start + i, out_of_range(low[i], high[i]))


def plain_block(block: NDArray[Any], first: int = 0) -> tuple[NDArray[Any], float]:
    """Bring a block of patches to contiguous uint8 or float32, and say what to multiply it by.

    Integers become multiples of their type's maximum; floats are taken as they are. A float64
    patch is moved to 0 at its first pixel before it is rounded (the descriptor sees only
    differences).

    Parameters
    ----------
    block
        Patches as :func:`as_patches` returns them, shape (N, W, W).
    first
        Index of the first one, for error messages.

    Returns
    -------
    block, scale
        The values, to be multiplied by ``scale``.
    """
    if block.dtype == np.uint8:
        return np.ascontiguousarray(block), 1 / 255
    if block.dtype == np.uint16:
        return np.ascontiguousarray(block, np.float32), 1 / 65535
    if block.dtype == np.float64:
        with np.errstate(over="ignore", invalid="ignore"):
            moved = np.asarray(block - block[:, :1, :1], np.float32)
        bad = ~np.isfinite(moved).all(axis=(1, 2))
        if bad.any():
            check_finite(block[: int(bad.argmax()) + 1], first)
            what = "has numbers that differ by more than float32 can tell"
            raise PatchError(first + int(bad.argmax()), what)
        block = moved
    return np.ascontiguousarray(block, np.float32), 1.0


def one_patch(patch: ArrayLike, name: str) -> tuple[NDArray[Any], float]:
    """Check a single patch and return it, (W, W), and what to multiply it by.

    ``name`` is that of the argument, for error messages.

    Examples
    --------
    >>> one_patch(np.zeros((1, 8, 8)), "p")[0].shape
    (8, 8)
    """
    array = as_patches(patch)
    if len(array) != 1:
        raise ValueError(f"{name}: expected one patch (W, W), got {np.shape(patch)}")
    check_range(array)
    block, scale = plain_block(array)
    check_finite(block)
    return block[0], scale


@lru_cache(maxsize=32)
def _resizing(old: int, new: int) -> NDArray[np.float32]:
    """The linear map of one axis from ``old`` to ``new`` samples, shape (new, old).

    A triangle filter, as wide as the coarser of the two samplings: bilinear interpolation
    upwards, anti-aliased downwards.
    """
    step = max(old / new, 1)
    centre = (np.arange(new) + 0.5) * old / new - 0.5
    weight = np.maximum(0, 1 - np.abs(np.arange(old) - centre[:, None]) / step)
    return (weight / weight.sum(axis=1, keepdims=True)).astype(np.float32)


def resize_patches(patches: ArrayLike, size: int, first: int = 0) -> NDArray[np.float32]:
    """Resample patches (N, W, W) to ``size``, anti-aliased; float32, integers scaled to [0, 1].

    ``first`` is the index of the first patch, for error messages.

    Examples
    --------
    >>> resize_patches(np.full((2, 65, 65), 255, np.uint8), 32).shape
    (2, 32, 32)
    """
    block, scale = plain_block(as_patches(patches), first)
    axis = _resizing(block.shape[-1], size)
    with np.errstate(invalid="ignore"):  # NaN and infinity stay, and are refused later
        resized: NDArray[np.float32] = axis @ np.multiply(block, scale, dtype=np.float32) @ axis.T
    return resized

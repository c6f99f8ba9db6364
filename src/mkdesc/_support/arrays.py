"""Arrays and numbers as they come from files, other machines and callers."""

from __future__ import annotations

import sys
import warnings
from os import PathLike
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray


def in_native_order(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers with their bytes in the order of this machine; a copy only if needed.

    >>> in_native_order(np.ones(2, ">u2")).dtype == np.uint16
    True
    """
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def unmasked(array: ArrayLike, name: str) -> NDArray[Any]:
    """As an array; ValueError for None, a path, and a mask, which would be ignored.

    >>> unmasked("a.npy", "patches")
    Traceback (most recent call last):
    ValueError: patches: expected an array, got 'a.npy'; read the file first
    >>> unmasked(np.ma.masked_equal([1, 2], 2), "patches")
    Traceback (most recent call last):
    ValueError: patches: expected an array without a mask; fill it first (.filled(value))
    """
    if array is None:  # which OpenCV returns for the descriptors of no keypoints
        raise ValueError(f"{name}: expected an array, got None")
    if isinstance(array, (str, bytes, PathLike)):
        raise ValueError(f"{name}: expected an array, got {str(array)!r}; read the file first")
    # What nobody imported, nobody made an array of: it takes time to import.
    if "numpy.ma" in sys.modules and np.ma.is_masked(array):
        raise ValueError(
            f"{name}: expected an array without a mask; fill it first (.filled(value))"
        )
    return np.asarray(array)


#: Floats are from 0 to 1. Interpolation overshoots, bicubic by 0.28 at most (its weights along an
#: axis add up to 1.25 without their signs), so values up to these are taken, too.
LOWEST, HIGHEST = -0.3, 1.3


def out_of_range(low: float, high: float) -> str:
    """What to say of floats from ``low`` to ``high`` that are not from 0 to 1.

    >>> out_of_range(0, 255)
    'has values from 0 to 255; floats must be from 0 to 1: divide by 255, or pass uint8'
    """
    if low < LOWEST:
        advice = "scale them to 0 to 1"
    elif high > 2:
        advice = "divide by 255, or pass uint8"
    else:
        advice = "clip or scale them"
    return f"has values from {low:g} to {high:g}; floats must be from 0 to 1: {advice}"


#: Bits of cameras that have fewer than 16, and those that this process has hinted at.
_FEW_BITS = (10, 12)
HINTED: set[int] = set()


def hint_at_few_bits(array: NDArray[Any]) -> None:
    """Warn of whole numbers that may be of 10 or 12 bits where 16 are expected; others pass.

    Really dark images look the same, so it is a hint, and there is one of each kind in a process.

    >>> hint_at_few_bits(np.array([0, 65535], np.uint16))
    """
    if array.dtype.kind not in "iu" or array.dtype.itemsize == 1 or not array.size:
        return
    highest = int(array.max())
    bits = next((bits for bits in _FEW_BITS if 0 < highest < 1 << bits), None)
    if bits is not None and bits not in HINTED:
        HINTED.add(bits)
        warnings.warn(
            f"uint16 counts from 0 to 65535, and no value here is above {(1 << bits) - 1}: if "
            f"they have {bits} bits, multiply them by {1 << (16 - bits)}",
            stacklevel=3,
        )


def is_number(value: object) -> TypeGuard[float]:
    """Whether something is one number, not a text or a truth value.

    >>> is_number(2), is_number(np.float32(0.5)), is_number("2"), is_number(True)
    (True, True, False, False)
    """
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)

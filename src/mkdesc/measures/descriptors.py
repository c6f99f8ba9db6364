"""Descriptors that came from anywhere, checked once and alike."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.arrays import unmasked

#: Rows that are checked at a time.
BLOCK = 65536


@overload
def as_descriptors(
    descriptors: ArrayLike,
    count: int | None = None,
    name: str = "descriptors",
    *,
    dims: int | None = None,
    keep_float: Literal[False] = False,
) -> NDArray[np.float32]: ...


@overload
def as_descriptors(
    descriptors: ArrayLike,
    count: int | None = None,
    name: str = "descriptors",
    *,
    dims: int | None = None,
    keep_float: Literal[True],
) -> NDArray[np.floating]: ...


def as_descriptors(
    descriptors: ArrayLike,
    count: int | None = None,
    name: str = "descriptors",
    *,
    dims: int | None = None,
    keep_float: bool = False,
) -> NDArray[np.floating]:
    """Check descriptors and return them as floats of shape (N, D), copied only if need be.

    Binary descriptors must come as bits (``numpy.unpackbits(packed, axis=1)``): their squared
    Euclidean distance is then the Hamming distance.

    Parameters
    ----------
    descriptors
        Shape (N, D), any kind of real number, all finite.
    count, dims
        N and D, where they are known.
    name
        What to call them in errors.
    keep_float
        Floats keep their precision and their place in memory, and whole numbers become float64;
        by default all become contiguous float32.

    Examples
    --------
    >>> as_descriptors(np.ones((3, 8), np.uint8)).dtype
    dtype('float32')
    >>> as_descriptors(np.ones((3, 8)), dims=8, keep_float=True).dtype
    dtype('float64')
    """
    array = unmasked(descriptors, name)
    wanted = (count, dims)
    if array.ndim != 2 or any(
        n is not None and n != m for n, m in zip(wanted, array.shape, strict=True)
    ):
        shape = ", ".join(
            letter if n is None else str(n) for letter, n in zip("ND", wanted, strict=True)
        )
        raise ValueError(f"{name}: expected shape ({shape}), got {array.shape}")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name}: expected real numbers, got {array.dtype}")
    given = array
    if not keep_float:
        with np.errstate(over="ignore"):  # what overflows is refused below
            array = np.ascontiguousarray(array, np.float32)
    elif array.dtype.kind != "f":
        array = array.astype(np.float64)
    for start in range(0, len(array), BLOCK):
        block = array[start : start + BLOCK]
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum()
        # The sum is finite unless something in it is not, or is huge: look closer only then.
        if not np.isfinite(total):
            good = np.isfinite(block).all(axis=1)
            if not good.all():
                row = start + int(good.argmin())
                large = np.isfinite(given[row]).all()
                problem = "numbers beyond float32" if large else "NaN or infinity"
                raise ValueError(f"{name}[{row}] has {problem}")
    return array

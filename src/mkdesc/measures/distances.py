"""Distances between descriptors, computed in blocks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.threads import available_threads

__all__ = ["as_descriptors", "pair_distances"]

#: Pairs per unit of work: two gathered blocks of 128-D descriptors fit in a core's cache.
BLOCK = 2048


def as_descriptors(
    descriptors: ArrayLike, count: int | None = None, name: str = "descriptors"
) -> NDArray[np.float32]:
    """Check descriptors and return them as float32 of shape (N, D), copied only if need be.

    Binary descriptors must come as bits (``numpy.unpackbits(packed, axis=1)``): their squared
    Euclidean distance is then the Hamming distance.

    Parameters
    ----------
    descriptors
        Shape (N, D), any kind of number, all finite.
    count
        N, if it is known.
    name
        What to call them in errors.

    Examples
    --------
    >>> as_descriptors(np.ones((3, 8), np.uint8)).dtype
    dtype('float32')
    """
    array = np.asarray(descriptors)
    expected = f"({'N' if count is None else count}, D)"
    if array.ndim != 2 or (count is not None and len(array) != count):
        raise ValueError(f"{name}: expected shape {expected}, got {array.shape}")
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == np.bool_):
        raise ValueError(f"{name}: expected numbers, got {array.dtype}")
    if np.issubdtype(array.dtype, np.complexfloating):
        raise ValueError(f"{name}: expected real numbers, got {array.dtype}")
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(array, np.float32)
    for start in range(0, len(values), 65536):
        good = np.isfinite(values[start : start + 65536]).all(axis=1)
        if not good.all():
            raise ValueError(f"{name}[{start + int(good.argmin())}] has NaN or infinity")
    return values


def pair_distances(
    descriptors: NDArray[np.float32],
    first: NDArray[np.integer],
    second: NDArray[np.integer],
    others: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Squared Euclidean distances of pairs of descriptors, each from the differences themselves.

    (Not from products of the vectors, whose rounding would hide small distances and tear equal
    ones apart.)

    Parameters
    ----------
    descriptors
        Shape (N, D), float32.
    first, second
        Indices, shape (M,).
    others
        What ``second`` points into, if not ``descriptors``.

    Returns
    -------
    ndarray of shape (M,), float32

    Examples
    --------
    >>> pair_distances(np.eye(3, dtype=np.float32), np.array([0, 1]), np.array([0, 2]))
    array([0., 2.], dtype=float32)
    """
    theirs = descriptors if others is None else others
    out = np.empty(len(first), np.float32)

    def run(start: int) -> None:
        stop = start + BLOCK
        difference = descriptors[first[start:stop]]
        difference -= theirs[second[start:stop]]
        np.einsum("ij,ij->i", difference, difference, out=out[start:stop])

    starts = range(0, len(first), BLOCK)
    if len(starts) < 4:
        for start in starts:
            run(start)
    else:
        with ThreadPoolExecutor(available_threads()) as pool:
            for _ in pool.map(run, starts):
                pass
    return out

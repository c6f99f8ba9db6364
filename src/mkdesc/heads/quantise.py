"""Unit vectors as bytes or bits: the types that descriptors can be asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Types of descriptors that can be asked for: unit vectors, these as bytes, or their signs.
OUTPUTS = ("float32", "int8", "uint8", "bits")

#: What the numbers of a unit vector are multiplied by to become int8.
INT8_SCALE = 254
#: The same for uint8. From 200 to 320 no match is lost; more clips too many numbers.
UINT8_SCALE = 256
#: What zero becomes in uint8.
UINT8_ZERO = 128


def quantise(descriptors: NDArray[np.float32], output: str) -> NDArray[Any]:
    """Unit vectors (N, D) as one of :data:`OUTPUTS`.

    >>> quantise(np.array([[0.6, -0.8]], np.float32), "int8").tolist()
    [[127, -127]]
    """
    if output == "bits":
        return to_bits(descriptors)
    if output == "int8":
        return to_int8(descriptors)
    return as_uint8(descriptors) if output == "uint8" else descriptors


def to_bits(descriptors: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The signs of vectors (N, D) as bits, packed (N, D / 8), for the Hamming distance.

    A number above zero is a one. The first number is the highest bit of the first byte, as
    :func:`numpy.packbits` has it.

    >>> to_bits(np.array([[0.5, -0.5, 0.5, 0, 0, 0, 0, 0.5]], np.float32)).tolist()
    [[161]]
    """
    dims = descriptors.shape[1]
    if dims % 8:
        raise ValueError(f"output: expected a multiple of 8 numbers for bits, got {dims}")
    return np.packbits(descriptors > 0, axis=1)


def to_int8(descriptors: ArrayLike) -> NDArray[np.int8]:
    """Unit vectors (N, D) as int8: times 254, rounded, limited to -127 .. 127.

    Zero stays zero: dot products and Euclidean distances keep their order, nearly.

    >>> to_int8([[0.25, -0.1, 0.9]]).tolist()
    [[64, -25, 127]]
    """
    values = np.asarray(descriptors, np.float32) * np.float32(INT8_SCALE)
    return np.clip(np.rint(values), -127, 127).astype(np.int8)


def as_uint8(descriptors: ArrayLike) -> NDArray[np.uint8]:
    """Unit vectors (N, D) as uint8, whose distances are 256 times theirs, nearly.

    Zero becomes 128, so that only differences of such bytes mean something: Euclidean distance,
    but no dot products.

    >>> as_uint8([[0.1, -0.1, 0.0, 1.0]])
    array([[154, 102, 128, 255]], dtype=uint8)
    """
    values = np.asarray(descriptors, np.float32) * np.float32(UINT8_SCALE)
    return np.rint(values + UINT8_ZERO).clip(0, 255).astype(np.uint8)


def unit_vectors(descriptors: NDArray[Any]) -> NDArray[np.float32]:
    """What :func:`quantise` was given, nearly; floats stay as they are.

    >>> unit_vectors(as_uint8([[0.25, -0.125]])).tolist()
    [[0.25, -0.125]]
    """
    values = np.asarray(descriptors, np.float32)
    if descriptors.dtype == np.int8:
        return values / np.float32(INT8_SCALE)
    if descriptors.dtype == np.uint8:
        return (values - UINT8_ZERO) / np.float32(UINT8_SCALE)
    return values

"""Smoothing and derivatives of one axis as banded matrices, for the fused kernels.

A smoothing is a matrix ``G`` (S, S), its border replicated; a derivative of the smoothed patch is
``D @ G``. The rows of the latter add up to zero, so it can be written ``C @ differences``, with
the differences of neighbours and the cumulative sums of its rows. Differences of equal pixels
are exactly zero: flat areas keep their gradient of zero, however a matrix unit rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Matrices(NamedTuple):
    """The matrices of one axis, each (S, S).

    Attributes
    ----------
    smooth
        Of pixels, the smoothed pixels.
    slope
        Of differences to the next pixel, the first derivative (before minus after).
    bend
        Of differences to the next pixel, the second derivative.
    slope_of_pixels
        Of pixels, the first derivative.
    """

    smooth: Array
    slope: Array
    bend: Array
    slope_of_pixels: Array


def make_matrices(taps: Array, size: int) -> Matrices:
    """The matrices for half a Gaussian ``taps`` (reach + 1,) and patches of ``size`` px.

    Examples
    --------
    >>> smooth, slope, bend, _ = make_matrices(np.array([0.5, 0.25]), 8)
    >>> ramp = np.arange(8.0)
    >>> (smooth @ ramp)[3:5].tolist(), (slope[:, :-1] @ -np.diff(ramp))[3:5].tolist()
    ([3.0, 4.0], [-2.0, -2.0])
    >>> (bend[:, :-1] @ -np.diff(ramp**2))[3:5].tolist()
    [2.0, 2.0]
    """
    reach = len(taps) - 1
    last, rows = size - 1, np.arange(size)
    smooth = np.zeros((size, size))
    for k in range(-reach, reach + 1):
        np.add.at(smooth, (rows, np.clip(rows + k, 0, last)), taps[abs(k)])
    before, after = smooth[np.maximum(rows - 1, 0)], smooth[np.minimum(rows + 1, last)]

    def of_differences(rows_of_zero_sum: Array) -> Array:
        summed: Array = np.cumsum(rows_of_zero_sum, axis=1)
        summed[np.abs(summed) < 1e-12] = 0
        return summed

    first, second = before - after, before - 2 * smooth + after
    return Matrices(smooth, of_differences(first), of_differences(second), first)


def difference_matrix(size: int) -> Array:
    """The matrix of differences to the next pixel, the last of which is 0.

    >>> difference_matrix(3).tolist()
    [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [0.0, 0.0, 0.0]]
    """
    matrix = np.eye(size) - np.eye(size, k=1)
    matrix[-1] = 0
    return matrix


def transposed(matrices: tuple[Array, ...], side: int) -> Array:
    """Matrices (S, S), transposed and padded with zeros, (K, side, side)."""
    missing = side - len(matrices[0])
    return np.stack([np.pad(m.T, [(0, missing), (0, missing)]) for m in matrices])

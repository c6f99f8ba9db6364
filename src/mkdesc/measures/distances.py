"""Distances between descriptors, computed in blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.threads import available_threads, in_threads

#: Pairs per unit of work: two gathered blocks of 128-D descriptors fit in a core's cache.
BLOCK = 2048


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
    in_threads(run, starts, 1 if len(starts) < 4 else available_threads())
    return out

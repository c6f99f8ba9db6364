"""One signature per image: which visual words it has, and on which side of each.

This is ASMK* of Tolias, Avrithis and Jegou (To aggregate or not to aggregate, ICCV 2013): the
residuals of all descriptors of a word are added up and only their signs are kept. Two images
are as similar as

    S(X, Y) = sum over common words of u^3 where u > 0, u = cosine of their signs,

divided by the square root of S(X, X) S(Y, Y), which is the product of their numbers of words.
The power makes a few words that agree well count more than many that hardly do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.retrieval.codebook import assign_words

#: The power alpha of the paper.
SELECTIVITY = 3


class Signature(NamedTuple):
    """What is kept of the local descriptors of an image.

    Attributes
    ----------
    words
        (M,) int64: its visual words, growing.
    codes
        (M, B) uint64: signs of the sum of residuals of each, 64 to a number.
    """

    words: NDArray[np.int64]
    codes: NDArray[np.uint64]


def make_signature(descriptors: NDArray[Any], centroids: NDArray[np.float32]) -> Signature:
    """The signature of the descriptors (N, D) of an image.

    Parameters
    ----------
    descriptors
        Of any type, N may be 0.
    centroids
        (K, D): the visual words.

    Examples
    --------
    >>> words = np.array([[0, 0, 0], [9, 9, 9]], np.float32)
    >>> found = make_signature(np.array([[1, -1, 2], [0, -1, -1], [9, 9, 10]]), words)
    >>> found.words.tolist(), found.codes.ravel().tolist()
    ([0, 1], [5, 4])
    """
    words = assign_words(descriptors, centroids)
    order = np.argsort(words, kind="stable")
    present, starts = np.unique(words[order], return_index=True)
    residuals = np.asarray(descriptors, np.float32) - centroids[words]
    sums = np.add.reduceat(residuals[order], starts, axis=0) if len(words) else residuals
    return Signature(present, pack_signs(sums > 0))


def pack_signs(signs: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Signs (M, D) as numbers (M, B) of 64 bits, the first sign lowest."""
    width = -(-signs.shape[1] // 64) * 64
    padded = np.zeros((len(signs), width), np.bool_)
    padded[:, : signs.shape[1]] = signs
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64, copy=False)


def worth(dims: int) -> NDArray[np.float32]:
    """What codes add to the similarity that differ in 0, 1, ... bits of ``dims``.

    >>> worth(4).tolist()
    [1.0, 0.125, 0.0, 0.0, 0.0]
    """
    cosine = 1 - 2 * np.arange(dims + 1) / dims
    return (np.maximum(cosine, 0) ** SELECTIVITY).astype(np.float32)


def similarity(a: Signature, b: Signature, dims: int) -> float:
    """How similar two signatures of descriptors of ``dims`` numbers are, 0 to 1."""
    _, here, there = np.intersect1d(a.words, b.words, assume_unique=True, return_indices=True)
    differing = np.bitwise_count(a.codes[here] ^ b.codes[there]).sum(axis=1, dtype=np.int64)
    total = float(worth(dims)[differing].sum(dtype=np.float64))
    return total / max(1.0, float(np.sqrt(float(len(a.words)) * len(b.words))))

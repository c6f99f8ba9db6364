"""Visual words: descriptors to look others up by, learned by k-means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Descriptors to learn from, per word, and rounds of Lloyd's algorithm.
SAMPLES, ROUNDS = 32, 5
#: Descriptors per word that there must be.
FEWEST = 16
#: Descriptors per block of distances: with 4,096 words 64 MB.
ROWS = 4096


def words_for(images: int) -> int:
    """How many words suit a collection: more of them make the lists of each shorter.

    >>> [words_for(images) for images in (100, 10_000, 1_000_000)]
    [1024, 4096, 16384]
    """
    if images <= 8_000:
        return 1024
    return 4096 if images <= 64_000 else 16384


def learn_words(descriptors: NDArray[Any], words: int, seed: int = 0) -> NDArray[np.float32]:
    """Centroids (K, D) of descriptors by k-means.

    Parameters
    ----------
    descriptors
        (N, D) of any type.
    words
        K; less if there are fewer than 16 descriptors for each.
    seed
        The same seed gives the same words.

    Examples
    --------
    >>> twice = np.repeat(np.array([[0, 0], [6, 9]]), 8, axis=0)
    >>> learn_words(twice, words=5)
    array([[3. , 4.5]], dtype=float32)
    """
    if not len(descriptors):
        raise ValueError("descriptors: expected at least one, got none")
    count = min(words, -(-len(descriptors) // FEWEST))
    order = np.random.default_rng(seed).permutation(len(descriptors))[: SAMPLES * count]
    known = np.asarray(descriptors[order], np.float32)
    centroids = known[:count].copy()  # any will do where there are many
    for _ in range(ROUNDS):
        sums, sizes = _sums(known, assign_words(known, centroids), count)
        filled = sizes > 0
        centroids[filled] = sums[filled] / sizes[filled, None]
    return centroids


def _sums(
    x: NDArray[np.float32], words: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Sums (K, D) of the rows of each word, and their numbers (K,)."""
    order = np.argsort(words, kind="stable")
    present, starts = np.unique(words[order], return_index=True)
    sums = np.zeros((count, x.shape[1]), np.float32)
    sums[present] = np.add.reduceat(x[order], starts, axis=0)
    return sums, np.bincount(words, minlength=count)


def assign_words(descriptors: NDArray[Any], centroids: NDArray[np.float32]) -> NDArray[np.int64]:
    """The nearest word of each descriptor, (N,).

    Parameters
    ----------
    descriptors
        (N, D) of any type.
    centroids
        (K, D).

    Examples
    --------
    >>> assign_words(np.array([[1, 0], [8, 8]], np.uint8), np.array([[9, 9], [0, 0]], np.float32))
    array([1, 0])
    """
    offsets = 0.5 * np.einsum("ij,ij->i", centroids, centroids)
    found = np.empty(len(descriptors), np.int64)
    for start in range(0, len(descriptors), ROWS):
        rows = slice(start, start + ROWS)
        scores = np.asarray(descriptors[rows], np.float32) @ centroids.T
        scores -= offsets
        found[rows] = scores.argmax(axis=1)
    return found

"""The compiled loop of :mod:`mkdesc.retrieval.segments`; apart, so that numba is imported late."""

from __future__ import annotations

import numpy as np

from mkdesc._support.bits_numba import count_ones


def add_scores(words, codes, starts, images, stored, worth, scores):
    """Add what the words of a query are worth to the scores of the images that have them.

    Parameters
    ----------
    words, codes : (M,) int64, (M, B) uint64
        The query.
    starts, images, stored : (K + 1,) int64, (R,) uint16, (R, B) uint64
        Of word w rows ``starts[w]`` to ``starts[w + 1]``: which image, and its code.
    worth : (D + 1,) float32
        By the number of bits that differ.
    scores : (N,) float32
    """
    blocks = codes.shape[1]
    for m in range(len(words)):
        for row in range(starts[words[m]], starts[words[m] + 1]):
            bits = np.uint64(0)
            for block in range(blocks):
                bits += count_ones(codes[m, block] ^ stored[row, block])
            scores[images[row]] += worth[bits]

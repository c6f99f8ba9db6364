"""The compiled loop of :mod:`mkdesc.matching.nearest`; apart, so that numba is imported late."""

from __future__ import annotations

import numpy as np


def best_of_block(scores, row, column, best_r, second_r, index_r, best_c, index_c):
    """Take a block of scores into account: the two best of each row, the best of each column.

    Of equal scores the first wins, in whatever blocks they come.

    Parameters
    ----------
    scores : (n, m) float32
    row, column : int
        Where the block begins.
    best_r, second_r, index_r : (n,) float32, float32, int64
    best_c, index_c : (m,) float32, int32
    """
    n, m = scores.shape
    for i in range(n):
        here = np.int32(row + i)
        first, second = np.float32(-np.inf), np.float32(-np.inf)
        for j in range(m):  # no branches: these are done many at a time
            value = scores[i, j]
            second = max(second, min(first, value))
            first = max(first, value)
        for j in range(m):
            value, known = scores[i, j], best_c[j]
            higher = value > known
            best_c[j] = value if higher else known
            index_c[j] = here if higher else index_c[j]
        known = best_r[i]
        second_r[i] = max(second_r[i], second, min(known, first))
        if first > known:
            best_r[i] = first
            for j in range(m):
                if scores[i, j] == first:
                    index_r[i] = column + j
                    break

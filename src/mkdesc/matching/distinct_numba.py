"""The compiled loop of :mod:`mkdesc.matching.distinct`; apart, so that numba is imported late."""

from __future__ import annotations

import numpy as np


def best_elsewhere(scores, row, x, y, apart, best, index, second, best_c, index_c):
    """The best of each row, the best that lies elsewhere, and the best of each column.

    Of equal scores the first wins.

    Parameters
    ----------
    scores : (n, m) float32
        Whole rows.
    row : int
        Where the block begins.
    x, y : (m,) float32
        Where what the columns stand for lies.
    apart : float
        Square of the distance beyond which something lies elsewhere.
    best, second, index : (n,) float32, float32, int64
        Written to; second is -inf where nothing lies elsewhere.
    best_c, index_c : (m,) float32, int32
        Brought up to date.
    """
    n, m = scores.shape
    for i in range(n):
        here = np.int32(row + i)
        first = np.float32(-np.inf)
        for j in range(m):  # no branches: these are done many at a time
            value, known = scores[i, j], best_c[j]
            first = max(first, value)
            higher = value > known
            best_c[j] = value if higher else known
            index_c[j] = here if higher else index_c[j]
        found = 0
        for j in range(m):
            if scores[i, j] == first:
                found = j
                break
        there_x, there_y = x[found], y[found]
        other = np.float32(-np.inf)
        for j in range(m):
            dx, dy = x[j] - there_x, y[j] - there_y
            value = scores[i, j] if dx * dx + dy * dy > apart else np.float32(-np.inf)
            other = max(other, value)
        best[i], index[i], second[i] = first, found, other

"""The compiled loop that keeps one keypoint a place."""

from __future__ import annotations

import numpy as np

#: Cells of the grid for each keypoint, at most.
CELLS = 4


def choose(x, y, radius, most, kept):
    """Keep each point unless one that was kept before is within the smaller of their radii.

    Parameters
    ----------
    x, y, radius : (N,) float64
        Points, the strongest first; N > 0.
    most : int
        How many to keep at most.
    kept : (most,) int64
        Indices of those that are kept are written here.

    Returns
    -------
    int
        How many are kept.
    """
    n = len(x)
    left, top = x.min(), y.min()
    wide, high = x.max() - left, y.max() - top
    # Cells no smaller than any radius: a neighbour is in one of 3 x 3. And not too many of them.
    side = max(radius.max(), np.sqrt(wide * high / (CELLS * n)), max(wide, high) / (CELLS * n))
    side = max(side, 1e-9)
    columns, rows = np.int64(wide / side) + 1, np.int64(high / side) + 1
    first = np.full(rows * columns, -1, np.int64)  # of each cell, the point that came last
    after = np.empty(n, np.int64)  # of each point, the one of its cell that came before it
    count = 0
    for i in range(n):
        if count == most:
            break
        column = min(np.int64((x[i] - left) / side), columns - 1)
        row = min(np.int64((y[i] - top) / side), rows - 1)
        free = True
        for v in range(row - 1 if row > 0 else 0, min(row + 2, rows)):
            for u in range(column - 1 if column > 0 else 0, min(column + 2, columns)):
                j = first[v * columns + u]
                while j >= 0:
                    reach = min(radius[i], radius[j])
                    if (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2 <= reach * reach:
                        free = False
                        break
                    j = after[j]
                if not free:
                    break
            if not free:
                break
        if free:
            cell = row * columns + column
            after[i] = first[cell]
            first[cell] = i
            kept[count] = i
            count += 1
    return count

"""The compiled loop of :mod:`mkdesc.matching.guided`; apart, so that numba is imported late."""

from __future__ import annotations

import numpy as np


def best_allowed(a, b, here, there, flat, within, apart, nearest, best, second, best_c, index_c):
    """The nearest of those that a geometry allows, for each row, and for each column.

    Squared distances; of equal ones the first wins. Infinite, and -1 for an index, where the
    geometry allows none.

    Parameters
    ----------
    a, b : (n, d), (m, d) float32
        Descriptors.
    here, there : (n, 5), (m, 5) float64
        x, y, and what the geometry makes of them in the other image: the place (x, y, 1 if there
        is one and 0 if it is beyond the horizon), or the line (a, b, c).
    flat : bool
        Whether these are places, not lines.
    within, apart : float
        Pixels that a match may be off; beyond which the second nearest must lie from the nearest.
    nearest, best, second : (n,) int64, float32, float32
    best_c, index_c : (m,) float32, int64
    """
    n, m, d = len(a), len(b), a.shape[1]
    found = np.empty(m, np.int64)
    distances = np.empty(m, np.float32)
    for i in range(n):
        x, y, u, v, w = here[i]
        count = 0
        for j in range(m):
            if flat:
                off = np.inf
                if w > 0:
                    off = (there[j, 0] - u) ** 2 + (there[j, 1] - v) ** 2
                if there[j, 4] > 0:
                    off = min(off, (x - there[j, 2]) ** 2 + (y - there[j, 3]) ** 2)
            else:
                value = u * there[j, 0] + v * there[j, 1] + w
                length = max(u * u + v * v, there[j, 2] ** 2 + there[j, 3] ** 2)
                off = value * value / max(length, 1e-300)
            if off > within * within:
                continue
            total = np.float32(0)
            for k in range(d):
                difference = a[i, k] - b[j, k]
                total += difference * difference
            found[count], distances[count] = j, total
            count += 1
            if total < best_c[j]:
                best_c[j], index_c[j] = total, i
        first, at = np.float32(np.inf), -1
        for c in range(count):
            if distances[c] < first:
                first, at = distances[c], found[c]
        other = np.float32(np.inf)
        for c in range(count):
            away = (there[found[c], 0] - there[at, 0]) ** 2
            away += (there[found[c], 1] - there[at, 1]) ** 2
            if away > apart * apart:
                other = min(other, distances[c])
        nearest[i], best[i], second[i] = at, first, other

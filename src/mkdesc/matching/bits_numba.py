"""The compiled loop of :mod:`mkdesc.matching.bits`; apart, so that numba is imported late."""

from __future__ import annotations

import numpy as np

from mkdesc._support.bits_numba import count_ones
from mkdesc.matching.bits import FAR

#: Words of 64 bits that are compared at a time.
WORDS = 4
#: What a distance is shifted by to make room for a place.
ROOM = 16


def nearest_of_block(a, b, count, best_r, second_r, index_r, best_c, index_c):
    """The two nearest of each row, and the nearest of each column, by bits that differ.

    A distance and a place make one number, so that the smallest is the nearest, and of equally
    near ones the first.

    Parameters
    ----------
    a : (n, W) uint64
        At most 65,536 rows; W is a multiple of :data:`WORDS`.
    b : (K, W, C) uint64
        C columns in each of K blocks that stay in the cache.
    count : int
        Columns that are real; the last block may have others behind them.
    best_r, second_r, index_r : (n,) uint32, uint32, int64
        Distances, and columns; :data:`FAR` where there is none.
    best_c, index_c : (K C,) uint32, int64
    """
    n, words = a.shape
    blocks, _, columns = b.shape
    distances = np.empty(columns, np.uint32)
    nearest = np.empty(columns, np.uint32)
    none = np.uint32(0xFFFFFFFF)
    room = np.uint32(ROOM)
    best_r[:] = FAR
    second_r[:] = FAR
    index_r[:] = 0
    for k in range(blocks):
        real = min(columns, count - k * columns)
        nearest[:] = none
        for i in range(n):
            for w in range(0, words, WORDS):
                p, q, r, s = a[i, w], a[i, w + 1], a[i, w + 2], a[i, w + 3]
                bp, bq, br, bs = b[k, w], b[k, w + 1], b[k, w + 2], b[k, w + 3]
                if w == 0:
                    distances[:] = 0
                for j in range(columns):
                    one = count_ones(p ^ bp[j]) + count_ones(q ^ bq[j])
                    two = count_ones(r ^ br[j]) + count_ones(s ^ bs[j])
                    distances[j] += np.uint32(one + two)
            for j in range(real, columns):
                distances[j] = FAR
            here, one = np.uint32(i), none
            for j in range(columns):  # no branches: these are done many at a time
                near = distances[j] << room
                nearest[j] = min(nearest[j], near | here)
                distances[j] = near | np.uint32(j)
            for j in range(columns):
                one = min(one, distances[j])
            two = none
            if one >> room < second_r[i]:
                for j in range(columns):
                    two = min(two, none if distances[j] == one else distances[j])
            near, next_near = one >> room, two >> room
            if near < best_r[i]:
                second_r[i] = min(best_r[i], next_near)
                best_r[i] = near
                index_r[i] = k * columns + (one & np.uint32(FAR))
            else:
                second_r[i] = min(second_r[i], near)
        for j in range(columns):
            best_c[k * columns + j] = nearest[j] >> room
            index_c[k * columns + j] = nearest[j] & np.uint32(FAR)

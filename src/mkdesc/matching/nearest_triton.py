"""The kernel that finds nearest neighbours, block by block: no matrix of distances is kept."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def search(
    a, b, norms, counts, indices, best, second, n, m,
    D: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    SECOND: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """For each of ``a`` the nearest of ``b``, its score, and the score of the second nearest.

    A score is x.y - |y|^2 / 2: the higher, the nearer. Of equal scores the first wins.

    Parameters
    ----------
    a, b : (P, n, D) and (P, m, D) float16 or float32
    norms : (P, m) float32
        |y|^2 / 2.
    counts : (P,) int64
        How many of ``b`` there are in each pair.
    indices, best, second : (P, n) int64, float32, float32
        Written; ``second`` only if SECOND.
    PRECISION
        Of products of float32.
    """
    pair = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, WIDE)
    real = row < n
    x = tl.load(
        a + (pair * n + row)[:, None] * D + k[None, :],
        mask=real[:, None] & (k < D)[None, :],
        other=0.0,
    )
    count = tl.load(counts + pair)
    high = tl.full((ROWS,), float("-inf"), tl.float32)
    low = tl.full((ROWS,), float("-inf"), tl.float32)
    place = tl.zeros((ROWS,), tl.int32)
    for start in range(0, m, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        y = tl.load(
            b + (pair * m + column)[None, :] * D + k[:, None],
            mask=(column < m)[None, :] & (k < D)[:, None],
            other=0.0,
        )
        norm = tl.load(norms + pair * m + column, mask=column < m, other=0.0)
        scores = tl.dot(x, y, input_precision=PRECISION) - norm[None, :]
        scores = tl.where((column < count)[None, :], scores, float("-inf"))
        top, where = tl.max(scores, axis=1, return_indices=True)
        if SECOND:
            others = tl.where(
                tl.arange(0, COLUMNS)[None, :] == where[:, None], float("-inf"), scores
            )
            low = tl.maximum(tl.maximum(low, tl.max(others, axis=1)), tl.minimum(high, top))
        better = top > high
        place = tl.where(better, start + where, place)
        high = tl.maximum(high, top)
    to = pair * n + row
    tl.store(indices + to, place.to(tl.int64), mask=real)
    tl.store(best + to, high, mask=real)
    if SECOND:
        tl.store(second + to, low, mask=real)

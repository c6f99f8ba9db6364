"""Sums to normalised raw descriptors, and the power of a head, row by row."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def finish_rows(
    sums,
    chosen,
    factors,
    part_of,
    centre,
    out,
    n,
    K: tl.constexpr,
    D: tl.constexpr,
    TERMS: tl.constexpr,
    PARTS: tl.constexpr,
    POWER: tl.constexpr,
    AGAIN: tl.constexpr,
    ROWS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Sums (n, K), as ``chosen`` and times factors (TERMS, D), as unit vectors minus a centre.

    Each of the parts is normalised; then all numbers are raised to a power, if it is not 1, and
    normalised again, if AGAIN.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDE)
    real = column < D
    keep = (row < n)[:, None] & real[None, :]
    value = tl.zeros((ROWS, WIDE), tl.float32)
    for t in tl.static_range(TERMS):
        which = tl.load(chosen + t * D + column, mask=real, other=0)
        factor = tl.load(factors + t * D + column, mask=real, other=0.0)
        term = tl.load(sums + row[:, None] * K + which[None, :], mask=keep, other=0.0)
        value += term.to(tl.float32) * factor[None, :]
    part = tl.load(part_of + column, mask=real, other=0)[None, :]
    norm = tl.zeros((ROWS, WIDE), tl.float32)
    for p in tl.static_range(PARTS):
        total = tl.sum(tl.where(part == p, value * value, 0.0), axis=1)[:, None]
        norm = tl.where(part == p, total, norm)
    value = value * tl.rsqrt(tl.maximum(norm * PARTS, 1e-37))
    if POWER != 1.0:
        size = tl.exp2(POWER * tl.log2(tl.maximum(tl.abs(value), 1e-30)))
        value = tl.where(value == 0.0, 0.0, tl.where(value < 0.0, -size, size))
    if AGAIN:
        total = tl.sum(value * value, axis=1)[:, None]
        value = value * tl.rsqrt(tl.maximum(total, 1e-37))
    value = value - tl.load(centre + column, mask=real, other=0.0)[None, :]
    tl.store(out + row[:, None] * D + column[None, :], value.to(out.dtype.element_ty), mask=keep)


@triton.jit
def rectify_rows(rows, n, D: tl.constexpr, START: tl.constexpr, BLOCK: tl.constexpr):
    """In n numbers of rows (., D), negative ones from column START on become zero, in place."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(rows + at, mask=at < n, other=0.0)
    value = tl.where((at % D >= START) & (value < 0.0), 0.0, value)
    tl.store(rows + at, value.to(rows.dtype.element_ty), mask=at < n)


@triton.jit
def unit_rows(rows, out, n, D: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """Rows (n, D) divided by their norms."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDE)[None, :]
    keep = (row < n)[:, None] & (column < D)
    at = row[:, None] * D + column
    value = tl.load(rows + at, mask=keep, other=0.0).to(tl.float32)
    total = tl.sum(value * value, axis=1)[:, None]
    value = value * tl.rsqrt(tl.maximum(total, 1e-37))
    tl.store(out + at, value.to(out.dtype.element_ty), mask=keep)

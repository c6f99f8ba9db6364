"""The sums of the extended descriptor, a few patches per program, entirely on the chip.

Smoothing, derivatives and sums are products of 32 x 32 matrices in half precision with single
accumulators. Patches lie on top of each other: rows are (patch, y) and, after the transposition
between the two axes, (patch, x).
"""

from __future__ import annotations

import triton
import triton.language as tl

from mkdesc.compute.torch.pixels_triton import direction, load_pixels


@triton.jit
def turned(a, COUNT: tl.constexpr):
    """Transpose each of COUNT squares of 32 rows that lie on top of each other; half precision."""
    squares = tl.reshape(a.to(tl.float16), (COUNT, 32, 32))
    return tl.reshape(tl.permute(squares, (0, 2, 1)), (COUNT * 32, 32))


@triton.jit
def add_up(a, b, c, d, first, functions, folding, sums, patch_of, keep_patch, across_of,
           ROWS: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, WIDE: tl.constexpr,
           PLANES: tl.constexpr, COUNT: tl.constexpr):
    """Sums of four planes, the first of which has the number ``first``."""
    # Along y from registers, four times; then along x, all at once.
    a = tl.dot(a.to(tl.float16), functions).to(tl.float16)
    b = tl.dot(b.to(tl.float16), functions).to(tl.float16)
    c = tl.dot(c.to(tl.float16), functions).to(tl.float16)
    d = tl.dot(d.to(tl.float16), functions).to(tl.float16)
    four = tl.reshape(tl.join(tl.join(a, b), tl.join(c, d)), (ROWS, 4 * WIDE))
    found = tl.dot(folding, four)  # (COUNT * 8, 4 * WIDE)
    column = tl.arange(0, 4 * WIDE)
    down = column // 4
    plane = first + (column % 4) // 2 + 2 * (column % 2)
    to = patch_of * (PLANES * DOWN * ACROSS) + across_of
    to = to[:, None] + (plane * (DOWN * ACROSS) + down * ACROSS)[None, :]
    keep = (keep_patch & (across_of < ACROSS))[:, None]
    keep = keep & ((down < DOWN) & (plane < PLANES))[None, :]
    tl.store(sums + to, found.to(sums.dtype.element_ty), mask=keep)


@triton.jit
def extended_sums(patches, matrices, functions_of_y, folding_of_x, sums, n,
                  scale_of_type, softening, epsilon_square, flat_square, shape_epsilon,
                  W: tl.constexpr, FACTOR: tl.constexpr, SIDE: tl.constexpr, PAIRS: tl.constexpr,
                  FLOATS: tl.constexpr, COUNT: tl.constexpr, DOWN: tl.constexpr,
                  ACROSS: tl.constexpr, WIDE: tl.constexpr):
    """Sums (n, 23, DOWN, ACROSS) of patches (n, W, W), COUNT patches per program."""
    ROWS: tl.constexpr = COUNT * 32
    row = tl.arange(0, ROWS)
    x = tl.arange(0, 32)[None, :]
    first = tl.program_id(0).to(tl.int64) * COUNT
    patch, y = (first + row // 32)[:, None], (row % 32)[:, None]
    inside = (patch < n) & (y < SIDE) & (x < SIDE)
    pixels = load_pixels(patches, patch, y, x, inside, W, FACTOR, PAIRS)
    right = load_pixels(patches, patch, y, x + 1, inside & (x + 1 < SIDE), W, FACTOR, PAIRS)
    below = load_pixels(patches, patch, y + 1, x, inside & (y + 1 < SIDE), W, FACTOR, PAIRS)
    differ_x = tl.where(x + 1 < SIDE, pixels - right, 0.0)
    differ_y = tl.where(y + 1 < SIDE, pixels - below, 0.0)
    # About zero, and for floats up to 1000, which half precision can hold; integers stay whole.
    squares = tl.reshape(pixels, (COUNT, 1024))
    middle = tl.sum(squares, axis=1) / (SIDE * SIDE)
    if FLOATS:
        keep = tl.reshape(tl.broadcast_to(inside, (ROWS, 32)), (COUNT, 1024))
        most = tl.max(tl.where(keep, tl.abs(squares - middle[:, None]), 0.0), axis=1)
        stretch = 1000.0 / tl.maximum(most, 1e-30)
        scale = scale_of_type / stretch
        by = tl.reshape(tl.broadcast_to(stretch[:, None], (COUNT, 32)), (ROWS,))[:, None]
        differ_x, differ_y = differ_x * by, differ_y * by
    else:
        middle = tl.floor(middle)
        scale = middle * 0 + scale_of_type
        by = 1.0
    away = tl.reshape(tl.broadcast_to(middle[:, None], (COUNT, 32)), (ROWS,))[:, None]
    pixels = tl.where(inside, (pixels - away) * by, 0.0)

    # Constants: transposed matrices, one after the other.
    square = (tl.arange(0, 32)[:, None] * 32 + x)
    smooth = tl.load(matrices + square)
    slope = tl.load(matrices + 1024 + square)
    bend = tl.load(matrices + 2048 + square)
    slope_of_pixels = tl.load(matrices + 3072 + square)

    # Along x, then along y; all of what follows is transposed: rows (patch, x), columns y.
    differ_x = differ_x.to(tl.float16)
    in_x = turned(tl.dot(differ_x, slope), COUNT)
    in_y = turned(tl.dot(differ_y.to(tl.float16), smooth), COUNT)
    blurred = tl.dot(turned(tl.dot(pixels.to(tl.float16), smooth), COUNT), smooth)
    bent = turned(tl.dot(differ_x, bend), COUNT)

    whole = tl.reshape(blurred, (COUNT, 1024))
    mean = tl.sum(whole, axis=1) / (SIDE * SIDE)
    square_sum = tl.sum(whole * whole, axis=1) / (SIDE * SIDE) - mean * mean
    gain = scale / (tl.sqrt(tl.maximum(square_sum, 0.0)) * scale + softening)
    gain = tl.reshape(tl.broadcast_to(gain[:, None], (COUNT, 32)), (ROWS,))[:, None]
    mean = tl.reshape(tl.broadcast_to(mean[:, None], (COUNT, 32)), (ROWS,))[:, None]

    functions = tl.load(functions_of_y + tl.arange(0, 32)[:, None] * WIDE
                        + tl.arange(0, WIDE)[None, :])
    tall = tl.arange(0, COUNT * 8)
    folding = tl.load(folding_of_x + tall[:, None] * ROWS + tl.arange(0, ROWS)[None, :])
    patch_of, across_of = first + tall // 8, tall % 8
    there = patch_of < n

    # Gradients.
    u, v = tl.dot(in_x, smooth) * gain, tl.dot(in_y, slope) * gain
    length, cos, sin = direction(u, v, flat_square)
    weight = tl.sqrt(tl.sqrt(length + epsilon_square))
    c1, s1 = weight * cos, weight * sin
    c2, s2 = c1 * cos - s1 * sin, s1 * cos + c1 * sin
    value = (blurred - mean) * gain
    size = tl.abs(value)
    squeezed = 1.0 / (1.0 + size)
    z = value * squeezed
    add_up(weight, c1, s1, c2, 0, functions, folding, sums, patch_of, there, across_of,
           ROWS, DOWN, ACROSS, WIDE, 23, COUNT)
    c3, s3 = c2 * cos - s2 * sin, s2 * cos + c2 * sin
    add_up(s2, c3, s3, z, 4, functions, folding, sums, patch_of, there, across_of,
           ROWS, DOWN, ACROSS, WIDE, 23, COUNT)
    add_up(size * squeezed, z * weight, z * c1, z * s1, 8, functions, folding, sums, patch_of,
           there, across_of, ROWS, DOWN, ACROSS, WIDE, 23, COUNT)

    # Second derivatives.
    xx, yy = tl.dot(bent, smooth), tl.dot(in_y, bend)
    g, d = (xx + yy) * gain, (xx - yy) * gain
    e = tl.dot(in_x, slope_of_pixels) * (gain * 0.5)
    unit = tl.rsqrt(g * g + d * d + e * e + shape_epsilon)
    root = tl.rsqrt(unit)
    g, d, e = g * unit, d * unit, e * unit
    rg, rd, re = root * g, root * d, root * e
    add_up(z * c2, z * s2, root, rg, 12, functions, folding, sums, patch_of, there, across_of,
           ROWS, DOWN, ACROSS, WIDE, 23, COUNT)
    add_up(rd, re, rg * g - root * (1.0 / 3.0), rg * d, 16, functions, folding, sums, patch_of,
           there, across_of, ROWS, DOWN, ACROSS, WIDE, 23, COUNT)
    add_up(rg * e, rd * d - re * e, rd * e, rd * e, 20, functions, folding, sums, patch_of, there,
           across_of, ROWS, DOWN, ACROSS, WIDE, 23, COUNT)

"""The sums of the extended descriptor, a few patches per program, entirely on the chip.

Smoothing, derivatives and sums are products of 32 x 32 matrices in half precision with single
accumulators. Patches lie on top of each other: rows are (patch, y) and, after the transposition
between the two axes, (patch, x).
"""

from __future__ import annotations

import triton
import triton.language as tl

from mkdesc.compute.torch.pixels_triton import direction, load_halves, load_pairs, load_pixels


@triton.jit
def turned(a, COUNT: tl.constexpr):
    """Transpose each of COUNT squares of 32 rows that lie on top of each other; half precision."""
    squares = tl.reshape(a.to(tl.float16), (COUNT, 32, 32))
    return tl.reshape(tl.permute(squares, (0, 2, 1)), (COUNT * 32, 32))


@triton.jit
def four_along_y(a, b, c, d, functions, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """Sums along y of four planes, from registers, side by side: (ROWS, 4 * WIDE)."""
    a = tl.dot(a, functions).to(tl.float16)
    b = tl.dot(b, functions).to(tl.float16)
    c = tl.dot(c, functions).to(tl.float16)
    d = tl.dot(d, functions).to(tl.float16)
    return tl.reshape(tl.join(tl.join(a, b), tl.join(c, d)), (ROWS, 4 * WIDE))


@triton.jit
def store_sums(
    four,
    first,
    folding,
    to,
    keep,
    DOWN: tl.constexpr,
    ACROSS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Sum four planes, the first of which has the number ``first``, along x, all at once."""
    found = tl.dot(folding, four)  # (COUNT * 8, 4 * WIDE)
    column = tl.arange(0, 4 * WIDE)
    down = column // 4
    plane = first + (column % 4) // 2 + 2 * (column % 2)
    to = to[:, None] + (plane * (DOWN * ACROSS) + down * ACROSS)[None, :]
    keep = keep[:, None] & ((down < DOWN) & (plane < 23))[None, :]
    tl.store(to, found.to(to.dtype.element_ty), mask=keep)


@triton.jit
def spread(a, COUNT: tl.constexpr):
    """One number per patch (COUNT,), for each of its rows: (COUNT * 32, 1)."""
    return tl.reshape(tl.broadcast_to(a[:, None], (COUNT, 32)), (COUNT * 32,))[:, None]


@triton.jit
def extended_sums(
    patches,
    matrices,
    functions_of_y,
    folding_of_x,
    sums,
    n,
    scale_of_type,
    softening,
    epsilon_square,
    flat_square,
    shape_epsilon,
    W: tl.constexpr,
    FACTOR: tl.constexpr,
    SIDE: tl.constexpr,
    WORDS: tl.constexpr,
    FLOATS: tl.constexpr,
    WHOLE: tl.constexpr,
    COUNT: tl.constexpr,
    DOWN: tl.constexpr,
    ACROSS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Sums (n, 23, DOWN, ACROSS) of patches (n, W, W), COUNT patches per program.

    ``WORDS``: patches of 64 px are bytes, seen as words of four. ``FLOATS``: they are floats;
    ``WHOLE``: of 64 px.
    """
    ROWS: tl.constexpr = COUNT * 32
    row = tl.arange(0, ROWS)
    x = tl.arange(0, 32)[None, :]
    first = tl.program_id(0) * COUNT
    patches += first.to(tl.int64) * (W * W // 4 if WORDS else W * W)
    sums += first.to(tl.int64) * (23 * DOWN * ACROSS)
    patch, y = (row // 32)[:, None], (row % 32)[:, None]
    there = first + patch < n
    # Constants: transposed matrices, one after the other.
    square = tl.arange(0, 32)[:, None] * 32 + x
    smooth = tl.load(matrices + square)
    slope = tl.load(matrices + 1024 + square)
    bend = tl.load(matrices + 2048 + square)
    slope_of_pixels = tl.load(matrices + 3072 + square)

    # Pixels about zero and differences to the next, in numbers that half precision can hold:
    # integers as they are, floats up to 1000.
    if FLOATS:
        inside = there & (y < SIDE) & (x < SIDE)
        if WHOLE:
            pixels = load_pairs(patches, patch, y, there, W)
            below = load_pairs(patches, patch, y + 1, there & (y < 31), W)
        else:
            pixels = load_pixels(patches, patch, y, x, inside, W, FACTOR)
            below = load_pixels(patches, patch, y + 1, x, inside & (y + 1 < SIDE), W, FACTOR)
        middle = tl.sum(tl.reshape(pixels, (COUNT, 1024)), axis=1) / (SIDE * SIDE)
        pixels = tl.where(inside, pixels - spread(middle, COUNT), 0.0)
        most = tl.max(tl.reshape(tl.abs(pixels), (COUNT, 1024)), axis=1)
        stretch = 1000.0 / tl.maximum(most, 1e-30)
        scale = scale_of_type / stretch
        by = spread(stretch, COUNT)
        # Beyond the patch there are no differences: what is stretched there may be infinite.
        below = tl.where(inside & (y + 1 < SIDE), below - spread(middle, COUNT), pixels)
        differ_y = (pixels - below) * by
        # What half precision leaves out counts in differences: it is the second of two numbers.
        exact = pixels * by
        pixels = exact.to(tl.float16)
        rest = (exact - pixels.to(tl.float32)).to(tl.float16)
        next_to = tl.load(matrices + 4096 + square)
        differ_x = (tl.dot(pixels, next_to) + tl.dot(rest, next_to)).to(tl.float16)
    else:
        if WORDS:
            pixels = load_halves(patches, patch, y, there, W)
            below = load_halves(patches, patch, y + 1, there & (y < 31), W)
        else:
            inside = there & (y < SIDE) & (x < SIDE)
            pixels = load_pixels(patches, patch, y, x, inside, W, FACTOR).to(tl.float16)
            inside = inside & (y + 1 < SIDE)
            below = load_pixels(patches, patch, y + 1, x, inside, W, FACTOR).to(tl.float16)
        total = tl.sum(tl.reshape(pixels.to(tl.float32), (COUNT, 1024)), axis=1)
        middle = spread(tl.floor(total / (SIDE * SIDE)).to(tl.float16), COUNT)
        scale = total * 0.0 + scale_of_type
        differ_x = tl.dot(pixels, tl.load(matrices + 4096 + square)).to(tl.float16)
        differ_y = tl.where(y + 1 < SIDE, pixels - below, 0.0)
        pixels = tl.where((y < SIDE) & (x < SIDE), pixels - middle, 0.0).to(tl.float16)

    # Along x, then along y; all of what follows is transposed: rows (patch, x), columns y.
    blurred = tl.dot(turned(tl.dot(pixels, smooth), COUNT), smooth)
    whole = tl.reshape(blurred, (COUNT, 1024))
    mean = tl.sum(whole, axis=1) / (SIDE * SIDE)
    variance = tl.sum(whole * whole, axis=1) / (SIDE * SIDE) - mean * mean
    gain = scale / (tl.sqrt(tl.maximum(variance, 0.0)) * scale + softening)
    value = (blurred - spread(mean, COUNT)) * spread(gain, COUNT)
    size = tl.abs(value)
    squeezed = tl.rsqrt(1.0 + size)
    z = (value * (squeezed * squeezed)).to(tl.float16)
    gain = spread(gain, COUNT).to(tl.float16)
    in_x = turned(tl.dot(differ_x, slope), COUNT) * gain
    in_y = turned(tl.dot(differ_y.to(tl.float16), smooth), COUNT) * gain

    functions = tl.load(
        functions_of_y + tl.arange(0, 32)[:, None] * WIDE + tl.arange(0, WIDE)[None, :]
    )
    tall = tl.arange(0, COUNT * 8)
    folding = tl.load(folding_of_x + tall[:, None] * ROWS + tl.arange(0, ROWS)[None, :])
    patch_of, across_of = tall // 8, tall % 8
    to = sums + (patch_of * (23 * DOWN * ACROSS) + across_of)
    keep = (first + patch_of < n) & (across_of < ACROSS)

    length, cos, sin = direction(tl.dot(in_x, smooth), tl.dot(in_y, slope), flat_square)
    weight = tl.rsqrt(tl.rsqrt(length + epsilon_square)).to(tl.float16)
    cos, sin = cos.to(tl.float16), sin.to(tl.float16)
    c1, s1 = weight * cos, weight * sin
    c2, s2 = c1 * cos - s1 * sin, s1 * cos + c1 * sin
    four = four_along_y(weight, c1, s1, c2, functions, ROWS, WIDE)
    store_sums(four, 0, folding, to, keep, DOWN, ACROSS, WIDE)
    four = four_along_y(s2, c2 * cos - s2 * sin, s2 * cos + c2 * sin, z, functions, ROWS, WIDE)
    store_sums(four, 4, folding, to, keep, DOWN, ACROSS, WIDE)
    four = four_along_y(tl.abs(z), z * weight, z * c1, z * s1, functions, ROWS, WIDE)
    store_sums(four, 8, folding, to, keep, DOWN, ACROSS, WIDE)

    bent = turned(tl.dot(differ_x, bend), COUNT) * gain
    xx, yy, e = tl.dot(bent, smooth), tl.dot(in_y, bend), tl.dot(in_x, slope_of_pixels)
    g, d = xx + yy, xx - yy
    unit = tl.rsqrt(g * g + d * d + e * e + shape_epsilon)
    root = tl.rsqrt(unit).to(tl.float16)
    g, d, e = (g * unit).to(tl.float16), (d * unit).to(tl.float16), (e * unit).to(tl.float16)
    rg, rd, re = root * g, root * d, root * e
    four = four_along_y(z * c2, z * s2, root, rg, functions, ROWS, WIDE)
    store_sums(four, 12, folding, to, keep, DOWN, ACROSS, WIDE)
    four = four_along_y(rd, re, rg * g - root * 0.3333333333333333, rg * d, functions, ROWS, WIDE)
    store_sums(four, 16, folding, to, keep, DOWN, ACROSS, WIDE)
    four = four_along_y(rg * e, rd * d - re * e, rd * e, rd * e, functions, ROWS, WIDE)
    store_sums(four, 20, folding, to, keep, DOWN, ACROSS, WIDE)

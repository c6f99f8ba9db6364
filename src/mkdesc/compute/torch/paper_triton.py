"""The sums of the paper's descriptors: gradients of patches, then products with functions."""

from __future__ import annotations

import triton
import triton.language as tl

from mkdesc.compute.torch.pixels_triton import direction, load_pixels


@triton.jit
def paper_pixels(
    patches,
    matrices,
    out,
    n,
    scale_of_type,
    epsilon_square,
    epsilon,
    W: tl.constexpr,
    SIDE: tl.constexpr,
    FLOATS: tl.constexpr,
):
    """Weight, cosine and sine of the gradients of a patch (W, W), to out (3, n, SIDE * SIDE).

    SIDE is a power of two; pixels are numbered by x, then y.
    """
    y, x = tl.arange(0, SIDE)[:, None], tl.arange(0, SIDE)[None, :]
    patch = tl.program_id(0).to(tl.int64)
    patches += patch * (W * W)
    square = tl.arange(0, SIDE)[:, None] * SIDE + x
    inside = (y < W) & (x < W)
    pixels = load_pixels(patches, 0, y, x, inside, W, 1)
    below = load_pixels(patches, 0, y + 1, x, inside & (y + 1 < W), W, 1)
    differ_y = tl.where(y + 1 < W, pixels - below, 0.0)
    scale = scale_of_type
    if not FLOATS:  # half precision holds bytes and their differences
        differ_x = tl.dot(pixels.to(tl.float16), tl.load(matrices + 2 * SIDE * SIDE + square))
    else:  # and floats up to 1000
        right = load_pixels(patches, 0, y, x + 1, inside & (x + 1 < W), W, 1)
        differ_x = tl.where(x + 1 < W, pixels - right, 0.0)
        most = tl.max(tl.maximum(tl.abs(differ_x), tl.abs(differ_y)))
        stretch = 1000.0 / tl.maximum(most, 1e-30)
        scale = scale_of_type / stretch
        differ_x, differ_y = differ_x * stretch, differ_y * stretch
    smooth = tl.load(matrices + square)
    slope = tl.load(matrices + SIDE * SIDE + square)
    in_x = tl.trans(tl.dot(differ_x.to(tl.float16), slope).to(tl.float16))
    in_y = tl.trans(tl.dot(differ_y.to(tl.float16), smooth).to(tl.float16))
    u, v = tl.dot(in_x, smooth), tl.dot(in_y, slope)
    length, cos, sin = direction(u, v, 0.0)
    weight = tl.sqrt(tl.sqrt(length * (scale * scale) + epsilon_square) + epsilon)
    to = out + patch * (SIDE * SIDE) + square
    step = n.to(tl.int64) * (SIDE * SIDE)
    tl.store(to, weight.to(tl.float16))
    tl.store(to + step, cos.to(tl.float16))
    tl.store(to + 2 * step, sin.to(tl.float16))


@triton.jit
def load_three(pixels, at, keep, step):
    """Weight, cosine and sine of some pixels of some patches."""
    weight = tl.load(pixels + at, mask=keep, other=0.0)
    cos = tl.load(pixels + step + at, mask=keep, other=0.0)
    sin = tl.load(pixels + 2 * step + at, mask=keep, other=0.0)
    return weight, cos, sin


@triton.jit
def store_sums(sums, found, row, keep, plane, WIDE: tl.constexpr):
    """Keep the sums of one of seven planes."""
    to = row * (7 * WIDE) + plane * WIDE + tl.arange(0, WIDE)[None, :]
    tl.store(sums + to, found, mask=keep)


@triton.jit
def paper_sums(
    pixels,
    functions,
    sums,
    n,
    PIXELS: tl.constexpr,
    ROWS: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sums (n, 7, WIDE) of what :func:`paper_pixels` found, times functions (4, PIXELS, WIDE).

    Half of the programs take the harmonics 0 and 1 of the gradient angle, half 2 and 3.
    """
    start = tl.program_id(1) * ROWS
    row = tl.arange(0, ROWS)[:, None]
    keep = start + row < n
    pixels += start.to(tl.int64) * PIXELS
    sums += start.to(tl.int64) * (7 * WIDE)
    step = n.to(tl.int64) * PIXELS
    at = row * PIXELS + tl.arange(0, BLOCK)[None, :]
    inner = tl.arange(0, BLOCK)[:, None] * WIDE + tl.arange(0, WIDE)[None, :]
    if tl.program_id(0) == 0:
        sum_0 = tl.zeros((ROWS, WIDE), tl.float32)
        sum_c = tl.zeros((ROWS, WIDE), tl.float32)
        sum_s = tl.zeros((ROWS, WIDE), tl.float32)
        for k in range(0, PIXELS, BLOCK):
            weight, cos, sin = load_three(pixels, at + k, keep, step)
            zeroth = tl.load(functions + k * WIDE + inner)
            first = tl.load(functions + PIXELS * WIDE + k * WIDE + inner)
            sum_0 = tl.dot(weight, zeroth, sum_0)
            sum_c = tl.dot(weight * cos, first, sum_c)
            sum_s = tl.dot(weight * sin, first, sum_s)
        store_sums(sums, sum_0, row, keep, 0, WIDE)
        store_sums(sums, sum_c, row, keep, 1, WIDE)
        store_sums(sums, sum_s, row, keep, 2, WIDE)
    else:
        sum_c = tl.zeros((ROWS, WIDE), tl.float32)
        sum_s = tl.zeros((ROWS, WIDE), tl.float32)
        sum_d = tl.zeros((ROWS, WIDE), tl.float32)
        sum_t = tl.zeros((ROWS, WIDE), tl.float32)
        for k in range(0, PIXELS, BLOCK):
            weight, cos, sin = load_three(pixels, at + k, keep, step)
            second = tl.load(functions + 2 * PIXELS * WIDE + k * WIDE + inner)
            third = tl.load(functions + 3 * PIXELS * WIDE + k * WIDE + inner)
            c, s = weight * (cos * cos - sin * sin), weight * (cos * sin * 2.0)
            sum_c = tl.dot(c, second, sum_c)
            sum_s = tl.dot(s, second, sum_s)
            sum_d = tl.dot(c * cos - s * sin, third, sum_d)
            sum_t = tl.dot(s * cos + c * sin, third, sum_t)
        store_sums(sums, sum_c, row, keep, 3, WIDE)
        store_sums(sums, sum_s, row, keep, 4, WIDE)
        store_sums(sums, sum_d, row, keep, 5, WIDE)
        store_sums(sums, sum_t, row, keep, 6, WIDE)

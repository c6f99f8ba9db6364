"""The kernels of the learned detector: normalisation, convolutions, maxima, mean gradients.

Images are of shape (B, H, W), one after the other; programs take so many of their pixels.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sum_columns(
    images, sums, squares, n, height, width, RADIUS: tl.constexpr, BLOCK: tl.constexpr
):
    """Sums of pixels, and of their squares, above and below each: as many as there are."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    y = (at // width) % height
    total = tl.zeros((BLOCK,), tl.float64)
    square = tl.zeros((BLOCK,), tl.float64)
    for k in range(-RADIUS, RADIUS + 1):
        keep = inside & (y + k >= 0) & (y + k < height)
        value = tl.load(images + at + k * width, mask=keep, other=0.0).to(tl.float64)
        total += value
        square += value * value
    tl.store(sums + at, total.to(tl.float32), mask=inside)
    tl.store(squares + at, square.to(tl.float32), mask=inside)


@triton.jit
def normalise(
    images, sums, squares, out, n, height, width, softening,
    RADIUS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Pixels minus their mean and over their deviation, from the sums of columns."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = at % width
    y = (at // width) % height
    total = tl.zeros((BLOCK,), tl.float64)
    square = tl.zeros((BLOCK,), tl.float64)
    for k in range(-RADIUS, RADIUS + 1):
        keep = inside & (x + k >= 0) & (x + k < width)
        total += tl.load(sums + at + k, mask=keep, other=0.0).to(tl.float64)
        square += tl.load(squares + at + k, mask=keep, other=0.0).to(tl.float64)
    across = tl.minimum(x + RADIUS, width - 1) - tl.maximum(x - RADIUS, 0) + 1
    down = tl.minimum(y + RADIUS, height - 1) - tl.maximum(y - RADIUS, 0) + 1
    share = 1.0 / (across * down).to(tl.float64)
    mean = total * share
    variance = tl.maximum(square * share - mean * mean, 0.0).to(tl.float32)
    value = tl.load(images + at, mask=inside, other=0.0).to(tl.float64) - mean
    tl.store(out + at, value.to(tl.float32) / (tl.sqrt(variance) + softening), mask=inside)


@triton.jit
def convolve(
    source, weights, biases, target, n, height, width,
    COMING: tl.constexpr, STORED: tl.constexpr, SIDE: tl.constexpr, RELU: tl.constexpr,
    EIGHT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Eight channels of a layer, or its only one, of pixels of images that become smaller.

    Parameters
    ----------
    source : (B, STORED, H, W) float32
        Of which the first COMING channels count; rectified if RELU.
    weights : (blocks, COMING, SIDE, SIDE, 8) float32
    biases : (blocks, 8) float32
    target : (B, 8 * blocks, H - SIDE + 1, W - SIDE + 1) float32, or (B, ...) if not EIGHT
    n
        Pixels of all images of the target.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    block = tl.program_id(1)
    inside = at < n
    wide = width - SIDE + 1
    size = wide * (height - SIDE + 1)
    image, pixel = at // size, at % size
    here = image * (STORED * height * width) + (pixel // wide) * width + pixel % wide
    weights += block * (COMING * SIDE * SIDE * 8)
    biases += block * 8
    zero = tl.zeros((BLOCK,), tl.float32)
    a = zero + tl.load(biases)
    if EIGHT:
        b = zero + tl.load(biases + 1)
        c = zero + tl.load(biases + 2)
        d = zero + tl.load(biases + 3)
        e = zero + tl.load(biases + 4)
        f = zero + tl.load(biases + 5)
        g = zero + tl.load(biases + 6)
        h = zero + tl.load(biases + 7)
    for _ in range(COMING):
        for j in range(SIDE):
            for i in tl.static_range(SIDE):
                value = tl.load(source + here + j * width + i, mask=inside, other=0.0)
                if RELU:
                    value = tl.maximum(value, 0.0)
                own = weights + (j * SIDE + i) * 8
                a += value * tl.load(own)
                if EIGHT:
                    b += value * tl.load(own + 1)
                    c += value * tl.load(own + 2)
                    d += value * tl.load(own + 3)
                    e += value * tl.load(own + 4)
                    f += value * tl.load(own + 5)
                    g += value * tl.load(own + 6)
                    h += value * tl.load(own + 7)
        here += height * width
        weights += SIDE * SIDE * 8
    if EIGHT:
        to = target + (image * tl.num_programs(1) + block) * (8 * size) + pixel
        tl.store(to, a, mask=inside)
        tl.store(to + size, b, mask=inside)
        tl.store(to + 2 * size, c, mask=inside)
        tl.store(to + 3 * size, d, mask=inside)
        tl.store(to + 4 * size, e, mask=inside)
        tl.store(to + 5 * size, f, mask=inside)
        tl.store(to + 6 * size, g, mask=inside)
        tl.store(to + 7 * size, h, mask=inside)
    else:
        tl.store(target + at, a, mask=inside)


@triton.jit
def find_maxima(
    scores, values, pixels, n, height, width, down, across, cells, start, BLOCK: tl.constexpr
):
    """The maximum of each square of 3 x 3 px: there is one at most of all within 5 x 5.

    Parameters
    ----------
    scores : (B, H, W) float32
    values, pixels : (B, cells) float32, int64
        Written: the score, minus infinity if there is none, and the pixel of the image.
    n
        Squares of all images.
    down, across
        Rows and columns of squares.
    cells, start
        Squares of an image on all levels, and the first of this one.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = at < n
    each = down * across
    image, cell = at // each, at % each
    top, left = (cell // across) * 3, (cell % across) * 3
    plane = image * height * width
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.zeros((BLOCK,), tl.int64)
    for k in range(9):
        y, x = top + k // 3, left + k % 3
        inner = real & (y >= 1) & (y < height - 1) & (x >= 1) & (x < width - 1)
        here = plane + y * width + x
        value = tl.load(scores + here, mask=inner, other=float("-inf"))
        strict = inner
        for dy in range(-2, 3):
            line = inner & (y + dy >= 0) & (y + dy < height)
            for dx in tl.static_range(5):
                ok = line & (x + dx >= 2) & (x + dx < width + 2)
                ok = ok & ((dy != 0) | (dx != 2))
                other = tl.load(scores + here + dy * width + dx - 2, mask=ok, other=float("-inf"))
                strict = strict & (value > other)
        best = tl.where(strict, value, best)
        place = tl.where(strict, (y * width + x).to(tl.int64), place)
    to = image.to(tl.int64) * cells + start + cell
    tl.store(values + to, best, mask=real)
    tl.store(pixels + to, place, mask=real)


@triton.jit
def mean_gradients(
    images, starts, heights, widths, level, row, column, taps, out, n, pixels,
    RADIUS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The gradient (x and y) around keypoints, weighed by taps along rows and columns.

    Parameters
    ----------
    images : (B, pixels) float32
        All levels of each image; level l of it begins at starts[l].
    level, row, column : (B, n) int64
    taps : (2 RADIUS + 1,) float32
    out : (B, n, 2) float32
        Written.
    """
    which = tl.program_id(1).to(tl.int64) * n + tl.program_id(0)
    own = tl.load(level + which)
    height, width = tl.load(heights + own), tl.load(widths + own)
    image = images + tl.program_id(1).to(tl.int64) * pixels + tl.load(starts + own)
    j = tl.arange(0, WIDE)[:, None]
    i = tl.arange(0, WIDE)[None, :]
    ok = (j <= 2 * RADIUS) & (i <= 2 * RADIUS)
    y = tl.minimum(tl.maximum(tl.load(row + which) + j - RADIUS, 0), height - 1)
    x = tl.minimum(tl.maximum(tl.load(column + which) + i - RADIUS, 0), width - 1)
    weight = tl.load(taps + j, mask=j <= 2 * RADIUS, other=0.0)
    weight = weight * tl.load(taps + i, mask=i <= 2 * RADIUS, other=0.0)
    right = tl.load(image + y * width + tl.minimum(x + 1, width - 1), mask=ok, other=0.0)
    left = tl.load(image + y * width + tl.maximum(x - 1, 0), mask=ok, other=0.0)
    below = tl.load(image + tl.minimum(y + 1, height - 1) * width + x, mask=ok, other=0.0)
    above = tl.load(image + tl.maximum(y - 1, 0) * width + x, mask=ok, other=0.0)
    tl.store(out + 2 * which, tl.sum(tl.sum(weight * (right - left), axis=1), axis=0))
    tl.store(out + 2 * which + 1, tl.sum(tl.sum(weight * (below - above), axis=1), axis=0))

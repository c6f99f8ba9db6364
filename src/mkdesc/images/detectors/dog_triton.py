"""The kernels of the detector of blobs: blurring, extrema, directions."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def blur(source, half, target, n, height, width, size, step,
         REACH: tl.constexpr, DOWN: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Filter images (B, H, W) along rows, or down columns; beyond the border they are mirrored.

    Parameters
    ----------
    source : (B, H, W) float32
        Images begin ``size`` numbers apart.
    half : (REACH + 1,) float32
        Half of the filter, the middle first.
    target : (B, H, W) float32
        Images begin ``step`` numbers apart.
    n
        Pixels of all images.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    each = height * width
    image, pixel = (at // each).to(tl.int64), at % each
    y, x = pixel // width, pixel % width
    length = height if DOWN else width
    place = y if DOWN else x
    other = x if DOWN else y * width
    stride = width if DOWN else 1
    last = length - 1
    begin = source + image * size + other
    total = tl.load(half) * tl.load(begin + place * stride, mask=inside, other=0.0)
    period = tl.maximum(2 * last, 1)
    for k in range(1, REACH + 1):
        low = tl.abs(place - k) % period
        high = (place + k) % period
        low = tl.minimum(low, period - low)
        high = tl.minimum(high, period - high)
        low, high = tl.minimum(low, last), tl.minimum(high, last)
        both = tl.load(begin + low * stride, mask=inside, other=0.0)
        both += tl.load(begin + high * stride, mask=inside, other=0.0)
        total += tl.load(half + k) * both
    tl.store(target + image * step + pixel, total, mask=inside)


@triton.jit
def find_extrema(
    dogs, values, pixels, n, height, width, down, across, size, cells, start, threshold,
    LAYERS: tl.constexpr, BORDER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The strongest extremum of each square of 2 x 2 px of every layer.

    Parameters
    ----------
    dogs : (B, LAYERS + 2, H, W) float32
        Images begin ``size`` numbers apart.
    values, pixels : (B, cells) float32, int64
        Written: its strength, 0 if there is none, and its pixel in the layer.
    n
        Squares of all layers of all images.
    down, across
        Rows and columns of squares.
    cells, start
        Squares of an image in all octaves, and the first of this one.
    threshold
        What is not above it, in strength, is none.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = at < n
    each = down * across
    image, rest = (at // (LAYERS * each)).to(tl.int64), at % (LAYERS * each)
    layer, cell = rest // each, rest % each
    top, left = (cell // across) * 2, (cell % across) * 2
    plane = dogs + image * size + (layer + 1).to(tl.int64) * (height * width)
    best = tl.zeros((BLOCK,), tl.float32)
    place = tl.zeros((BLOCK,), tl.int64)
    for k in range(4):
        y, x = top + k // 2, left + k % 2
        inner = real & (y >= BORDER) & (y < height - BORDER)
        inner = inner & (x >= BORDER) & (x < width - BORDER)
        here = plane + y * width + x
        value = tl.load(here, mask=inner, other=0.0)
        strong = inner & (tl.abs(value) > threshold)
        sign = tl.where(value > 0, 1.0, -1.0)
        for j in range(9):
            line = here + (j // 3 - 1) * (height * width) + (j % 3 - 1) * width
            for i in tl.static_range(3):
                other = tl.load(line + i - 1, mask=strong, other=0.0)
                strong = strong & (sign * value >= sign * other)
        better = strong & (tl.abs(value) > best)
        best = tl.where(better, tl.abs(value), best)
        place = tl.where(better, (y * width + x).to(tl.int64), place)
    to = image * cells + start + rest
    tl.store(values + to, best, mask=real)
    tl.store(pixels + to, place, mask=real)


@triton.jit
def count_directions(
    layers, starts, heights, widths, octave, layer, row, column, scale, counts, n, pixels,
    LAYERS: tl.constexpr, BINS: tl.constexpr, SIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients around blobs by their direction.

    Parameters
    ----------
    layers : (B, pixels) float32
        All octaves of an image; octave o begins at LAYERS * starts[o].
    octave, layer, row, column : (B, n) int64
    scale : (B, n) float32
    counts : (B, n, BINS) float32
        Written.
    SIDE
        Of the largest square that is looked at.
    """
    which = tl.program_id(1).to(tl.int64) * n + tl.program_id(0)
    own = tl.load(octave + which)
    height, width = tl.load(heights + own), tl.load(widths + own)
    image = layers + tl.program_id(1).to(tl.int64) * pixels + LAYERS * tl.load(starts + own)
    image += (tl.load(layer + which) - 1) * height * width
    sigma = tl.load(scale + which)
    at = tl.arange(0, BLOCK)
    dy, dx = at // SIDE - SIDE // 2, at % SIDE - SIDE // 2
    y, x = tl.load(row + which) + dy, tl.load(column + which) + dx
    reach = tl.floor(4.5 * sigma + 0.5).to(tl.int32)
    near = (at < SIDE * SIDE) & (tl.abs(dy) <= reach) & (tl.abs(dx) <= reach)
    near = near & (y > 0) & (y < height - 1) & (x > 0) & (x < width - 1)
    here = image + y * width + x
    u = tl.load(here + 1, mask=near, other=0.0) - tl.load(here - 1, mask=near, other=0.0)
    v = tl.load(here - width, mask=near, other=0.0) - tl.load(here + width, mask=near, other=0.0)
    # The arctangent as OpenCV has it, to a hundredth of a degree.
    a, b = tl.abs(u), tl.abs(v)
    c = tl.minimum(a, b) / (tl.maximum(a, b) + 1e-12)
    d = c * c
    angle = (((-2.539725 * d + 8.914001) * d - 18.667446) * d + 57.283627) * c
    angle = tl.where(b > a, 90.0 - angle, angle)
    angle = tl.where(u < 0, 180.0 - angle, angle)
    angle = tl.where(v < 0, 360.0 - angle, angle)
    number = (angle * (BINS / 360) + 0.5).to(tl.int32) % BINS
    far = (dy * dy + dx * dx).to(tl.float32)
    weight = tl.exp(-far / (2 * (1.5 * sigma) * (1.5 * sigma))) * tl.sqrt(u * u + v * v)
    weight = tl.where(near, weight, 0.0)
    for k in range(BINS):
        tl.store(counts + which * BINS + k, tl.sum(tl.where(number == k, weight, 0.0), axis=0))

"""The kernels that halve images and cut squares around points out of them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def halve(source, target, n, height, width, pixels, BLOCK: tl.constexpr):
    """The next level of pyramids: a binomial filter of 5 x 5 px at every second pixel.

    Parameters
    ----------
    source, target : (B, pixels) float32
        Where the level (H, W) begins, and where the next one does.
    n
        Pixels of the next level of all images.
    pixels
        Of all levels of an image.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    across = (width + 1) // 2
    each = ((height + 1) // 2) * across
    image, pixel = (at // each).to(tl.int64), at % each
    y, x = 2 * (pixel // across), 2 * (pixel % across)
    total = tl.zeros((BLOCK,), tl.float32)
    for j in range(5):
        line = tl.minimum(tl.maximum(y + j - 2, 0), height - 1) * width
        share = tl.where(j == 2, 6.0, tl.where((j == 1) | (j == 3), 4.0, 1.0))
        for i in tl.static_range(5):
            column = tl.minimum(tl.maximum(x + i - 2, 0), width - 1)
            value = tl.load(source + image * pixels + line + column, mask=inside, other=0.0)
            total += value * (share * (6.0 if i == 2 else (4.0 if i % 2 else 1.0)))
    tl.store(target + image * pixels + pixel, total / 256, mask=inside)


@triton.jit
def cut_squares(
    pyramid, starts, heights, widths, squares, chosen, out, pixels, each,
    SIZE: tl.constexpr, WHOLE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Pixels of squares, each the mean of so many samples along either axis.

    Parameters
    ----------
    pyramid : (B, pixels) float32
        All levels of each image; level l of it begins at starts[l].
    squares : (B * each, 4) float32
        Centre x and y on the level, and the step along a row of the patch: its x and y.
    chosen : (B * each, 2) int32
        Level, samples.
    out : (B * each, SIZE, SIZE) uint8 or float32
        Rounded if WHOLE.
    """
    which = tl.program_id(0).to(tl.int64)
    level = tl.load(chosen + 2 * which)
    samples = tl.load(chosen + 2 * which + 1)
    height, width = tl.load(heights + level), tl.load(widths + level)
    image = pyramid + (which // each) * pixels + tl.load(starts + level)
    x, y = tl.load(squares + 4 * which), tl.load(squares + 4 * which + 1)
    c, s = tl.load(squares + 4 * which + 2), tl.load(squares + 4 * which + 3)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < SIZE * SIZE
    column = (at % SIZE).to(tl.float32) - (SIZE - 1) / 2
    row = (at // SIZE).to(tl.float32) - (SIZE - 1) / 2
    right, bottom = (width - 1).to(tl.float32), (height - 1).to(tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for sample in range(samples * samples):
        u = column + ((sample % samples).to(tl.float32) + 0.5) / samples - 0.5
        v = row + ((sample // samples).to(tl.float32) + 0.5) / samples - 0.5
        px = tl.minimum(tl.maximum(x + c * u - s * v, 0.0), right)
        py = tl.minimum(tl.maximum(y + s * u + c * v, 0.0), bottom)
        left, top = px.to(tl.int32), py.to(tl.int32)
        fx, fy = px - left.to(tl.float32), py - top.to(tl.float32)
        a = image + top * width + left
        b = image + tl.minimum(top + 1, height - 1) * width + left
        more = tl.where(left + 1 < width, 1, 0)
        upper = tl.load(a, mask=inside, other=0.0)
        upper += fx * (tl.load(a + more, mask=inside, other=0.0) - upper)
        lower = tl.load(b, mask=inside, other=0.0)
        lower += fx * (tl.load(b + more, mask=inside, other=0.0) - lower)
        total += upper + fy * (lower - upper)
    total = total / (samples * samples).to(tl.float32)
    if WHOLE:
        total = tl.minimum(tl.maximum(total + 0.5, 0.0), 255.0)
    tl.store(out + which * (SIZE * SIZE) + at, total.to(out.dtype.element_ty), mask=inside)

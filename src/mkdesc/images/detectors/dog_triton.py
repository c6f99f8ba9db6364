"""The kernel that blurs the images of an octave."""

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

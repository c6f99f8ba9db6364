"""What the fused kernels share: pixels of patches, directions of gradients."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_pixels(patches, patch, y, x, keep, W: tl.constexpr, FACTOR: tl.constexpr,
                PAIRS: tl.constexpr):
    """Pixels (y, x) of patches of side W reduced by a factor, as sums over squares; or zeros.

    ``PAIRS``: the patches are uint8 seen as pairs (int16), and the factor is 2.
    """
    if PAIRS:
        at = patch * (W * W // 2) + y * W + x
        a = tl.load(patches + at, mask=keep, other=0).to(tl.int32)
        b = tl.load(patches + at + W // 2, mask=keep, other=0).to(tl.int32)
        total = ((a & 255) + ((a >> 8) & 255) + (b & 255) + ((b >> 8) & 255)).to(tl.float32)
    else:
        at = patch * (W * W) + y * (FACTOR * W) + x * FACTOR
        total = tl.load(patches + at, mask=keep, other=0).to(tl.float32)
        for k in tl.static_range(1, FACTOR * FACTOR):
            step = (k // FACTOR) * W + k % FACTOR
            total += tl.load(patches + at + step, mask=keep, other=0).to(tl.float32)
    return total


@triton.jit
def direction(u, v, flat_square):
    """Squared length, cosine and sine of gradients (u, v); the angle of none is 0."""
    square = u * u + v * v
    none = square <= flat_square
    inverse = tl.rsqrt(tl.where(none, 1.0, square))
    return square, tl.where(none, 1.0, u * inverse), tl.where(none, 0.0, v * inverse)

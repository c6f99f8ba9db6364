"""What the fused kernels share: pixels of patches, directions of gradients."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_pixels(patches, patch, y, x, keep, W: tl.constexpr, FACTOR: tl.constexpr):
    """Pixels (y, x) of patches of side W reduced by a factor, as sums over squares; or zeros."""
    at = patch * (W * W) + y * (FACTOR * W) + x * FACTOR
    total = tl.load(patches + at, mask=keep, other=0).to(tl.float32)
    for k in tl.static_range(1, FACTOR * FACTOR):
        step = (k // FACTOR) * W + k % FACTOR
        total += tl.load(patches + at + step, mask=keep, other=0).to(tl.float32)
    return total


@triton.jit
def load_pairs(patches, patch, y, keep, W: tl.constexpr):
    """Rows y of patches of floats, reduced by 2, as sums: (rows, W / 2)."""
    at = patch * (W * W) + y * (2 * W) + tl.arange(0, W)[None, :]
    both = tl.load(patches + at, mask=keep, other=0).to(tl.float32)
    both += tl.load(patches + at + W, mask=keep, other=0).to(tl.float32)
    return tl.sum(tl.reshape(both, (y.shape[0], W // 2, 2)), axis=2)


@triton.jit
def load_halves(patches, patch, y, keep, W: tl.constexpr):
    """Rows y of patches of bytes, seen as words of four, reduced by 2, as sums: (rows, W / 2)."""
    at = patch * (W * W // 4) + y * (W // 2) + tl.arange(0, W // 4)[None, :]
    a = tl.load(patches + at, mask=keep, other=0)
    b = tl.load(patches + at + W // 4, mask=keep, other=0)
    # Two sums of four bytes each in one word.
    mask = 0x00FF00FF
    both = (a & mask) + ((a >> 8) & mask) + (b & mask) + ((b >> 8) & mask)
    return tl.interleave((both & 0xFFFF).to(tl.float16), (both >> 16).to(tl.float16))


@triton.jit
def direction(u, v, flat_square):
    """Squared length, cosine and sine of gradients (u, v); the angle of none is 0."""
    square = u * u + v * v
    none = square <= flat_square
    inverse = tl.rsqrt(tl.where(none, 1.0, square))
    return square, tl.where(none, 1.0, u) * inverse, v * inverse

"""The compiled filters: tuples, whose lengths are known, so that loops over taps are unrolled."""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc._support.compiling import FAST

#: Sums in the order in which they are written, in every lane and row: the same bits in any strip.
LOOP = FAST | {"fastmath": {"contract", "nsz"}}


@njit(**LOOP)
def filter_columns(images, start, stride, size, half, two):
    """Filter along columns: two rows of ``size`` pixels into ``two``; ``start``: the first tap."""
    reach = len(half) - 1
    for x in range(size):
        p = start + x
        a = half[0] * images[np.uint64(p + reach * stride)]
        b = half[0] * images[np.uint64(p + (reach + 1) * stride)]
        for k in range(1, reach + 1):
            up, down = p + (reach - k) * stride, p + (reach + k) * stride
            a += half[k] * (images[np.uint64(up)] + images[np.uint64(down)])
            b += half[k] * (images[np.uint64(up + stride)] + images[np.uint64(down + stride)])
        two[0, x] = a
        two[1, x] = b


@njit(**LOOP)
def filter_row(two, which, size, half, images, before, after, dogs, difference):
    """Filter along a row, write ``size`` pixels at ``after``, and what ``before`` lacks."""
    reach = len(half) - 1
    for x in range(size):
        a = half[0] * two[which, x + reach]
        for k in range(1, reach + 1):
            a += half[k] * (two[which, x + reach - k] + two[which, x + reach + k])
        dogs[np.uint64(difference + x)] = a - images[np.uint64(before + x)]
        images[np.uint64(after + x)] = a


@njit(**LOOP)
def filter_pair(images, source, stride, low, high, half, two, targets, dogs, differences, count):
    """Filter one or two rows of an image into the next one; all places are those of column 0."""
    reach, size = len(half) - 1, high - low
    filter_columns(
        images, source + low - reach - reach * stride, stride, size + 2 * reach, half, two
    )
    for k in range(count):
        before = source + k * stride + low
        after, difference = targets[k] + low, differences[k] + low
        filter_row(two, k, size, half, images, before, after, dogs, difference)


@njit(**LOOP)
def mirrored(i, n):
    """The index within 0..n-1 that an index beyond the border mirrors."""
    if n == 1:
        return 0
    i = abs(i) % (2 * n - 2)
    return min(i, 2 * n - 2 - i)


@njit(**LOOP)
def double_row(gray, row, low, high, means, out, at):
    """Write the pixels low..high-1 of a row of the doubled photograph; both are even."""
    height, width = gray.shape
    first, last = low // 2, high // 2
    upper, lower = row // 2, min((row + 1) // 2, height - 1)
    half = np.float32(0.5)
    count = min(last + 1, width) - first
    for x in range(count):
        p = np.uint64(first + x)
        means[x] = half * (np.float32(gray[upper, p]) + np.float32(gray[lower, p]))
    means[count] = means[count - 1]
    for x in range(last - first):
        p = np.uint64(at + 2 * x)
        out[p] = means[x]
        out[p + np.uint64(1)] = half * (means[x] + means[x + 1])


@njit(**LOOP)
def mirror_sides(images, at, low, high, width, reach):
    """Continue a row beyond the image; ``at``: its pixel in column 0."""
    if low == 0:
        for k in range(1, reach + 1):
            images[at - k] = images[at + (k if k < width else mirrored(-k, width))]
    if high == width:
        end = at + width - 1
        for k in range(1, reach + 1):
            images[end + k] = images[end - k if k < width else at + mirrored(width - 1 + k, width)]


@njit(**LOOP)
def copy_row(images, source, target, stride):
    """Copy a row with its margins."""
    for x in range(stride):
        images[np.uint64(target + x)] = images[np.uint64(source + x)]


@njit(**LOOP)
def mirror_below(images, at, stride, height, reach):
    """Continue an image below its last row; ``at``: its row 0."""
    for k in range(height, height + reach):
        copy_row(images, at + mirrored(k, height) * stride, at + k * stride, stride)

"""The compiled loops that find the directions of blobs, each in a small piece of its octave."""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc.images.detectors.dog_filters_numba import (
    LOOP,
    double_row,
    filter_columns,
    filter_row,
    mirrored,
)
from mkdesc.images.detectors.dog_reference import BINS, LAYERS, PEAK

#: Pixels in a row of a piece are a multiple of this: no loop has a rest.
LANES = 16


@njit(**LOOP)
def load_piece(gray, pixels, top, left, size, stride, means, line, piece):
    """Copy a square of the doubled photograph, or of the first image of another octave.

    Returns how many columns further to the right it is.
    """
    if len(gray):
        height, width = 2 * gray.shape[0], 2 * gray.shape[1]
    else:
        height, width = pixels.shape
    inside = left >= 0 and left + size <= width
    low, high = left // 2 * 2, (left + size + 1) // 2 * 2
    for y in range(size):
        row, at = mirrored(top + y, height), y * stride
        if len(gray) and inside:
            double_row(gray, row, low, high, means, piece, at)
        elif len(gray):
            for x in range(size):
                column = mirrored(left + x, width)
                even = column // 2 * 2
                double_row(gray, row, even, even + 2, means, line, 0)
                piece[at + x] = line[column - even]
        elif inside:
            for x in range(size):
                piece[np.uint64(at + x)] = pixels[row, np.uint64(left + x)]
        else:
            for x in range(size):
                piece[at + x] = pixels[row, mirrored(left + x, width)]
    return left - low if len(gray) and inside else 0


@njit(**LOOP)
def blur_piece(piece, skip, stride, size, half, two, unused):
    """Filter a square that begins after ``skip`` columns.

    Its first ``size`` rows and columns are then those of its middle.
    """
    reach = len(half) - 1
    wide = (size + 2 * reach + LANES - 1) // LANES * LANES
    inner = (size + LANES - 1) // LANES * LANES
    for pair in range(0, size, 2):
        filter_columns(piece, pair * stride + skip, stride, wide, half, two)
        for row in range(pair, min(pair + 2, size)):
            at = row * stride
            filter_row(two, row - pair, inner, half, piece, at + 2 * stride, at, unused, 0)


@njit(**LOOP)
def count_directions(piece, stride, size, down, across, bins, values, counts):
    """Add the gradients of a square, but for its outermost pixels, to the histogram (section 5).

    Angles are those of OpenCV's ``fastAtan2``, to a hundredth of a degree.
    """
    inner = size - 2
    wide = (inner + LANES - 1) // LANES * LANES  # weights beyond are zero
    for y in range(inner):
        at = (y + 1) * stride + 1
        for x in range(wide):
            p = at + x
            dx = piece[np.uint64(p + 1)] - piece[np.uint64(p - 1)]
            dy = piece[np.uint64(p - stride)] - piece[np.uint64(p + stride)]
            u, v = abs(dx), abs(dy)
            c = min(u, v) / (max(u, v) + np.float32(1e-12))
            d = c * c
            angle = np.float32(-2.539725) * d + np.float32(8.914001)
            angle = (angle * d - np.float32(18.667446)) * d + np.float32(57.283627)
            angle *= c
            angle = np.float32(90) - angle if v > u else angle
            angle = np.float32(180) - angle if dx < 0 else angle
            angle = np.float32(360) - angle if dy < 0 else angle
            bins[x] = np.int32(angle * np.float32(BINS / 360) + np.float32(0.5))
            values[x] = np.sqrt(dx * dx + dy * dy) * (down[y] * across[x])
        for x in range(inner):
            counts[np.uint32(bins[x] + 2)] += values[x]


@njit(**LOOP)
def peaks_of(counts, smooth, angles, heights):
    """Smooth the histogram and write its peaks; how many."""
    counts[2] += counts[BINS + 2]  # 360 degrees are 0
    counts[BINS + 2], counts[BINS + 3] = counts[2], counts[3]
    counts[0], counts[1] = counts[BINS], counts[BINS + 1]
    highest = np.float32(0)
    for i in range(BINS):
        ends, sides = counts[i] + counts[i + 4], counts[i + 1] + counts[i + 3]
        smooth[i] = (ends + 4 * sides + 6 * counts[i + 2]) / 16
        highest = max(highest, smooth[i])
    count = 0
    for i in range(BINS):
        value, before, after = smooth[i], smooth[i - 1], smooth[(i + 1) % BINS]
        if value > before and value > after and value >= PEAK * highest:
            exactly = i + 0.5 * (before - after) / (before - 2 * value + after)
            angles[count] = (-exactly * (360 / BINS)) % 360.0
            heights[count] = value
            count += 1
    return count


def orient(gray, pixels, blobs, scales, halves, longest, angles, heights, found):
    """Find the directions of blobs of one octave.

    Parameters
    ----------
    gray, pixels
        As for ``dog_numba.scan_tile``.
    blobs : (N, 7) float64
        What that one found.
    scales : (N,) float64
        Their sigmas, in pixels of the octave.
    halves : 3 tuples of float32
        Filters that make each of the layers of what is given.
    longest : int
        Taps of the longest of the filters, to one side.
    angles, heights : (N, BINS // 2) float32
        Of each peak; written.
    found : (N,) int64
        How many peaks there are; written.
    """
    if len(gray):
        height, width = 2 * gray.shape[0], 2 * gray.shape[1]
    else:
        height, width = pixels.shape
    most = np.int64(np.rint(4.5 * scales.max()))
    stride = (2 * most + 3 + 2 * longest + 2 * LANES) // LANES * LANES
    piece = np.zeros((2 * most + 4 + 2 * longest) * stride + LANES, np.float32)
    two, unused = np.zeros((2, stride), np.float32), np.empty(stride, np.float32)
    means, line = np.empty(stride + 4, np.float32), np.empty(stride + 4, np.float32)
    down, across = np.empty(stride, np.float32), np.empty(stride, np.float32)
    bins = np.empty(stride, np.int32)
    values = np.empty(stride, np.float32)
    counts, smooth = np.empty(BINS + 4, np.float32), np.empty(BINS, np.float32)
    for i in range(len(blobs)):
        layer, row, column = np.int64(blobs[i, 0]), np.int64(blobs[i, 1]), np.int64(blobs[i, 2])
        reach = np.int64(np.rint(4.5 * scales[i]))
        size = 2 * reach + 3
        taps = len(halves[0]) - 1
        if layer == 2:
            taps = len(halves[1]) - 1
        elif layer == LAYERS:
            taps = len(halves[2]) - 1
        top, left = row - reach - 1 - taps, column - reach - 1 - taps
        skip = load_piece(gray, pixels, top, left, size + 2 * taps, stride, means, line, piece)
        if layer == 1:
            blur_piece(piece, skip, stride, size, halves[0], two, unused)
        elif layer == 2:
            blur_piece(piece, skip, stride, size, halves[1], two, unused)
        else:
            blur_piece(piece, skip, stride, size, halves[2], two, unused)
        across[:] = 0
        for k in range(size - 2):
            away = k - reach
            weight = np.exp(-(away * away) / (2 * (1.5 * scales[i]) ** 2))
            down[k] = weight if 0 < row + away < height - 1 else 0
            across[k] = weight if 0 < column + away < width - 1 else 0
        counts[:] = 0
        count_directions(piece, stride, size, down, across, bins, values, counts)
        found[i] = peaks_of(counts, smooth, angles[i], heights[i])

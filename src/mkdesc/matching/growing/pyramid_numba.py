"""The compiled loops of :mod:`mkdesc.matching.growing.pyramid`; apart: numba is imported late."""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc._support.compiling import FAST
from mkdesc.matching.growing.pyramid import BLUR, HALVING_BLUR, taps_of

#: The blur of the photograph, and that of a level followed by the mean of two pixels.
FIRST = taps_of(BLUR, 2).astype(np.float32)
_HALVING = taps_of(HALVING_BLUR, 4)
HALVING = (0.5 * (np.append(_HALVING, 0) + np.append(0, _HALVING))).astype(np.float32)


@njit(**FAST)
def add_row(pixels, source, width, tap, line, at):
    """Add a row of pixels, times a tap, to ``line`` from ``at`` on."""
    for x in range(width):
        line[np.uint64(at + x)] += tap * pixels[np.uint64(source + x)]


@njit(**FAST)
def extend(line, before, width, after):
    """Repeat the outermost of ``width`` pixels that begin at ``before``."""
    for x in range(before):
        line[x] = line[before]
    for x in range(after):
        line[before + width + x] = line[before + width - 1]


@njit(**FAST)
def blur(pixels, height, width):
    """Blur the photograph in place; the rows that are still needed are kept."""
    kept = np.empty((5, width), np.float32)
    line = np.empty(width + 4, np.float32)
    for y in range(-2, height):
        below = min(y + 2, height - 1)
        for x in range(width):
            kept[(y + 2) % 5, np.uint64(x)] = pixels[np.uint64(below * width + x)]
        if y < 0:
            continue
        for x in range(width):
            line[np.uint64(x + 2)] = 0
        for k in range(5):
            row = max(y + k - 2, 0) % 5
            for x in range(width):
                line[np.uint64(x + 2)] += FIRST[k] * kept[row, np.uint64(x)]
        extend(line, 2, width, 2)
        for x in range(width):
            near = line[np.uint64(x + 1)] + line[np.uint64(x + 3)]
            far = line[np.uint64(x)] + line[np.uint64(x + 4)]
            pixels[np.uint64(y * width + x)] = (
                FIRST[2] * line[np.uint64(x + 2)] + FIRST[1] * near + FIRST[0] * far
            )


@njit(**FAST)
def halve(pixels, source, height, width, target, rows, columns):
    """Make the next level of a pyramid."""
    line = np.empty(width + 10, np.float32)
    for y in range(rows):
        for x in range(width):
            line[np.uint64(x + 4)] = 0
        for k in range(10):
            row = min(max(2 * y + k - 4, 0), height - 1)
            add_row(pixels, source + row * width, width, HALVING[k], line, 4)
        extend(line, 4, width, 6)
        for x in range(columns):
            total = np.float32(0)
            for k in range(5):
                pair = line[np.uint64(2 * x + k)] + line[np.uint64(2 * x + 9 - k)]
                total += HALVING[k] * pair
            pixels[np.uint64(target + y * columns + x)] = total


def fill(pixels, levels):
    """Make the pyramid of the photograph that its first level holds.

    Parameters
    ----------
    pixels : (P,) float32
        All levels, one after the other; changed.
    levels : (L, 3) int64
        Start, height and width of each.
    """
    blur(pixels, levels[0, 1], levels[0, 2])
    for i in range(1, len(levels)):
        halve(
            *(pixels, levels[i - 1, 0], levels[i - 1, 1], levels[i - 1, 2]),
            *(levels[i, 0], levels[i, 1], levels[i, 2]),
        )

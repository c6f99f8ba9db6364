"""The compiled loops of the learned detector.

Rows of pixels go through all layers while they are in the cache: each layer keeps as many rows of
its input as its kernels are high.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc.images.detectors.convolving_numba import (
    CHANNELS,
    PIXELS,
    eight_channels,
    four_rows,
    two_rows,
)
from mkdesc.images.detectors.learned_rows import rows_at_once

of_layer = njit(rows_at_once, nogil=True, error_model="numpy")

#: Rows of its input that a layer keeps: it looks at eight at most, and has four when four come.
ROWS = 8


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def change_sums(sums, squares, added, taken):
    """Add a row to the sums of columns, and take one away."""
    for x in range(len(sums)):
        new, old = np.float64(added[x]), np.float64(taken[x])
        sums[x] += new - old
        squares[x] += new * new - old * old


@njit(nogil=True, error_model="numpy", inline="never")
def sums_around(columns, squares, side, sums, square_sums):
    """Sums of ``side`` numbers that follow each, of two rows."""
    total, square = 0.0, 0.0
    for x in range(side):
        total += columns[x]
        square += squares[x]
    for x in range(len(sums)):
        total += columns[x + side] - columns[x]
        square += squares[x + side] - squares[x]
        sums[x], square_sums[x] = total, square


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def normalise_row(row, sums, squares, shares, share, softening, out):
    """A row minus its mean and over its deviation."""
    for x in range(len(row)):
        part = share * shares[x]
        mean = sums[x] * part
        variance = np.float32(max(squares[x] * part - mean * mean, 0.0))
        out[x] = np.float32(row[x] - mean) / (np.sqrt(variance) + softening)


@njit(nogil=True, error_model="numpy")
def copy_row(numbers, out):
    """Copy as many numbers as there is room for."""
    for x in range(len(out)):
        out[x] = numbers[x]


def score_rows(image, first, last, weights, biases, channels, sides, radius, softening, scores):
    """Scores of rows ``first`` to ``last`` - 1 of a level.

    Parameters
    ----------
    image : (H, W) float32
    first, last : int
        Rows of the scores.
    weights : (L, blocks, .) float32
        Of layers: by eight channels out, what the functions that sum them want.
    biases : (L, C) float32
    channels : (L + 1,) int64
        How many channels there are between layers, 1 and 1 at the ends.
    sides : (L,) int64
        Of the kernels.
    radius : int
    softening : float32
        Of the normalisation.
    scores : (H - 2 m, W - 2 m) float32
        Written; m is the margin of the kernels.
    """
    height, width = image.shape
    layers = len(sides)
    most = 1
    for count in channels:
        most = max(most, (count + CHANNELS - 1) // CHANNELS * CHANNELS)
    stride = (width + PIXELS - 1) // PIXELS * PIXELS + PIXELS
    ring = np.zeros((layers, most * ROWS * stride), np.float32)
    starts = np.empty(most * ROWS, np.int64)
    lines = np.empty((2, stride), np.float32)
    # How many rows there are of each layer's input, how many it has made of them and will make.
    made, done = np.zeros(layers + 1, np.int64), np.zeros(layers, np.int64)
    wanted = np.empty(layers + 1, np.int64)
    wanted[-1] = last - first
    for layer in range(layers - 1, -1, -1):
        wanted[layer] = wanted[layer + 1] + sides[layer] - 1
    slots = np.empty(4, np.int64)
    step = ROWS * stride
    # Sums of columns, with nothing on either side.
    columns = np.zeros((2, width + 2 * radius + 1))
    inner_sums = columns[0, radius + 1 : radius + 1 + width]
    inner_squares = columns[1, radius + 1 : radius + 1 + width]
    around = np.empty((2, width))
    shares = np.empty(width)
    for x in range(width):
        shares[x] = 1.0 / (min(x + radius, width - 1) - max(x - radius, 0) + 1)
    nothing = np.zeros(width, np.float32)
    for y in range(max(0, first - radius), min(first + radius, height)):
        change_sums(inner_sums, inner_squares, image[y], nothing)
    for y in range(first, last + height - len(scores)):
        added = image[y + radius] if y + radius < height else nothing
        taken = image[y - radius - 1] if y - radius - 1 >= 0 and y > first else nothing
        change_sums(inner_sums, inner_squares, added, taken)
        sums_around(columns[0], columns[1], 2 * radius + 1, around[0], around[1])
        share = 1.0 / (min(y + radius, height - 1) - max(y - radius, 0) + 1)
        into = ring[0, (y - first) % ROWS * stride :][:width]
        normalise_row(image[y], around[0], around[1], shares, share, softening, into)
        made[0] += 1
        inner = width
        for layer in range(layers):
            side, coming = sides[layer], channels[layer]
            inner -= side - 1
            rows = 2 if layer == layers - 1 else of_layer(side, coming)
            while done[layer] < wanted[layer + 1] and (
                made[layer] - done[layer] >= side + rows - 1 or made[layer] == wanted[layer]
            ):
                # Rows that are not there, in the end, are of those that are not wanted.
                now = min(rows, wanted[layer + 1] - done[layer])
                high = side + rows - 1
                n = coming * high
                for i in range(n):
                    starts[i] = i // high * step + (done[layer] + i % high) % ROWS * stride
                if layer == layers - 1:
                    two_rows(
                        side,
                        ring[layer],
                        starts[:n],
                        weights[layer, 0],
                        biases[layer],
                        inner,
                        lines.reshape(-1),
                        stride,
                    )
                    for i in range(now):
                        copy_row(lines[i], scores[first + done[layer] + i])
                else:
                    for i in range(4):
                        slots[i] = (done[layer] + i) % ROWS * stride
                    for block in range((channels[layer + 1] + CHANNELS - 1) // CHANNELS):
                        own, bias = weights[layer, block], biases[layer, block * CHANNELS :]
                        into = ring[layer + 1, block * CHANNELS * step :]
                        if rows == 4:
                            four_rows(
                                ring[layer],
                                starts[:n].reshape(coming, 8),
                                own[: 8 * coming * 40].reshape(8, coming * 40),
                                bias,
                                inner,
                                into,
                                slots,
                                step,
                            )
                        else:
                            eight_channels(
                                side,
                                ring[layer],
                                starts[:n],
                                own,
                                bias,
                                inner,
                                into[slots[0] :],
                                step,
                            )
                done[layer] += now
                made[layer + 1] += now


@njit(nogil=True, error_model="numpy", inline="never")
def highest_of_five(wide, out):
    """The highest of each five numbers of a row."""
    for x in range(len(out)):
        a, b, c, d, e = wide[x], wide[x + 1], wide[x + 2], wide[x + 3], wide[x + 4]
        a = a if a > b else b
        d = d if d > e else e
        a = a if a > c else c
        out[x] = a if a > d else d


@njit(nogil=True, error_model="numpy", inline="never")
def exceeding(wide, a, b, c, d, out):
    """Whether the middle one of each five numbers exceeds the others, and four other rows."""
    for x in range(len(a)):
        value = wide[x + 2]
        beside = (value > wide[x]) & (value > wide[x + 1])
        beside &= (value > wide[x + 3]) & (value > wide[x + 4])
        out[x] = beside & (value > a[x]) & (value > b[x]) & (value > c[x]) & (value > d[x])


def find_maxima(scores, first, last, least_bend, column, row, x, y, score):
    """Strict maxima within 5 x 5 px, of rows ``first`` to ``last`` - 1; returns how many.

    Their pixels are written to ``column`` and ``row``, places by parabolas to ``x`` and ``y``.
    """
    height, width = scores.shape
    low = np.float32(-np.inf)
    wide = np.full(width + 4, low, np.float32)
    highest = np.full((5, width), low, np.float32)
    is_maximum = np.zeros((width + 7) // 8 * 8, np.uint8)
    by_eight = is_maximum.view(np.uint64)
    found = 0
    begin, end = max(first, 1), min(last, height - 1)
    for i in range(begin - 4, end):
        coming = highest[(i + 2) % 5]
        coming[:] = low
        if 0 <= i + 2 < height:
            copy_row(scores[i + 2], wide[2 : width + 2])
            highest_of_five(wide, coming)
        if i < begin:
            continue
        copy_row(scores[i], wide[2 : width + 2])
        exceeding(
            wide,
            highest[(i + 3) % 5],
            highest[(i + 4) % 5],
            highest[(i + 1) % 5],
            coming,
            is_maximum,
        )
        for word in range(len(by_eight)):
            if by_eight[word] == 0:
                continue
            for j in range(max(8 * word, 1), min(8 * word + 8, width - 1)):
                if is_maximum[j] == 0:
                    continue
                middle = np.float64(scores[i, j])
                left, right = np.float64(scores[i, j - 1]), np.float64(scores[i, j + 1])
                up, down = np.float64(scores[i - 1, j]), np.float64(scores[i + 1, j])
                bend_x, bend_y = 2 * middle - left - right, 2 * middle - up - down
                if not min(bend_x, bend_y) > least_bend:
                    continue
                column[found], row[found], score[found] = j, i, scores[i, j]
                x[found] = j + (right - left) / (2 * bend_x)
                y[found] = i + (down - up) / (2 * bend_y)
                found += 1
    return found


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def add_rows(row, above, below, tap, rows, changes):
    """Add a row times a tap, and its change from the row above to the one below."""
    for x in range(len(row)):
        rows[x] += tap * row[x]
        changes[x] += tap * (below[x] - above[x])


def mean_angles(image, column, row, taps, out):
    """Angles, in degrees, of the mean gradient around pixels of a level."""
    height, width = image.shape
    radius = len(taps) // 2
    rows, changes = np.empty(2 * radius + 3), np.empty(2 * radius + 3)
    for n in range(len(column)):
        start = max(column[n] - radius - 1, 0)
        stop = min(column[n] + radius + 2, width)
        rows[:], changes[:] = 0, 0
        for k in range(-radius, radius + 1):
            i = min(max(row[n] + k, 0), height - 1)
            above, below = image[max(i - 1, 0)], image[min(i + 1, height - 1)]
            add_rows(
                image[i, start:stop],
                above[start:stop],
                below[start:stop],
                np.float64(taps[k + radius]),
                rows,
                changes,
            )
        across, down = 0.0, 0.0
        for m in range(-radius, radius + 1):
            j = min(max(column[n] + m, 0), width - 1)
            left, right = max(j - 1, 0), min(j + 1, width - 1)
            across += taps[m + radius] * (rows[right - start] - rows[left - start])
            down += taps[m + radius] * changes[j - start]
        out[n] = np.degrees(np.arctan2(down, across)) % 360.0


def shorten_image(image, first_row, row_weights, first_column, column_weights, start, stop, out):
    """Rows ``start`` to ``stop`` - 1 of an image made smaller, by the weights of its lines."""
    width = image.shape[1]
    line = np.empty(width, np.float32)
    for i in range(start, stop):
        line[:] = 0
        for t in range(row_weights.shape[1]):
            weight, source = row_weights[i, t], image[first_row[i] + t]
            for x in range(width):
                line[x] += weight * source[x]
        for j in range(out.shape[1]):
            total = np.float32(0)
            for t in range(column_weights.shape[1]):
                total += column_weights[j, t] * line[first_column[j] + t]
            out[i, j] = total

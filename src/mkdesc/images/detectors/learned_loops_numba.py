"""The compiled loops of the learned detector.

Rows of pixels go through all layers while they are in the cache: each layer keeps the last five
rows of its input. Eight channels of a layer are summed at a time, so that a pixel that was read
serves forty products.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"contract", "reassoc"}

#: Rows that a layer looks at, and channels that are summed at a time.
ROWS, CHANNELS = 5, 8


@njit(nogil=True, error_model="numpy", fastmath=FAST, inline="never")
def eight_channels(source, out, n, w):
    """Add ``n`` pixels of a row times five weights each to eight channels."""
    a0, a1, a2, a3, a4 = w[0, 0], w[0, 1], w[0, 2], w[0, 3], w[0, 4]
    b0, b1, b2, b3, b4 = w[1, 0], w[1, 1], w[1, 2], w[1, 3], w[1, 4]
    c0, c1, c2, c3, c4 = w[2, 0], w[2, 1], w[2, 2], w[2, 3], w[2, 4]
    d0, d1, d2, d3, d4 = w[3, 0], w[3, 1], w[3, 2], w[3, 3], w[3, 4]
    e0, e1, e2, e3, e4 = w[4, 0], w[4, 1], w[4, 2], w[4, 3], w[4, 4]
    f0, f1, f2, f3, f4 = w[5, 0], w[5, 1], w[5, 2], w[5, 3], w[5, 4]
    g0, g1, g2, g3, g4 = w[6, 0], w[6, 1], w[6, 2], w[6, 3], w[6, 4]
    h0, h1, h2, h3, h4 = w[7, 0], w[7, 1], w[7, 2], w[7, 3], w[7, 4]
    a, b, c, d, e, f, g, h = out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7]
    for x in range(n):
        s, t, u, v, z = source[x], source[x + 1], source[x + 2], source[x + 3], source[x + 4]
        a[x] += a0 * s + a1 * t + a2 * u + a3 * v + a4 * z
        b[x] += b0 * s + b1 * t + b2 * u + b3 * v + b4 * z
        c[x] += c0 * s + c1 * t + c2 * u + c3 * v + c4 * z
        d[x] += d0 * s + d1 * t + d2 * u + d3 * v + d4 * z
        e[x] += e0 * s + e1 * t + e2 * u + e3 * v + e4 * z
        f[x] += f0 * s + f1 * t + f2 * u + f3 * v + f4 * z
        g[x] += g0 * s + g1 * t + g2 * u + g3 * v + g4 * z
        h[x] += h0 * s + h1 * t + h2 * u + h3 * v + h4 * z


@njit(nogil=True, error_model="numpy", fastmath=FAST, inline="never")
def eight_channels_by_three(source, out, n, w):
    """The same for weights of which the first and last are zero."""
    a1, a2, a3, b1, b2, b3 = w[0, 1], w[0, 2], w[0, 3], w[1, 1], w[1, 2], w[1, 3]
    c1, c2, c3, d1, d2, d3 = w[2, 1], w[2, 2], w[2, 3], w[3, 1], w[3, 2], w[3, 3]
    e1, e2, e3, f1, f2, f3 = w[4, 1], w[4, 2], w[4, 3], w[5, 1], w[5, 2], w[5, 3]
    g1, g2, g3, h1, h2, h3 = w[6, 1], w[6, 2], w[6, 3], w[7, 1], w[7, 2], w[7, 3]
    a, b, c, d, e, f, g, h = out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7]
    for x in range(n):
        t, u, v = source[x + 1], source[x + 2], source[x + 3]
        a[x] += a1 * t + a2 * u + a3 * v
        b[x] += b1 * t + b2 * u + b3 * v
        c[x] += c1 * t + c2 * u + c3 * v
        d[x] += d1 * t + d2 * u + d3 * v
        e[x] += e1 * t + e2 * u + e3 * v
        f[x] += f1 * t + f2 * u + f3 * v
        g[x] += g1 * t + g2 * u + g3 * v
        h[x] += h1 * t + h2 * u + h3 * v


@njit(nogil=True, error_model="numpy", fastmath=FAST, inline="never")
def one_channel(rows, first, out, w):
    """Add five rows of pixels, from a ring, times five weights each to one channel."""
    p, q, r = rows[first], rows[(first + 1) % 5], rows[(first + 2) % 5]
    k, o = rows[(first + 3) % 5], rows[(first + 4) % 5]
    a0, a1, a2, a3, a4 = w[0, 0], w[0, 1], w[0, 2], w[0, 3], w[0, 4]
    b0, b1, b2, b3, b4 = w[1, 0], w[1, 1], w[1, 2], w[1, 3], w[1, 4]
    c0, c1, c2, c3, c4 = w[2, 0], w[2, 1], w[2, 2], w[2, 3], w[2, 4]
    d0, d1, d2, d3, d4 = w[3, 0], w[3, 1], w[3, 2], w[3, 3], w[3, 4]
    e0, e1, e2, e3, e4 = w[4, 0], w[4, 1], w[4, 2], w[4, 3], w[4, 4]
    for x in range(len(out)):
        out[x] += (
            (a0 * p[x] + a1 * p[x + 1] + a2 * p[x + 2] + a3 * p[x + 3] + a4 * p[x + 4])
            + (b0 * q[x] + b1 * q[x + 1] + b2 * q[x + 2] + b3 * q[x + 3] + b4 * q[x + 4])
            + (c0 * r[x] + c1 * r[x + 1] + c2 * r[x + 2] + c3 * r[x + 3] + c4 * r[x + 4])
            + (d0 * k[x] + d1 * k[x + 1] + d2 * k[x + 2] + d3 * k[x + 3] + d4 * k[x + 4])
            + (e0 * o[x] + e1 * o[x + 1] + e2 * o[x + 2] + e3 * o[x + 3] + e4 * o[x + 4])
        )


@njit(nogil=True, error_model="numpy")
def rectified(rows, n):
    """Set what is negative to zero."""
    for i in range(len(rows)):
        row = rows[i]
        for x in range(n):
            row[x] = max(row[x], np.float32(0))


@njit(nogil=True, error_model="numpy")
def normalised_row(image, y, sums, squares, radius, softening, out, start):
    """A row minus its mean and over its deviation, from ``start`` on in ``out``."""
    height, width = image.shape
    rows = min(y + radius, height - 1) - max(y - radius, 0) + 1
    total, square = 0.0, 0.0
    for x in range(min(radius, width)):
        total += sums[x]
        square += squares[x]
    for x in range(width):
        if x + radius < width:
            total += sums[x + radius]
            square += squares[x + radius]
        if x > radius:
            total -= sums[x - radius - 1]
            square -= squares[x - radius - 1]
        count = rows * (min(x + radius, width - 1) - max(x - radius, 0) + 1)
        share = 1.0 / count
        mean = total * share
        deviation = np.sqrt(max(square * share - mean * mean, 0.0))
        out[start + x] = (image[y, x] - mean) / (deviation + softening)


@njit(nogil=True, error_model="numpy")
def changed_sums(image, y, sign, sums, squares):
    """Add a row to the sums of columns, or take it away."""
    for x in range(image.shape[1]):
        value = np.float64(image[y, x])
        sums[x] += sign * value
        squares[x] += sign * value * value


def score_rows(image, first, last, weights, biases, channels, sides, radius, softening, scores):
    """Scores of rows ``first`` to ``last`` - 1 of a level.

    Parameters
    ----------
    image : (H, W) float32
    first, last : int
        Rows of the scores.
    weights : (L, blocks, C, 5, 8, 5) float32
        Of layers: by eight channels out, channels in, rows, the eight, columns. Kernels of less
        than 5 x 5 px have zeros around them.
    biases : (L, C) float32
    channels : (L + 1,) int64
        How many channels there are between layers, 1 and 1 at the ends.
    sides : (L,) int64
        Of the kernels.
    radius, softening
        Of the normalisation.
    scores : (H - 2 m, W - 2 m) float32
        Written; m is the margin of the kernels without those zeros.
    """
    height, columns = image.shape
    extra = (4 * len(sides) - np.sum(sides - 1)) // 2  # pixels that only zeros look at
    width = columns + 2 * extra
    layers = len(biases)
    most = 1
    for count in channels:
        most = max(most, (count + CHANNELS - 1) // CHANNELS * CHANNELS)
    ring = np.zeros((layers, most, ROWS, width), np.float32)
    line = np.zeros((most // CHANNELS + 1, CHANNELS, width), np.float32)  # whole rows: vectors
    made = np.zeros(layers + 1, np.int64)
    sums, squares = np.zeros(columns), np.zeros(columns)
    top = first - extra
    for y in range(max(0, top - radius), min(top + radius, height)):
        changed_sums(image, y, 1.0, sums, squares)
    for y in range(top, last - extra + 4 * layers):
        if y + radius < height:
            changed_sums(image, y + radius, 1.0, sums, squares)
        if y - radius - 1 >= 0 and y > top:
            changed_sums(image, y - radius - 1, -1.0, sums, squares)
        if 0 <= y < height:
            into = ring[0, 0, (y - top) % ROWS]
            normalised_row(image, y, sums, squares, radius, softening, into, extra)
        made[0] += 1
        for layer in range(layers):
            if made[layer] < ROWS:
                break
            oldest = made[layer] % ROWS
            inner = width - 4 * (layer + 1)
            if layer == layers - 1 and channels[layer + 1] == 1:
                out = scores[made[layer] - ROWS + first]
                out[:] = biases[layer, 0]
                for c in range(channels[layer]):
                    one_channel(ring[layer, c], oldest, out, weights[layer, 0, c, :, 0])
                break
            count = channels[layer + 1]
            for block in range((count + CHANNELS - 1) // CHANNELS):
                part = line[block]
                for o in range(CHANNELS):
                    part[o] = biases[layer, block * CHANNELS + o]
                for c in range(channels[layer]):
                    for row in range(ROWS):
                        source, w = (
                            ring[layer, c, (oldest + row) % ROWS],
                            weights[layer, block, c, row],
                        )
                        if sides[layer] == ROWS:
                            eight_channels(source, part, inner, w)
                        elif 0 < row < ROWS - 1:
                            eight_channels_by_three(source, part, inner, w)
                rectified(part, inner)
            slot = made[layer + 1] % ROWS
            for o in range(count):
                ring[layer + 1, o, slot] = line[o // CHANNELS, o % CHANNELS]
            made[layer + 1] += 1


def find_maxima(scores, first, last, column, row, x, y):
    """Strict maxima within 5 x 5 px, of rows ``first`` to ``last`` - 1; returns how many.

    Their pixels are written to ``column`` and ``row``, places by parabolas to ``x`` and ``y``.
    """
    height, width = scores.shape
    found = 0
    for i in range(max(first, 1), min(last, height - 1)):
        above, here, below = scores[i - 1], scores[i], scores[i + 1]
        for j in range(1, width - 1):
            value = here[j]
            if not (
                value > here[j - 1]
                and value > here[j + 1]
                and value > above[j]
                and value > below[j]
            ):
                continue
            largest = True
            for k in range(max(i - 2, 0), min(i + 3, height)):
                for m in range(max(j - 2, 0), min(j + 3, width)):
                    if scores[k, m] >= value and (k != i or m != j):
                        largest = False
                        break
                if not largest:
                    break
            if not largest:
                continue
            middle = np.float64(value)
            left, right = np.float64(here[j - 1]), np.float64(here[j + 1])
            up, down = np.float64(above[j]), np.float64(below[j])
            column[found], row[found] = j, i
            x[found] = j + (right - left) / (2 * (2 * middle - left - right))
            y[found] = i + (down - up) / (2 * (2 * middle - up - down))
            found += 1
    return found


def mean_angles(image, column, row, taps, out):
    """Angles, in degrees, of the mean gradient around pixels of a level."""
    height, width = image.shape
    radius = len(taps) // 2
    for n in range(len(column)):
        across, down = 0.0, 0.0
        for k in range(-radius, radius + 1):
            i = min(max(row[n] + k, 0), height - 1)
            up, low = max(i - 1, 0), min(i + 1, height - 1)
            line_across, line_down = 0.0, 0.0
            for m in range(-radius, radius + 1):
                j = min(max(column[n] + m, 0), width - 1)
                left, right = max(j - 1, 0), min(j + 1, width - 1)
                line_across += taps[m + radius] * (image[i, right] - image[i, left])
                line_down += taps[m + radius] * (image[low, j] - image[up, j])
            across += taps[k + radius] * line_across
            down += taps[k + radius] * line_down
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

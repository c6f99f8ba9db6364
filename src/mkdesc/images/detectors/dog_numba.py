"""The compiled loops that blur an octave, strip by strip, and find its blobs.

Rows go through all images of an octave while they are in the cache: of each image only so many
rows are kept as the next filter reaches, and of each difference as a blob may still need. Filters
come as tuples: their lengths are part of the type, so that the loops over taps are unrolled.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc._support.compiling import FAST
from mkdesc.images.detectors.dog_reference import BORDER, LAYERS, STEPS

#: Sums in the order in which they are written, in every lane and row: the same bits in any strip.
LOOP = FAST | {"fastmath": {"contract", "nsz"}}

#: Rows that are made of each image before it is the next one's turn.
CHUNK = 16
#: Pixels beyond an extremum that its refinement may look at.
AROUND = STEPS + 1
#: Images in the chain: the doubled photograph, and the six of an octave.
IMAGES = LAYERS + 4
#: Numbers for each blob: those of ``dog_reference.Blob`` but for the octave.
NUMBERS = 7


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
    """Filter along a row, write ``size`` pixels at ``after``, and what ``before`` lacks of them."""
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
    for x in range(stride):
        images[np.uint64(target + x)] = images[np.uint64(source + x)]


@njit(**LOOP)
def make_image(i, halves, t, plan, images, dogs, two, smaller):
    """Make the next rows of image ``i`` of the chain from those of the one before."""
    reach, stride = plan.reach[i], plan.stride
    old = plan.front[i]
    new = min(max(t - plan.lag[i], old), plan.end[i])
    if new == old:
        return
    low, high = plan.low[i], plan.high[i]
    source = plan.at[i - 1] - plan.top[i - 1] * stride  # where row 0 of it is, or would be
    target = plan.at[i] - plan.top[i] * stride
    if old < reach and old == plan.start[i]:  # above the image
        for k in range(1, reach - old + 1):
            copy_row(
                images, source + mirrored(-k, plan.height) * stride, source - k * stride, stride
            )
    for pair in range(old, new, 2):
        count = min(2, new - pair)
        begin = source + pair * stride + plan.margin
        kept = plan.at[i] if i == IMAGES - 1 else target + pair * stride
        targets = (kept + plan.margin, kept + plan.margin + (0 if i == IMAGES - 1 else stride))
        ring = plan.dog_at[i] + plan.margin
        differences = (
            ring + pair % plan.depth[i] * stride,
            ring + (pair + 1) % plan.depth[i] * stride,
        )
        into = (dogs, differences, count)
        if i == 1:
            filter_pair(images, begin, stride, low, high, halves[0], two, targets, *into)
        elif i == 2:
            filter_pair(images, begin, stride, low, high, halves[1], two, targets, *into)
        elif i == 3:
            filter_pair(images, begin, stride, low, high, halves[2], two, targets, *into)
        elif i == 4:
            filter_pair(images, begin, stride, low, high, halves[3], two, targets, *into)
        elif i == 5:
            filter_pair(images, begin, stride, low, high, halves[4], two, targets, *into)
        else:
            filter_pair(images, begin, stride, low, high, halves[5], two, targets, *into)
        for row in range(pair, pair + count):
            after = targets[row - pair] + low
            if i < IMAGES - 1:
                mirror_sides(images, after - low, low, high, plan.width, plan.reach[i + 1])
            if i == LAYERS + 1 and plan.row <= row < plan.row_end and row % 2 == 0:
                if row // 2 < len(smaller):
                    begin = plan.column // 2
                    for x in range(min(plan.column_end // 2, smaller.shape[1]) - begin):
                        even = np.uint64(targets[row - pair] + 2 * (begin + x))
                        smaller[row // 2, np.uint64(begin + x)] = images[even]
    plan.front[i] = new
    if new == plan.height and i < IMAGES - 1:
        mirror_below(images, target, stride, plan.height, plan.reach[i + 1])


@njit(**LOOP)
def mirror_below(images, at, stride, height, reach):
    for k in range(height, height + reach):
        copy_row(images, at + mirrored(k, height) * stride, at + k * stride, stride)


@njit(**LOOP)
def first_image(i, t, plan, gray, pixels, means, images):
    """The next rows of what an octave is made of: the doubled photograph, or its first image."""
    old, low, high = plan.front[i], plan.low[i], plan.high[i]
    new = min(max(t, old), plan.end[i])
    if new == old:
        return
    target = plan.at[i] - plan.top[i] * plan.stride + plan.margin
    for row in range(old, new):
        at = target + row * plan.stride
        if i == 0:
            double_row(gray, row, low, high, means, images, at + low)
        else:
            for x in range(high - low):
                images[np.uint64(at + low + x)] = pixels[row, np.uint64(low + x)]
        mirror_sides(images, at, low, high, plan.width, plan.reach[i + 1])
    plan.front[i] = new
    if new == plan.height:
        mirror_below(images, target - plan.margin, plan.stride, plan.height, plan.reach[i + 1])


@njit(**LOOP)
def move_up(i, plan, images):
    """Forget the rows of an image that the next one no longer needs."""
    top = plan.front[i + 1] - plan.reach[i + 1]
    by = top - plan.top[i]
    if by <= 0:
        return
    beyond = plan.reach[i + 1] if plan.front[i] == plan.height else 0
    for row in range(plan.front[i] + beyond - top):
        target = plan.at[i] + row * plan.stride
        copy_row(images, target + by * plan.stride, target, plan.stride)
    plan.top[i] = top


@njit(**LOOP)
def flag_extrema(dogs, above, here, below, finer, coarser, size, threshold, flags):
    """First step: mark pixels that ten of their neighbours, and the threshold, do not rule out."""
    for x in range(size):
        p, q, r = here + x, above + x, below + x
        value = dogs[np.uint64(p)]
        a, b = dogs[np.uint64(p - 1)], dogs[np.uint64(p + 1)]
        c, d = dogs[np.uint64(q)], dogs[np.uint64(r)]
        e, f = dogs[np.uint64(q - 1)], dogs[np.uint64(q + 1)]
        g, h = dogs[np.uint64(r - 1)], dogs[np.uint64(r + 1)]
        i, j = dogs[np.uint64(finer + x)], dogs[np.uint64(coarser + x)]
        most = max(max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h))), max(i, j))
        least = min(min(min(min(a, b), min(c, d)), min(min(e, f), min(g, h))), min(i, j))
        high = (value > threshold) & (value >= most)
        flags[x] = high | ((value < -threshold) & (value <= least))


@njit(**LOOP)
def is_extremum(dogs, value, row, layer, column, plan):
    """Second step: whether none of all 26 neighbours is beyond."""
    for i in range(layer - 1, layer + 2):
        for j in range(row - 1, row + 2):
            at = row_at(plan, i, j) + column
            for k in range(-1, 2):
                other = dogs[at + k]
                if (other > value) if value > 0 else (other < value):
                    return False
    return True


@njit(**LOOP)
def row_at(plan, layer, row):
    """Where column 0 of a row of a difference is."""
    return plan.dog_at[layer + 2] + row % plan.depth[layer + 2] * plan.stride + plan.margin


@njit(**LOOP)
def refine(dogs, layer, row, column, plan, contrast, edge, out):
    """Move an extremum to where the parabola has it; False if it is no blob (section 4)."""
    scale = 1 / 255.0
    for _ in range(STEPS):
        here = row_at(plan, layer, row) + column
        up, down = row_at(plan, layer, row - 1) + column, row_at(plan, layer, row + 1) + column
        finer, coarser = (
            row_at(plan, layer - 1, row) + column,
            row_at(plan, layer + 1, row) + column,
        )
        finer_up = row_at(plan, layer - 1, row - 1) + column
        finer_down = row_at(plan, layer - 1, row + 1) + column
        coarser_up = row_at(plan, layer + 1, row - 1) + column
        coarser_down = row_at(plan, layer + 1, row + 1) + column
        value = np.float64(dogs[here])
        dx = (np.float64(dogs[here + 1]) - dogs[here - 1]) * 0.5
        dy = (np.float64(dogs[down]) - dogs[up]) * 0.5
        ds = (np.float64(dogs[coarser]) - dogs[finer]) * 0.5
        dxx = np.float64(dogs[here + 1]) + dogs[here - 1] - 2 * value
        dyy = np.float64(dogs[down]) + dogs[up] - 2 * value
        dss = np.float64(dogs[coarser]) + dogs[finer] - 2 * value
        dxy = (np.float64(dogs[down + 1]) - dogs[down - 1] - dogs[up + 1] + dogs[up - 1]) * 0.25
        dxs = (
            np.float64(dogs[coarser + 1]) - dogs[coarser - 1] - dogs[finer + 1] + dogs[finer - 1]
        ) * 0.25
        dys = (
            np.float64(dogs[coarser_down]) - dogs[coarser_up] - dogs[finer_down] + dogs[finer_up]
        ) * 0.25
        # Cramer's rule for the three unknowns.
        a, b, c = dyy * dss - dys * dys, dxs * dys - dxy * dss, dxy * dys - dxs * dyy
        determinant = dxx * a + dxy * b + dxs * c
        if determinant == 0:
            return False
        d, e, f = dxx * dss - dxs * dxs, dxy * dxs - dxx * dys, dxx * dyy - dxy * dxy
        x = -(a * dx + b * dy + c * ds) / determinant
        y = -(b * dx + d * dy + e * ds) / determinant
        s = -(c * dx + e * dy + f * ds) / determinant
        if abs(x) < 0.5 and abs(y) < 0.5 and abs(s) < 0.5:
            value = abs(value + 0.5 * (dx * x + dy * y + ds * s)) * scale
            if value * LAYERS < contrast:
                return False
            if f <= 0 or (dxx + dyy) ** 2 * edge >= (edge + 1) ** 2 * f:
                return False
            out[0], out[1], out[2], out[3] = layer, row, column, s
            out[4], out[5], out[6] = y, x, value
            return True
        if not (abs(x) < 1e6 and abs(y) < 1e6 and abs(s) < 1e6):
            return False
        column += np.int64(np.rint(x))
        row += np.int64(np.rint(y))
        layer += np.int64(np.rint(s))
        if (
            layer < 1
            or layer > LAYERS
            or not within(column, plan.width)
            or not within(row, plan.height)
        ):
            return False
        if abs(row - out[1]) > STEPS or abs(column - out[2]) > STEPS:
            return False
    return False


@njit(**LOOP)
def within(i, n):
    return BORDER <= i < n - BORDER


@njit(**LOOP)
def blobs_of_row(
    row, low, high, plan, dogs, flags, words, threshold, contrast, edge, found, count
):
    """Add the blobs of a row of all layers to ``found``; how many there are now."""
    for layer in range(1, LAYERS + 1):
        here = row_at(plan, layer, row) + low
        above, below = row_at(plan, layer, row - 1) + low, row_at(plan, layer, row + 1) + low
        finer, coarser = row_at(plan, layer - 1, row) + low, row_at(plan, layer + 1, row) + low
        flag_extrema(dogs, above, here, below, finer, coarser, high - low, threshold, flags)
        for word in range((high - low + 7) // 8):
            if words[word] == 0:
                continue
            for x in range(8 * word, min(8 * word + 8, high - low)):
                if flags[x] and is_extremum(dogs, dogs[here + x], row, layer, low + x, plan):
                    found[count, 1], found[count, 2] = row, low + x
                    if refine(dogs, layer, row, low + x, plan, contrast, edge, found[count]):
                        count += 1
    return count


def scan_tile(gray, pixels, plan, halves, rows, flags, words, threshold, contrast, edge, smaller):
    """Find the blobs of one tile of an octave.

    Parameters
    ----------
    gray : (H, W) uint8
        The photograph, for the first octave; else of no size.
    pixels : (H, W) float32
        The first image of any other octave; else of no size.
    plan : ``dog.Plan``
        Where the tile is, and where rows of images and differences are kept.
    halves : 6 tuples of float32
        Halves of the filters, the middle first.
    rows : ``dog.Rows``
        Room for images, differences, and single rows.
    flags, words : (8 S,) uint8, (S,) uint64
        Room for what is known of a row: the same, as bytes and as words.
    threshold, contrast, edge : float
        As OpenCV's.
    smaller : (H // 2, W // 2) float32
        The first image of the next octave is written here; of no size if there is none.

    Returns
    -------
    found : (M, 7) float64
        Layer, row, column, how far the blob is from them, and its contrast.
    count : int
        How many of these are blobs: the first ones.
    """
    first = 0 if len(gray) else 1
    images, dogs, two, means = rows
    low, high = max(plan.column, BORDER), min(plan.column_end, plan.width - BORDER)
    row, stop = max(plan.row, BORDER), min(plan.row_end, plan.height - BORDER)
    found = np.empty((256, NUMBERS), np.float64)
    count = np.int64(0)
    t = plan.start[first]
    last = IMAGES - 1
    while plan.front[last] < plan.end[last]:
        t += CHUNK
        for i in range(first, last):
            move_up(i, plan, images)
        first_image(first, t, plan, gray, pixels, means, images)
        for i in range(first + 1, IMAGES):
            make_image(i, halves, t, plan, images, dogs, two, smaller)
        front = plan.front[last]
        ready = stop if front == plan.height else min(stop, front - AROUND)
        while row < ready and low < high:
            if count + LAYERS * (high - low) >= len(found):
                more = np.empty((2 * len(found) + LAYERS * (high - low), NUMBERS), np.float64)
                for i in range(count):
                    for j in range(NUMBERS):
                        more[i, j] = found[i, j]
                found = more
            count = blobs_of_row(
                row, low, high, plan, dogs, flags, words, threshold, contrast, edge, found, count
            )
            row += 1
    return found, count

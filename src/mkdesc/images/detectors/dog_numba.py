"""The compiled loops that blur an octave, strip by strip, and find its blobs.

Rows go through all images of an octave while they are in the cache: of each image only so many
rows are kept as the next filter reaches, and of each difference as a blob may still need.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc.images.detectors.dog_extrema_numba import blobs_of_row
from mkdesc.images.detectors.dog_filters_numba import (
    LOOP,
    copy_row,
    double_row,
    filter_pair,
    mirror_below,
    mirror_sides,
    mirrored,
)
from mkdesc.images.detectors.dog_reference import BORDER, LAYERS
from mkdesc.images.detectors.dog_tiles import AROUND, CHUNK

#: Images in the chain: the doubled photograph, and the six of an octave.
IMAGES = LAYERS + 4


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
            own = plan.row <= row < min(plan.row_end, 2 * len(smaller))
            if i == LAYERS + 1 and own and row % 2 == 0:
                begin = plan.column // 2
                for x in range(min(plan.column_end // 2, smaller.shape[1]) - begin):
                    even = np.uint64(targets[row - pair] + 2 * (begin + x))
                    smaller[row // 2, np.uint64(begin + x)] = images[even]
    plan.front[i] = new
    if new == plan.height and i < IMAGES - 1:
        mirror_below(images, target, stride, plan.height, plan.reach[i + 1])


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


def scan_tile(
    gray, pixels, plan, halves, rows, flags, words, threshold, contrast, edge, smaller, found, at
):
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
    found : (M, 7) float64
        Of each blob the layer, row, column, how far it is from them, and its contrast are written
        here. There must be room for more blobs than a row of all layers has pixels.
    at : (3,) int64
        How many blobs were found, the row of blobs that comes next, and the row of the first
        image: at first 0, -1 and -1. Changed.

    Returns
    -------
    int
        1 if that is all, 0 if ``found`` must have more room to go on.
    """
    first = 0 if len(gray) else 1
    images, dogs, two, means = rows
    low, high = max(plan.column, BORDER), min(plan.column_end, plan.width - BORDER)
    row, stop = max(plan.row, BORDER), min(plan.row_end, plan.height - BORDER)
    last = IMAGES - 1
    if at[1] < 0:
        at[1], at[2] = row, plan.start[first]
    while True:
        front = plan.front[last]
        ready = stop if front == plan.height else min(stop, front - AROUND)
        while at[1] < ready and low < high:
            if at[0] + LAYERS * (high - low) >= len(found):
                return 0
            at[0] = blobs_of_row(
                at[1], low, high, plan, dogs, flags, words, threshold, contrast, edge, found, at[0]
            )
            at[1] += 1
        if front >= plan.end[last]:
            return 1
        at[2] += CHUNK
        for i in range(first, last):
            move_up(i, plan, images)
        first_image(first, at[2], plan, gray, pixels, means, images)
        for i in range(first + 1, IMAGES):
            make_image(i, halves, at[2], plan, images, dogs, two, smaller)

"""The learned detector, compiled for the CPU, by several threads: the same bits for any number."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import array_type
from mkdesc.images.detectors.learned_reference import (
    LEAST_BEND,
    NORMALISED_RADIUS,
    SOFTENING,
    Maxima,
    angle_taps,
    level_sizes,
    no_maxima,
    resizing,
)
from mkdesc.images.detectors.learned_rows import rows_at_once
from mkdesc.images.detectors.learned_weights import Weights

#: Rows that a thread does at a time. Sums of columns begin anew with them: a fixed number.
STRIP = 64

Floats = NDArray[np.float32]


def _combined() -> NDArray[np.float64]:
    """How five rows of weights are combined in eight ways (8, 5): values of a polynomial.

    At points that :func:`~mkdesc.images.detectors.convolving_numba.combine_rows` has for rows of
    pixels; each over the product of its distances from the others, as that leaves it out.
    """
    points = np.array([0, 1, -1, 2, -2, 0.5, -0.5])
    differences = points[:, None] - points[None]
    np.fill_diagonal(differences, 1)
    products = differences.prod(axis=1) * [-1, 1, 1, 1, 1, 1, 1]
    finite = points[:, None] ** np.arange(5) / products[:, None]
    return np.vstack([finite, [0, 0, 0, 0, 1]])


COMBINED = _combined()


class Loops(NamedTuple):
    """The compiled loops."""

    score: Callable[..., None]
    find: Callable[..., int]
    angles: Callable[..., None]
    shorten: Callable[..., None]


@locked_cache
def compile_learned() -> Loops:
    """The compiled loops, from the cache if they are there."""
    loops = "mkdesc.images.detectors.learned_loops_numba"

    def read(ndim: int, dtype: str = "float32") -> Any:
        return array_type(dtype, ndim)

    def write(ndim: int, dtype: str = "float32") -> Any:
        return array_type(dtype, ndim, written=True)

    whole = "int64"
    score = (read(2), whole, whole, read(3), read(2), *[read(1, "int64")] * 2, whole)
    places = (*[write(1, "int64")] * 2, *[write(1, "float64")] * 2, write(1))
    lines = (read(1, "int64"), read(2))
    return Loops(
        compile_loop(f"{loops}:score_rows", (*score, "float32", write(2))),
        compile_loop(f"{loops}:find_maxima", (read(2), whole, whole, "float64", *places)),
        compile_loop(
            f"{loops}:mean_angles",
            (read(2), *[read(1, "int64")] * 2, read(1), write(1, "float64")),
        ),
        compile_loop(f"{loops}:shorten_image", (read(2), *lines, *lines, whole, whole, write(2))),
    )


class Arranged(NamedTuple):
    """Weights as the loops want them: by eight channels, of the last layer by two rows."""

    weights: Floats
    biases: Floats
    channels: NDArray[np.int64]
    sides: NDArray[np.int64]


@lru_cache(maxsize=8)
def arranged(network: Weights) -> Arranged:
    """Arrange weights."""
    channels = np.array([1, *(len(bias) for _, bias in network.layers)], np.int64)
    sides = np.array([weight.shape[2] for weight, _ in network.layers], np.int64)
    blocks = -(-int(channels.max()) // 8)
    most = 8 * 8 * int((channels[:-1] * sides).max())
    weights = np.zeros((len(sides), blocks, most), np.float32)
    biases = np.zeros((len(sides), 8 * blocks), np.float32)
    for number, (weight, bias) in enumerate(network.layers):
        out, into, side, _ = weight.shape
        biases[number, :out] = bias
        whole = np.zeros((8 * blocks, into, side, side), np.float32)
        whole[:out] = weight
        if number == len(sides) - 1:
            two = np.zeros((2, into, side + 1, side), np.float32)
            two[0, :, :-1], two[1, :, 1:] = weight[0], weight[0]
            biases[number, 1] = bias[0]
            weights[number, 0, : two.size] = two.transpose(1, 2, 3, 0).ravel()
            continue
        for block in range(blocks):
            some = whole[8 * block : 8 * block + 8].transpose(1, 2, 3, 0)
            if rows_at_once(side, into) == 4:
                some = np.einsum("kr,crto->kcto", COMBINED, some.astype(np.float64))
            weights[number, block, : some.size] = some.ravel()
    return Arranged(weights, biases, channels, sides)


@lru_cache(maxsize=64)
def _resizing(before: int, after: int) -> tuple[NDArray[np.int64], Floats]:
    return resizing(before, after)


def maxima(
    gray: NDArray[np.uint8], weights: Weights, levels: int, n_threads: int = 1
) -> tuple[list[Floats], Maxima]:
    """The levels of an image, and all maxima on them."""
    loops, network, m = compile_learned(), arranged(weights), weights.margin
    sizes = level_sizes(gray.shape, levels, 2 * m + 3)
    if not sizes:
        return [], no_maxima()
    scores = [np.empty((height - 2 * m, width - 2 * m), np.float32) for height, width in sizes]

    def score(level: int, first: int, last: int) -> None:
        softening = np.float32(SOFTENING)
        loops.score(
            images[level], first, last, *network, NORMALISED_RADIUS, softening, scores[level]
        )

    def find(level: int, first: int, last: int) -> Maxima:
        # Of 3 x 3 pixels one at most is larger than all others within 5 x 5.
        most = ((last - first + 2) // 3) * ((scores[level].shape[1] + 2) // 3)
        column, row = np.empty(most, np.int64), np.empty(most, np.int64)
        x, y, value = np.empty(most), np.empty(most), np.empty(most, np.float32)
        count = loops.find(scores[level], first, last, LEAST_BEND, column, row, x, y, value)
        which = np.full(count, level)
        column, row, value = column[:count] + m, row[:count] + m, value[:count]
        return Maxima(which, column, row, x[:count] + m, y[:count] + m, value)

    with ThreadPoolExecutor(n_threads) as pool:
        run: Callable[..., Any] = map if n_threads == 1 else pool.map
        images = _pyramid(gray, sizes, loops, run)
        strips = [
            (level, *strip) for level, score in enumerate(scores) for strip in _strips(len(score))
        ]
        list(run(score, *zip(*strips, strict=True)))
        found = list(run(find, *zip(*strips, strict=True)))
    return images, Maxima._make(np.concatenate(each) for each in zip(*found, strict=True))


def _strips(rows: int) -> list[tuple[int, int]]:
    return [(start, min(start + STRIP, rows)) for start in range(0, rows, STRIP)]


def _pyramid(
    gray: NDArray[np.uint8],
    sizes: list[tuple[int, int]],
    loops: Loops,
    run: Callable[..., Any],
) -> list[Floats]:
    """An image in [0, 1] in ever smaller sizes."""
    images = [np.multiply(gray, np.float32(1 / 255), dtype=np.float32)]
    for height, width in sizes[1:]:
        before, after = images[-1], np.empty((height, width), np.float32)
        rows, columns = _resizing(len(before), height), _resizing(before.shape[1], width)

        def shorten(
            strip: tuple[int, int],
            before: Floats = before,
            after: Floats = after,
            lines: tuple[Any, ...] = (*rows, *columns),
        ) -> None:
            loops.shorten(before, *lines, *strip, after)

        list(run(shorten, _strips(height)))
        images.append(after)
    return images


def angles(images: list[Floats], found: Maxima) -> NDArray[np.float64]:
    """Angles (N,) of maxima, in degrees, clockwise as seen in the image."""
    out, taps = np.zeros(len(found.level)), angle_taps()
    for level, image in enumerate(images):
        here = np.flatnonzero(found.level == level)
        degrees = np.empty(len(here))
        compile_learned().angles(image, found.column[here], found.row[here], taps, degrees)
        out[here] = degrees
    return out

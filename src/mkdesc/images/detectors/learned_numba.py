"""The learned detector, compiled for the CPU, by several threads: the same bits for any number."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.compiling import array_type, compile_loop, once
from mkdesc.images.detectors.learned_reference import (
    NORMALISED_RADIUS,
    SOFTENING,
    Maxima,
    angle_taps,
    level_sizes,
    no_maxima,
    resizing,
)
from mkdesc.images.detectors.learned_weights import Weights

__all__ = ["angles", "compile_learned", "maxima"]

#: Rows that a thread does at a time. Sums of columns begin anew with them: a fixed number.
STRIP = 64

Floats = NDArray[np.float32]


class Loops(NamedTuple):
    """The compiled loops."""

    score: Callable[..., None]
    find: Callable[..., int]
    angles: Callable[..., None]
    shorten: Callable[..., None]


@once
def compile_learned() -> Loops:
    """The compiled loops, from the cache if they are there."""
    from numba import types

    from mkdesc.images.detectors import learned_loops_numba as loops

    def read(ndim: int, dtype: str = "float32") -> Any:
        return array_type(dtype, ndim)

    def write(ndim: int, dtype: str = "float32") -> Any:
        return array_type(dtype, ndim, written=True)

    whole, real = types.int64, types.float64
    score = (
        read(2),
        whole,
        whole,
        read(6),
        read(2),
        *[read(1, "int64")] * 2,
        whole,
        real,
        write(2),
    )
    places = (*[write(1, "int64")] * 2, *[write(1, "float64")] * 2)
    lines = (read(1, "int64"), read(2))
    return Loops(
        compile_loop(loops.score_rows, score, fastmath=loops.FAST),
        compile_loop(loops.find_maxima, (read(2), whole, whole, *places)),
        compile_loop(
            loops.mean_angles, (read(2), *[read(1, "int64")] * 2, read(1), write(1, "float64"))
        ),
        compile_loop(loops.shorten_image, (read(2), *lines, *lines, whole, whole, write(2))),
    )


class Arranged(NamedTuple):
    """Weights as the loops want them: by eight channels, kernels in 5 x 5."""

    weights: Floats
    biases: Floats
    channels: NDArray[np.int64]
    sides: NDArray[np.int64]


@lru_cache(maxsize=8)
def arranged(network: Weights) -> Arranged:
    """Arrange weights."""
    channels = np.array([1, *(len(bias) for _, bias in network.layers)], np.int64)
    blocks = -(-int(channels.max()) // 8)
    layers = len(network.layers)
    weights = np.zeros((layers, blocks, int(channels.max()), 5, 8, 5), np.float32)
    biases = np.zeros((layers, 8 * blocks), np.float32)
    for number, (weight, bias) in enumerate(network.layers):
        out, into, side, _ = weight.shape
        edge = (5 - side) // 2
        whole = np.pad(weight, ((0, 8 * blocks - out), (0, 0), (edge, edge), (edge, edge)))
        by_eight = whole.reshape(blocks, 8, into, 5, 5).transpose(0, 2, 3, 1, 4)
        weights[number, :, :into] = by_eight
        biases[number, :out] = bias
    sides = np.array([weight.shape[2] for weight, _ in network.layers], np.int64)
    return Arranged(weights, biases, channels, sides)


@lru_cache(maxsize=64)
def _resizing(before: int, after: int) -> tuple[NDArray[np.int64], Floats]:
    return resizing(before, after)


def maxima(
    gray: NDArray[np.uint8], weights: Weights, levels: int, n_threads: int = 1
) -> tuple[list[Floats], Maxima]:
    """The levels of an image, and all maxima on them."""
    loops, network = compile_learned(), arranged(weights)
    sizes = level_sizes(*gray.shape, levels, 2 * weights.margin + 3)
    if not sizes:
        return [], no_maxima()
    with ThreadPoolExecutor(n_threads) as pool:

        def by_strips(rows: int, work: Callable[[int, int], Any]) -> list[Any]:
            strips = [(start, min(start + STRIP, rows)) for start in range(0, rows, STRIP)]
            if n_threads == 1:
                return [work(*strip) for strip in strips]
            return list(pool.map(lambda strip: work(*strip), strips))

        images = _pyramid(gray, sizes, loops, by_strips)
        found = []
        for level, image in enumerate(images):
            scores = np.empty(
                (image.shape[0] - 2 * weights.margin, image.shape[1] - 2 * weights.margin),
                np.float32,
            )

            def score(
                first: int, last: int, image: Floats = image, scores: Floats = scores
            ) -> None:
                loops.score(image, first, last, *network, NORMALISED_RADIUS, SOFTENING, scores)

            def find(first: int, last: int, scores: Floats = scores) -> tuple[Any, ...]:
                most = (last - first) * scores.shape[1] // 4 + 8
                column, row = np.empty(most, np.int64), np.empty(most, np.int64)
                x, y = np.empty(most), np.empty(most)
                count = loops.find(scores, first, last, column, row, x, y)
                return column[:count], row[:count], x[:count], y[:count]

            by_strips(len(scores), score)
            parts = by_strips(len(scores), find)
            column, row, x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
            m = weights.margin
            which = np.full(len(row), level)
            found.append(Maxima(which, column + m, row + m, x + m, y + m, scores[row, column]))
    return images, Maxima(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _pyramid(
    gray: NDArray[np.uint8],
    sizes: list[tuple[int, int]],
    loops: Loops,
    by_strips: Callable[..., Any],
) -> list[Floats]:
    """An image in [0, 1] in ever smaller sizes."""
    images = [np.multiply(gray, np.float32(1 / 255), dtype=np.float32)]
    for height, width in sizes[1:]:
        before, after = images[-1], np.empty((height, width), np.float32)
        rows, columns = _resizing(len(before), height), _resizing(before.shape[1], width)

        def shorten(
            first: int,
            last: int,
            before: Floats = before,
            after: Floats = after,
            lines: tuple[Any, ...] = (*rows, *columns),
        ) -> None:
            loops.shorten(before, *lines, first, last, after)

        by_strips(height, shorten)
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

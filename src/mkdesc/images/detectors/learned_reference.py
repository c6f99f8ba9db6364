"""The learned detector as it is defined, in numpy: slow, and what the others are held against.

An image goes through a pyramid of levels, each 1 / sqrt 2 of the one before. On each, pixels minus
their mean and over their deviation in 31 x 31 px go through small convolutions, which give a score
to every pixel. Keypoints are where a score exceeds all others within 5 x 5 px; parabolas through
its neighbours say where exactly. A keypoint's angle is that of the mean
gradient around it.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.detectors.learned_weights import Weights

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

#: Sigma of a keypoint of the first level: a model that looks at 20 sigma sees 32 px of a level.
SIGMA = 1.6
#: Levels of the pyramid, each 1 / sqrt 2 of the one before.
LEVELS = 6
#: A score counts so many times what it would on the next finer level: what coarse levels show is
#: seen again more often (docs/keypoints.md).
COARSER = 1.1
#: Half the side of the square in which an image is normalised, and what is added to its deviation.
NORMALISED_RADIUS, SOFTENING = 15, 0.02
#: Twice a maximum minus its two neighbours, at least, along rows and columns: less is rounding,
#: which is all there is in images of one gray level.
LEAST_BEND = 1e-3
#: Sigma of the Gaussian in which gradients are averaged for a keypoint's angle, and its radius.
ANGLE_SIGMA, ANGLE_RADIUS = 4.0, 12


class Maxima(NamedTuple):
    """Where scores are largest, on all levels.

    Attributes
    ----------
    level
        (N,) int64.
    column, row
        (N,) int64: pixels of the level.
    x, y
        (N,) float64: places, in pixels of the level.
    score
        (N,) float32.
    """

    level: NDArray[np.int64]
    column: NDArray[np.int64]
    row: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    score: Floats

    def take(self, indices: NDArray[np.int64]) -> Maxima:
        """Some of them."""
        return Maxima._make(values[indices] for values in self)


def no_maxima() -> Maxima:
    """Those of an image that is too small."""
    whole, real = np.empty(0, np.int64), np.empty(0)
    return Maxima(whole, whole, whole, real, real, np.empty(0, np.float32))


def candidates(n: int) -> int:
    """How many maxima ``n`` keypoints are chosen from: some are of one place, and dropped."""
    return 2 * n + 100


def level_sizes(shape: tuple[int, ...], levels: int, least: int) -> list[tuple[int, int]]:
    """Heights and widths of the levels of a pyramid by 1 / sqrt 2; none smaller than ``least``.

    >>> level_sizes((100, 200), 3, 60)
    [(100, 200), (71, 141)]
    """
    height, width = shape
    sizes = [
        (round(height * 2 ** (-level / 2)), round(width * 2 ** (-level / 2)))
        for level in range(levels)
    ]
    return [size for size in sizes if min(size) >= least]


def resizing(before: int, after: int) -> tuple[NDArray[np.int64], Floats]:
    """How a line of pixels is made shorter: first pixels (after,) and weights (after, taps).

    A triangle as wide as two pixels of the result, as PyTorch's antialiased bilinear one.
    """
    scale = before / after
    taps = int(np.ceil(2 * scale)) + 1
    centre = (np.arange(after) + 0.5) * scale
    first = np.maximum(np.floor(centre - scale + 0.5), 0).astype(np.int64)
    pixel = first[:, None] + np.arange(taps)
    weight = np.maximum(0, 1 - np.abs((pixel + 0.5 - centre[:, None]) / scale))
    weight[pixel >= before] = 0
    # All taps are inside of the line: those that stick out weigh nothing.
    shift = np.maximum(first + taps - before, 0)
    shift = np.minimum(shift, first)
    moved = np.zeros_like(weight)
    for i in range(after):
        moved[i, shift[i] :] = weight[i, : taps - shift[i]]
    return first - shift, (moved / moved.sum(axis=1, keepdims=True)).astype(np.float32)


def pyramid(gray: NDArray[np.uint8], levels: int, least: int) -> list[Floats]:
    """An image in [0, 1] in ever smaller sizes, each made of the one before."""
    made: list[Floats] = []
    image: Floats = np.divide(gray, 255, dtype=np.float32)
    for height, width in level_sizes(gray.shape, levels, least):
        if made:
            image = _shortened(_shortened(image, height).T, width).T
        made.append(image)
    return made


def _shortened(image: Floats, rows: int) -> Floats:
    """An image with fewer rows."""
    first, weights = resizing(len(image), rows)
    padded = np.concatenate([image, np.zeros((weights.shape[1], image.shape[1]), np.float32)])
    parts = (weights[:, t, None] * padded[first + t] for t in range(weights.shape[1]))
    return np.sum(list(parts), axis=0, dtype=np.float32)


def normalised(image: Floats) -> NDArray[np.float64]:
    """An image minus its mean, over its deviation, in 31 x 31 px (what is inside of it)."""
    from scipy.ndimage import correlate1d

    ones = np.ones(2 * NORMALISED_RADIUS + 1)

    def total(values: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = correlate1d(values, ones, axis=0, mode="constant")
        return np.asarray(correlate1d(rows, ones, axis=1, mode="constant"))

    exact = image.astype(np.float64)
    count = total(np.ones(image.shape))
    mean = total(exact) / count
    deviation = np.sqrt(np.maximum(total(exact**2) / count - mean**2, 0))
    return (exact - mean) / (deviation + SOFTENING)


def scores(image: Floats, weights: Weights) -> NDArray[np.float64]:
    """Scores of all pixels but those of a margin."""
    from scipy.signal import correlate

    planes, valid = normalised(image)[None], partial(correlate, mode="valid", method="direct")
    for number, (weight, bias) in enumerate(weights.layers):
        if number:
            planes = np.maximum(planes, 0)
        wide = weight.astype(np.float64)
        planes = np.stack(
            [bias[o] + np.sum(list(map(valid, planes, wide[o])), axis=0) for o in range(len(wide))]
        )
    return planes[0]


def maxima(gray: NDArray[np.uint8], weights: Weights, levels: int) -> tuple[list[Floats], Maxima]:
    """The levels of an image, and all maxima on them."""
    from scipy.ndimage import maximum_filter

    images = pyramid(gray, levels, 2 * weights.margin + 3)
    found = []
    around = np.ones((5, 5), bool)
    around[2, 2] = False
    for level, image in enumerate(images):
        score = scores(image, weights).astype(np.float32)
        others = maximum_filter(score, footprint=around, mode="constant", cval=-np.inf)
        largest = score > others
        largest[[0, -1]] = largest[:, [0, -1]] = False
        row, column = np.nonzero(largest)
        exact = score.astype(np.float64)
        middle = exact[row, column]
        x, bend_x = _vertex(exact[row, column - 1], middle, exact[row, column + 1])
        y, bend_y = _vertex(exact[row - 1, column], middle, exact[row + 1, column])
        which = np.full(len(row), level)
        m = weights.margin
        every = Maxima(which, column + m, row + m, column + x + m, row + y + m, score[row, column])
        found.append(every.take(np.flatnonzero(np.minimum(bend_x, bend_y) > LEAST_BEND)))
    if not found:
        return [], no_maxima()
    return images, Maxima._make(np.concatenate(parts) for parts in zip(*found, strict=True))


def _vertex(before: Doubles, middle: Doubles, after: Doubles) -> tuple[Doubles, Doubles]:
    """Where a parabola through three values has its top, from the middle one; how it bends."""
    bend = 2 * middle - before - after
    return (after - before) / (2 * bend), bend


def angle_taps() -> Floats:
    """Weights (25,) of the Gaussian in which gradients are averaged; they add up to 1."""
    offsets = np.arange(-ANGLE_RADIUS, ANGLE_RADIUS + 1)
    taps = np.exp(-0.5 * (offsets / ANGLE_SIGMA) ** 2)
    return (taps / taps.sum()).astype(np.float32)


def angles(images: list[Floats], found: Maxima) -> NDArray[np.float64]:
    """Angles (N,) of maxima, in degrees, clockwise as seen in the image."""
    from scipy.ndimage import correlate1d

    out = np.zeros(len(found.level))
    taps = angle_taps().astype(np.float64)
    for level, image in enumerate(images):
        wide = np.pad(image.astype(np.float64), 1, mode="edge")
        gradients = (wide[1:-1, 2:] - wide[1:-1, :-2], wide[2:, 1:-1] - wide[:-2, 1:-1])
        across, down = (
            correlate1d(correlate1d(g, taps, axis=0, mode="nearest"), taps, axis=1, mode="nearest")
            for g in gradients
        )
        here = found.level == level
        at = found.row[here], found.column[here]
        out[here] = np.degrees(np.arctan2(down[at], across[at])) % 360
    return out

"""SIFT's blobs in plain numpy, as in the paper; the compiled loops are held against this.

D. Lowe, "Distinctive image features from scale-invariant keypoints", 2004: sections 3 (extrema of
differences of Gaussians), 4 (places, contrast, edges) and 5 (orientations). Where the paper leaves
a choice it is OpenCV's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Images of an octave that extrema are looked for in.
LAYERS = 3
#: Sigma of the blur that a photograph has as it comes, in pixels of the doubled one.
DOUBLED = 1.0
#: Pixels at the border of every octave where there are no keypoints.
BORDER = 5
#: How often an extremum may move to a neighbouring pixel or layer.
STEPS = 5
#: Directions are counted in so many bins; peaks of at least this part of the highest count.
BINS, PEAK = 36, 0.8
#: Filters reach so many sigmas far.
REACH = 3.25

Floats = NDArray[np.float32]


class Blob(NamedTuple):
    """An extremum: pixel and layer of its octave, how far it is from them, and its contrast."""

    octave: int
    layer: int
    row: int
    column: int
    to_layer: float
    to_row: float
    to_column: float
    contrast: float


@lru_cache
def gaussian(sigma: float, reach: int | None = None) -> tuple[np.float32, ...]:
    """Half of a filter, the middle first: samples of a Gaussian whose variance is as it should be.

    It reaches so many pixels to either side; None: :data:`REACH` sigmas. Cutting it off makes it
    narrower; the Gaussian that is sampled is wider by as much.

    Examples
    --------
    >>> half = np.array(gaussian(1.5))
    >>> bool(abs(2 * half.sum() - half[0] - 1) < 1e-6)
    True
    >>> round(float(2 * half @ np.arange(len(half)) ** 2), 5)  # the variance
    2.25
    """
    steps = np.arange((max(round(REACH * sigma), 1) if reach is None else reach) + 1)
    low, high = 0.0, 4 * sigma + 1
    for _ in range(60):
        wide = (low + high) / 2
        half = np.exp(-(steps**2) / (2 * wide**2))
        half /= 2 * half.sum() - half[0]
        low, high = (low, wide) if 2 * half @ steps**2 > sigma**2 else (wide, high)
    return tuple(half.astype(np.float32))


def layer_sigmas(sigma: float) -> list[float]:
    """By how much the doubled photograph is blurred first, and then each image of an octave."""
    first = np.sqrt(max(sigma**2 - DOUBLED**2, 0.01))
    totals = sigma * 2.0 ** (np.arange(LAYERS + 3) / LAYERS)
    return [float(first), *np.sqrt(np.diff(totals**2)).tolist()]


def count_octaves(height: int, width: int) -> int:
    """For a photograph of this size; the first octave is of twice the size."""
    return max(round(np.log2(2 * min(height, width)) - 2) + 1, 0)


def first_threshold(contrast: float) -> float:
    """What a difference must be above before anything else is asked, in gray values."""
    return float(np.floor(0.5 * contrast / LAYERS * 255))


def doubled(gray: NDArray[np.uint8]) -> Floats:
    """Twice the size: pixel 2 i is pixel i, and those between are means."""
    image = gray.astype(np.float32)
    for axis in (0, 1):
        after = np.concatenate(
            [image.take(range(1, image.shape[axis]), axis), image.take([-1], axis)], axis
        )
        image = np.stack([image, (image + after) / 2], axis + 1).reshape(
            [n * (1 + (i == axis)) for i, n in enumerate(image.shape)]
        )
    return image


def blurred(image: Floats, sigma: float) -> Floats:
    """By a separable filter; beyond the border the image is its mirror image."""
    half = gaussian(sigma)
    reach = len(half) - 1
    for axis in (0, 1):
        widths = [(reach, reach) if i == axis else (0, 0) for i in (0, 1)]
        wide = np.pad(image, widths, "reflect" if image.shape[axis] > 1 else "edge")
        size = image.shape[axis]
        parts = [
            half[abs(k)] * wide.take(range(reach + k, reach + k + size), axis)
            for k in range(-reach, reach + 1)
        ]
        image = np.sum(parts, axis=0)
    return image


def octaves_of(gray: NDArray[np.uint8], sigma: float) -> list[list[Floats]]:
    """The six images of every octave, each more blurred than the one before."""
    first, *others = layer_sigmas(sigma)
    image = blurred(doubled(gray), first)
    octaves = []
    for _ in range(count_octaves(*gray.shape)):
        images = [image]
        for more in others:
            images.append(blurred(images[-1], more))
        octaves.append(images)
        height, width = image.shape
        image = images[LAYERS][: height // 2 * 2 : 2, : width // 2 * 2 : 2]
    return octaves


def find_blobs(
    gray: NDArray[np.uint8], contrast: float, edge: float, sigma: float
) -> tuple[list[Blob], list[list[Floats]]]:
    """All blobs of an image, and the images of its octaves."""
    octaves = octaves_of(gray, sigma)
    blobs = []
    for octave, images in enumerate(octaves):
        dogs = np.diff(np.array(images), axis=0)
        for layer, row, column in _extrema(dogs, first_threshold(contrast)):
            blob = _refined(dogs, octave, layer, row, column, contrast, edge)
            if blob is not None:
                blobs.append(blob)
    return blobs, octaves


def _extrema(dogs: Floats, threshold: float) -> NDArray[np.int64]:
    """Layer, row, column (N, 3) of what no neighbour, in place and scale, is beyond."""
    inner = dogs[1:-1, BORDER:-BORDER, BORDER:-BORDER]
    if inner.size == 0:
        return np.empty((0, 3), np.int64)
    _, height, width = dogs.shape
    near = [
        dogs[
            1 + i : LAYERS + 1 + i,
            BORDER + j : height - BORDER + j,
            BORDER + k : width - BORDER + k,
        ]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        for k in (-1, 0, 1)
    ]
    high = (inner > threshold) & (inner >= np.max(near, axis=0))
    low = (inner < -threshold) & (inner <= np.min(near, axis=0))
    return np.argwhere(high | low) + np.array([1, BORDER, BORDER])


def _refined(
    dogs: Floats, octave: int, layer: int, row: int, column: int, contrast: float, edge: float
) -> Blob | None:
    """Where the parabola through the neighbours has its extremum, if it is a blob (section 4)."""
    _, height, width = dogs.shape
    for _ in range(STEPS):
        near = dogs[layer - 1 : layer + 2, row - 1 : row + 2, column - 1 : column + 2]
        cube = near.astype(np.float64) / 255
        slope = np.array([cube[2, 1, 1] - cube[0, 1, 1], cube[1, 2, 1] - cube[1, 0, 1],
                          cube[1, 1, 2] - cube[1, 1, 0]]) / 2  # fmt: skip
        hessian = np.empty((3, 3))
        for i in range(3):
            for j in range(3):
                hessian[i, j] = _second_difference(cube, i, j)
        try:
            shift = -np.linalg.solve(hessian, slope)
        except np.linalg.LinAlgError:
            return None
        if (np.abs(shift) < 0.5).all():
            break
        if not (np.abs(shift) < 1e6).all():
            return None
        layer, row, column = np.rint(np.add(shift, (layer, row, column))).astype(int).tolist()
        inside = BORDER <= row < height - BORDER and BORDER <= column < width - BORDER
        if not (1 <= layer <= LAYERS and inside):
            return None
    else:
        return None
    value = cube[1, 1, 1] + slope @ shift / 2
    trace, determinant = np.trace(hessian[1:, 1:]), np.linalg.det(hessian[1:, 1:])
    if abs(value) * LAYERS < contrast:
        return None
    if determinant <= 0 or trace**2 * edge >= (edge + 1) ** 2 * determinant:
        return None
    to_layer, to_row, to_column = shift.tolist()
    return Blob(octave, layer, row, column, to_layer, to_row, to_column, float(abs(value)))


def _second_difference(cube: NDArray[np.float64], i: int, j: int) -> float:
    a, b = np.eye(3, dtype=int)[[i, j]]
    middle = np.ones(3, int)
    if i == j:
        return float(cube[tuple(middle + a)] + cube[tuple(middle - a)] - 2 * cube[1, 1, 1])
    return (
        float(
            cube[tuple(middle + a + b)]
            + cube[tuple(middle - a - b)]
            - cube[tuple(middle + a - b)]
            - cube[tuple(middle - a + b)]
        )
        / 4
    )


def orientations(images: list[Floats], blob: Blob, sigma: float) -> list[tuple[float, float]]:
    """Height and angle, in degrees, of each peak of the directions around a blob (section 5)."""
    image = images[blob.layer].astype(np.float64)
    height, width = image.shape
    scale = sigma * 2 ** ((blob.layer + blob.to_layer) / LAYERS)
    reach = round(4.5 * scale)
    counts = np.zeros(BINS)
    for y in range(max(blob.row - reach, 1), min(blob.row + reach, height - 2) + 1):
        for x in range(max(blob.column - reach, 1), min(blob.column + reach, width - 2) + 1):
            dx = image[y, x + 1] - image[y, x - 1]
            dy = image[y - 1, x] - image[y + 1, x]
            far = (y - blob.row) ** 2 + (x - blob.column) ** 2
            weight = np.exp(-far / (2 * (1.5 * scale) ** 2)) * np.hypot(dx, dy)
            counts[round(np.degrees(np.arctan2(dy, dx)) % 360 / 360 * BINS) % BINS] += weight
    binomial = np.array([1, 4, 6, 4, 1]) / 16
    smooth = binomial @ [np.roll(counts, k) for k in range(-2, 3)]
    peaks = []
    for i, value in enumerate(smooth):
        before, after = smooth[i - 1], smooth[(i + 1) % BINS]
        if value > before and value > after and value >= PEAK * smooth.max():
            exactly = i + 0.5 * (before - after) / (before - 2 * value + after)
            peaks.append((float(value), float(-exactly * 360 / BINS % 360)))
    return peaks

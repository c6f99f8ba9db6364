"""Photographs at several resolutions, for fits to sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import array_type
from mkdesc.images.gray import as_gray, check_gray_range

#: Standard deviations, in pixels, of the blur of the photograph, and of each level before it is
#: halved.
BLUR, HALVING_BLUR = 0.6, 1.0

#: Levels at most, and the smaller side that a level must have to be halved once more.
MAX_LEVELS, MIN_HALVED = 6, 48

#: Loops have places in single precision, and indices of all pixels in 32 bits.
LONGEST, LARGEST = 2**23, 2**31

#: Gray levels per unit of each type of image: fits think in gray levels from 0 to 255.
_GRAY_LEVELS = {"uint8": 1.0, "uint16": 1 / 257, "float32": 255.0}


class Pyramid(NamedTuple):
    """A photograph at several resolutions, laid out for compiled loops.

    Pixel (x, y) of level l is centred at ((x + 1/2) 2^l - 1/2, (y + 1/2) 2^l - 1/2).

    Attributes
    ----------
    pixels
        (P,) float32: gray levels from 0 to 255, all levels one after the other. Behind the last
        one there are as many pixels as a row has and one, so that the neighbours of its last
        pixel may be read.
    levels
        (L, 3) int64: index of the first pixel, height and width of each level.
    """

    pixels: NDArray[np.float32]
    levels: NDArray[np.int64]

    def level(self, number: int) -> NDArray[np.float32]:
        """The pixels (H, W) of a level."""
        start, height, width = self.levels[number].tolist()
        return self.pixels[start : start + height * width].reshape(height, width)


def make_pyramid(image: ArrayLike | Pyramid) -> Pyramid:
    """The pyramid of a photograph: blurred by 0.6 px; then by 1 px and halved, again and again.

    Parameters
    ----------
    image
        Gray (H, W) or colour (H, W, 3 or 4; blue first): uint8, uint16, or floats from 0 to 1.
        A pyramid is returned as it is.

    Examples
    --------
    >>> pyramid = make_pyramid(np.full((100, 201), 90, np.uint8))
    >>> pyramid.levels.tolist()
    [[0, 100, 201], [20100, 50, 100], [25100, 25, 50]]
    >>> float(pyramid.level(2).min())
    90.0
    """
    if isinstance(image, Pyramid):
        return image
    gray = as_gray(image)
    check_gray_range(gray)
    if max(gray.shape) > LONGEST or gray.size > LARGEST:
        raise ValueError(
            f"image: expected at most {LONGEST} pixels a side and {LARGEST} in all, got "
            f"{gray.shape}"
        )
    shapes = [gray.shape]
    while len(shapes) < MAX_LEVELS and min(shapes[-1]) > MIN_HALVED:
        shapes.append((shapes[-1][0] // 2, shapes[-1][1] // 2))
    sizes = [height * width for height, width in shapes]
    starts = np.cumsum([0, *sizes])
    pixels = np.zeros(int(starts[-1]) + shapes[-1][1] + 1, np.float32)
    levels = np.column_stack([starts[:-1], shapes]).astype(np.int64)
    np.multiply(
        gray,
        np.float32(_GRAY_LEVELS[gray.dtype.name]),
        out=pixels[: sizes[0]].reshape(gray.shape),
        dtype=np.float32,
    )
    _compiled()(pixels, levels)
    return Pyramid(pixels, levels)


def taps_of(sigma: float, reach: int) -> NDArray[np.float64]:
    """A sampled Gaussian (2 reach + 1,) that adds up to one.

    >>> taps_of(1.0, 1).round(3)
    array([0.274, 0.452, 0.274])
    """
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return np.asarray(taps / taps.sum())


@locked_cache
def _compiled() -> Callable[..., None]:
    arguments = (array_type("float32", 1, written=True), array_type("int64", 2))
    return compile_loop("mkdesc.matching.growing.pyramid_numba:fill", arguments)

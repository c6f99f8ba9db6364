"""One photograph as another sees it: resampled by a homography or by a field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_choice
from mkdesc.features.flow import LocalMaps, interpolate

#: How a photograph can be warped.
WAYS = ("auto", "homography", "flow")

Floats = NDArray[np.float64]

#: A homography will do if it is off by at most this, in pixels, in this share of the cells, of
#: which there are so many along the longer side; noise of single matches does not count.
MAX_BENT, FLAT_SHARE, CELLS = 1.0, 0.9, 12

#: Rows that are computed at a time hold about as many pixels: bounds the memory.
BLOCK = 1 << 18
#: Blur of a camera, in pixels: what is made smaller is blurred until it has this again.
CAMERA_BLUR = 0.5


class Warped(NamedTuple):
    """A photograph as another sees it.

    Attributes
    ----------
    image
        (H, W) or (H, W, C), of the type of the photograph; 0 where it was not seen.
    seen
        (H, W) bool: where the photograph shows what the other one shows.
    by
        ``"homography"`` or ``"flow"``.
    """

    image: NDArray[Any]
    seen: NDArray[np.bool_]
    by: str


def warp_second(
    image: NDArray[Any],
    by: str,
    matrix: Floats | None,
    matches: LocalMaps,
    shape: tuple[int, int],
    other: tuple[int, int],
) -> Warped:
    """The second of two photographs as the first one sees it.

    Parameters
    ----------
    image
        The second photograph (H, W) or (H, W, C); of two or four channels the last is opacity.
    by
        One of ``WAYS``.
    matrix
        The homography from the first to the second; None: there is none.
    matches
        Of both, as far as they are believed.
    shape, other
        Height and width of both.
    """
    check_choice("by", by, WAYS)
    if image.shape[:2] != other or image.ndim > 3:
        raise ValueError(f"image: expected one of {other} pixels, got {image.shape}")
    if by == "homography" and matrix is None:
        raise ValueError("by: there is no homography; match with geometry='homography', or 'flow'")
    flat = matrix is not None and is_flat(matrix, matches.here, matches.there, shape)
    if by == "homography" or (by == "auto" and flat):
        assert matrix is not None
        by, places = "homography", seen_by_homography(matrix, shape[1])
    else:
        by, places = "flow", seen_by_field(interpolate(matches, shape, other).field)
    shrinks = float(np.median(np.abs(np.linalg.det(matches.maps)))) ** 0.5
    found, seen = resample(image, shape, places, shrinks)
    if found.ndim == 3 and found.shape[2] in (2, 4):
        seen &= found[..., -1] > 0
    return Warped(found, seen, by)


def resample(
    image: NDArray[Any],
    shape: tuple[int, int],
    places: Callable[[slice], Floats],
    shrinks: float = 1.0,
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """An image at other places, by cubic splines.

    Parameters
    ----------
    image
        (H, W) or (H, W, C): integers or floats.
    shape
        Height and width of the result.
    places
        Gives the places (R, W, 2) in the image of some rows; NaN: nowhere.
    shrinks
        Pixels of the image for one of the result, along a side: the image is blurred first, so
        that fine texture makes no patterns.

    Returns
    -------
    image, seen
        0 where nothing of the image is seen.

    Examples
    --------
    >>> turn = lambda rows: np.stack(np.mgrid[rows, 0:2], axis=-1).astype(float)
    >>> resample(np.array([[1, 2], [3, 4]], np.uint8), (2, 2), turn)[0]
    array([[1, 3],
           [2, 4]], dtype=uint8)
    """
    from scipy.ndimage import gaussian_filter, map_coordinates, spline_filter

    height, width = image.shape[:2]
    layers = image.reshape(height, width, -1)
    low, high = layers.min(axis=(0, 1)), layers.max(axis=(0, 1))
    splines = []
    for layer in np.moveaxis(layers, -1, 0):
        values = layer.astype(np.float32)
        if shrinks > 1:
            values = gaussian_filter(values, CAMERA_BLUR * np.sqrt(shrinks**2 - 1), mode="mirror")
        splines.append(spline_filter(values, 3, np.float32, "mirror"))
    out = np.zeros((*shape, layers.shape[2]), image.dtype)
    seen = np.zeros(shape, np.bool_)
    step = max(1, BLOCK // shape[1])
    for first in range(0, shape[0], step):
        rows = slice(first, min(first + step, shape[0]))
        x, y = np.moveaxis(places(rows), -1, 0)
        with np.errstate(invalid="ignore"):
            within = (x >= -0.5) & (x <= width - 0.5) & (y >= -0.5) & (y <= height - 0.5)
        seen[rows] = within
        at = np.stack([y[within], x[within]])
        for k, spline in enumerate(splines):
            found = map_coordinates(spline, at, order=3, mode="mirror", prefilter=False)
            found = found.clip(low[k], high[k])
            out[rows][within, k] = found if image.dtype.kind == "f" else np.rint(found)
    return out.reshape(*shape, *image.shape[2:]), seen


def is_flat(matrix: Floats, here: Floats, there: Floats, shape: tuple[int, int]) -> bool:
    """Whether a homography (3, 3) explains matches (M, 2) nearly everywhere, to a pixel.

    Parameters
    ----------
    matrix, here, there
        The homography and the matches, whatever they are off.
    shape
        Height and width of the first photograph.

    Examples
    --------
    >>> here = np.random.default_rng(0).uniform(0, 300, (900, 2))
    >>> bent = here + np.sin(here[:, ::-1] / 40) * 3
    >>> [is_flat(np.eye(3), here, there, (300, 300)) for there in (here, bent)]
    [True, False]
    """
    mapped = here @ matrix[:, :2].T + matrix[:, 2]
    off = mapped[:, :2] / mapped[:, 2:] - there
    column, row = (here * (CELLS / max(shape))).astype(int).clip(0, CELLS - 1).T
    cell = row * CELLS + column
    count = np.bincount(cell)
    means = [np.bincount(cell, one)[count > 0] / count[count > 0] for one in off.T]
    share = np.average(np.hypot(*means) <= MAX_BENT, weights=count[count > 0])
    return bool(share >= FLAT_SHARE)


def seen_by_homography(matrix: Floats, width: int) -> Callable[[slice], Floats]:
    """For :func:`resample`: places by a homography (3, 3); NaN beyond its horizon."""

    def places(rows: slice) -> Floats:
        y, x = np.mgrid[rows, 0:width]
        u, v, depth = np.moveaxis(np.stack([x, y, np.ones_like(x)], axis=-1) @ matrix.T, -1, 0)
        depth = np.where(depth > 0, depth, np.nan)
        return np.stack([u / depth, v / depth], axis=-1)

    return places


def seen_by_field(field: NDArray[np.float32]) -> Callable[[slice], Floats]:
    """For :func:`resample`: places by a field (H, W, 2) of displacements."""

    def places(rows: slice) -> Floats:
        y, x = np.mgrid[rows, 0 : field.shape[1]]
        return np.stack([x, y], axis=-1) + field[rows]

    return places

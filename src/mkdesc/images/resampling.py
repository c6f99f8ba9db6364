"""Photographs made smaller, and seen through a homography."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def reduced(image: NDArray[np.uint8], max_size: int | None) -> NDArray[np.uint8]:
    """An image (H, W) or (H, W, 3) that is no longer than this on either side; None: as it is.

    >>> reduced(np.zeros((40, 80), np.uint8), 20).shape
    (10, 20)
    """
    longest = max(image.shape[:2])
    if max_size is None or longest <= max_size:
        return image
    height, width = (max(1, round(n * max_size / longest)) for n in image.shape[:2])
    return shrunk(image, (height, width))


def shrunk(image: NDArray[np.uint8], shape: tuple[int, int]) -> NDArray[np.uint8]:
    """An image (H, W) or (H, W, 3), reduced to a shape (height, width) by averaging areas.

    A pixel that lies in two areas counts in each by its share, as in OpenCV's ``INTER_AREA``.

    >>> shrunk(np.array([[10, 20, 60]], np.uint8), (1, 2)).tolist()
    [[13, 47]]
    """
    out = np.asarray(image, np.float32)
    for length in shape:  # rows, then columns
        flat = _averages(len(out), length) @ out.reshape(len(out), -1)
        out = np.swapaxes(flat.reshape(length, *out.shape[1:]), 0, 1)
    return np.ascontiguousarray(out + 0.5).astype(np.uint8)


def resized(image: NDArray[np.uint8], scale: float) -> NDArray[np.uint8]:
    """An image (H, W) or (H, W, 3), as many times as large.

    >>> resized(np.zeros((10, 20, 3), np.uint8), 2.5).shape
    (25, 50, 3)
    """
    height, width = (max(1, round(scale * n)) for n in image.shape[:2])
    if scale <= 1:
        return shrunk(image, (height, width))
    from PIL import Image

    large = Image.fromarray(np.ascontiguousarray(image)).resize((width, height))  # bicubic
    return np.array(large)


def _averages(n: int, length: int) -> Any:
    """The sparse matrix (length, n) that averages n numbers to fewer."""
    from scipy.sparse import csr_array

    edges = np.linspace(0, n, length + 1)
    inner = np.setdiff1d(np.arange(1, n), edges)
    cuts = np.union1d(inner, edges)  # of pieces that lie in one pixel and in one area
    middles = (cuts[1:] + cuts[:-1]) / 2
    areas = np.searchsorted(edges, middles) - 1
    shares = np.diff(cuts) * (length / n)
    return csr_array((shares.astype(np.float32), (areas, middles.astype(int))), (length, n))


def warp(
    image: NDArray[np.uint8],
    homography: ArrayLike,
    shape: tuple[int, int],
    order: Literal[1, 3] = 1,
) -> NDArray[np.uint8]:
    """An image (H, W) as a homography shows it, black where there is none of it.

    Parameters
    ----------
    image
        (H, W) uint8.
    homography
        (3, 3): from pixels of the image to pixels of the result.
    shape
        (height, width) of the result.
    order
        Of the splines that interpolate: 1 (linear) or 3 (cubic).

    Examples
    --------
    >>> warp(np.array([[10, 20, 60]], np.uint8), [[1, 0, -1], [0, 1, 0], [0, 0, 1]], (1, 3))
    array([[20, 60,  0]], dtype=uint8)
    """
    from scipy.ndimage import map_coordinates

    back = np.linalg.inv(np.asarray(homography, np.float64))
    y, x = np.ogrid[: shape[0], : shape[1]]
    u, v, depth = (row[0] * x + row[1] * y + row[2] for row in back)
    with np.errstate(divide="ignore", invalid="ignore"):
        u, v = u / depth, v / depth
    near = (u > -1) & (u < image.shape[1]) & (v > -1) & (v < image.shape[0])
    seen = map_coordinates(
        image.astype(np.float32), [v[near], u[near]], order=order, mode="grid-constant"
    )
    out = np.zeros(shape, np.uint8)
    out[near] = np.rint(seen).clip(0, 255)
    return out


def blur(image: NDArray[np.uint8], sigma: float) -> NDArray[np.uint8]:
    """An image (H, W), blurred by a Gaussian and mirrored at its borders.

    >>> blur(np.array([[0, 0, 90, 0, 0]], np.uint8), 0.8).tolist()
    [[4, 21, 45, 21, 4]]
    """
    from scipy.ndimage import gaussian_filter

    values = gaussian_filter(image.astype(np.float32), sigma, mode="mirror")
    return np.rint(values).astype(np.uint8)


def homography_between(here: ArrayLike, there: ArrayLike) -> Floats:
    """The homography (3, 3) that takes four corners (4, 2) to four others.

    >>> square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    >>> homography_between(square, 2 * square + [3, 4]).round(9).tolist()
    [[2.0, 0.0, 3.0], [0.0, 2.0, 4.0], [0.0, 0.0, 1.0]]
    """
    (x, y), to = np.transpose(np.asarray(here, np.float64)), np.asarray(there, np.float64)
    one, none = np.ones(4), np.zeros((4, 3))
    own = np.stack([x, y, one], axis=1)
    rows = [
        np.hstack([*((own, none) if axis == 0 else (none, own)), -own[:, :2] * to[:, axis, None]])
        for axis in (0, 1)
    ]
    return np.append(np.linalg.solve(np.vstack(rows), to.T.ravel()), 1).reshape(3, 3)

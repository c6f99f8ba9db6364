"""Keypoints as frames: where in an image the square of a patch lies.

Three ways to say it, each an array with one row per keypoint:

* *points* (N, 4): x, y, sigma, angle. Pixel centres are at integer coordinates; the angle is in
  degrees, clockwise as seen in the image (y points down), as in OpenCV.
* *affine frames* (N, 2, 3): the matrix that maps patch coordinates to image pixels. The patch is
  the square [-1, 1] x [-1, 1], up to the *outline* of its outer pixels: the centres of a row of
  W pixels are at (2 i + 1) / W - 1. (kornia's LAFs mean the same square, with the pixel
  coordinates of the image as here.)
* *projective frames* (N, 3, 3): the same with a homography, for patches seen in perspective.

A point's frame is a square of side ``side`` times sigma, its x axis along the angle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_number, checked_sides
from mkdesc.images.detectors.keypoints import Keypoints, as_points

if TYPE_CHECKING:
    import cv2


#: Side of a patch in units of sigma, unless told otherwise. It is the square that SIFT looks at.
SIDE = 12.0

Floats = NDArray[np.float64]


def frames_from_points(points: ArrayLike, side: float = SIDE) -> Floats:
    """Affine frames (N, 2, 3) of points (N, 4): squares of side ``side`` times sigma.

    Examples
    --------
    >>> frames_from_points([[10, 20, 1, 90]], side=12).round(3) + 0.0
    array([[[ 0., -6., 10.],
            [ 6.,  0., 20.]]])
    """
    check_number("side", side, above=0)
    x, y, sigma, angle = as_points(points).T
    c = np.cos(np.deg2rad(angle)) * sigma * side / 2
    s = np.sin(np.deg2rad(angle)) * sigma * side / 2
    return np.stack([np.stack([c, -s, x], axis=-1), np.stack([s, c, y], axis=-1)], axis=1)


def as_frames(frames: ArrayLike) -> Floats:
    """Check frames (N, 2, 3) or (N, 3, 3) and return them as projective ones (N, 3, 3).

    The corner at the lower right becomes 1. Refused: frames that are not finite, have no area,
    or whose square reaches the horizon.

    Examples
    --------
    >>> as_frames([[[5, 0, 10], [0, 5, 20]]]).tolist()
    [[[5.0, 0.0, 10.0], [0.0, 5.0, 20.0], [0.0, 0.0, 1.0]]]
    """
    array = np.asarray(frames, np.float64)
    if array.size == 0:
        return np.empty((0, 3, 3))
    if array.ndim != 3 or array.shape[1:] not in ((2, 3), (3, 3)):
        raise ValueError(f"frames: expected (N, 2, 3) or (N, 3, 3), got {array.shape}")
    whole = np.zeros((len(array), 3, 3))
    whole[:, 2, 2] = 1
    whole[:, : array.shape[1]] = array
    _refuse(~np.isfinite(whole).all(axis=(1, 2)), "is not finite")
    corner = whole[:, 2:, 2:]
    # The denominator at the corners of the square; of one sign in all of it, if it is there.
    _refuse(corner[:, 0, 0] <= np.abs(whole[:, 2, :2]).sum(axis=1), "reaches the horizon")
    whole /= corner
    local = whole[:, :2, :2] - whole[:, :2, 2:] * whole[:, 2:, :2]
    _refuse(np.linalg.det(local) == 0, "has no area")
    return whole


def _refuse(bad: NDArray[np.bool_] | np.bool_, what: str) -> None:
    if bad.any():
        raise ValueError(f"frames[{int(bad.argmax())}] {what}")


def affine_frames(frames: ArrayLike) -> Floats:
    """The affine frames (N, 2, 3) that agree with given frames to first order at the centre.

    Examples
    --------
    >>> affine_frames([[[5, 0, 10], [0, 5, 20], [0.1, 0, 1]]])[0].tolist()
    [[4.0, 0.0, 10.0], [-2.0, 5.0, 20.0]]
    """
    whole = as_frames(frames)
    affine = whole[:, :2].copy()
    affine[:, :, :2] -= whole[:, :2, 2:] * whole[:, 2:, :2]
    return affine


def to_frames(
    keypoints: Keypoints | ArrayLike | Sequence[cv2.KeyPoint], side: float = SIDE
) -> Floats:
    """Projective frames (N, 3, 3) of whatever tells where patches are.

    Parameters
    ----------
    keypoints
        :class:`~mkdesc.images.Keypoints`, ``cv2.KeyPoint`` objects, points
        (N, 4), or frames (N, 2, 3) or (N, 3, 3), which are only checked.
    side
        Side of the square in units of sigma, for keypoints and points.

    Examples
    --------
    >>> to_frames([[10, 20, 1, 0]]).shape
    (1, 3, 3)
    """
    return square_frames(keypoints, (side,))[:, 0]


def square_frames(
    keypoints: Keypoints | ArrayLike | Sequence[cv2.KeyPoint], side: float | Sequence[float] = SIDE
) -> Floats:
    """Projective frames (N, k, 3, 3) of k squares of every keypoint.

    Parameters
    ----------
    keypoints
        As for :func:`to_frames`. A frame says where the first square is; the others have its
        centre and shape.
    side
        Side of each square in units of sigma. Of frames, only the ratios count.

    Examples
    --------
    >>> square_frames([[[5, 0, 10], [0, 5, 20]]], side=(14, 28))[0, 1].tolist()
    [[10.0, 0.0, 10.0], [0.0, 10.0, 20.0], [0.0, 0.0, 1.0]]
    """
    if isinstance(keypoints, Sequence) and any(hasattr(k, "pt") for k in keypoints):
        keypoints = Keypoints.from_opencv(cast("Sequence[cv2.KeyPoint]", keypoints))
    if isinstance(keypoints, Keypoints):
        keypoints = keypoints.points
    array = np.asarray(keypoints, np.float64)
    sides = checked_sides(side)
    if array.ndim == 2:
        squares = [as_frames(frames_from_points(array, one)) for one in sides]
    else:
        first = as_frames(array)
        ratios = [one / sides[0] for one in sides[1:]]
        squares = [first, *(as_frames(first * [ratio, ratio, 1]) for ratio in ratios)]
    return np.stack(squares, axis=1)


def centres_of(frames: ArrayLike) -> Floats:
    """Where in the image (N, 2) the centres of points (N, 4) or frames (N, 2 or 3, 3) are.

    Examples
    --------
    >>> centres_of([[10, 20, 1, 0]]).tolist(), centres_of([[[5, 0, 10], [0, 5, 20]]]).tolist()
    ([[10.0, 20.0]], [[10.0, 20.0]])
    """
    array = np.asarray(frames, np.float64)
    return as_points(array)[:, :2] if array.ndim == 2 else as_frames(array)[:, :2, 2]


def outside(centres: Floats, shape: Sequence[int]) -> NDArray[np.bool_]:
    """Which centres (N, 2) lie more than a pixel beyond an image of shape (height, width, ...).

    Examples
    --------
    >>> outside(np.array([[39.9, 3], [3, 39.9]]), (30, 40)).tolist()
    [False, True]
    """
    size = np.array([shape[1], shape[0]])
    return np.asarray(((centres < -1) | (centres > size)).any(axis=1))


def inside(frames: ArrayLike, shape: Sequence[int]) -> NDArray[np.bool_]:
    """Which patches (N,) lie wholly in an image of shape (height, width, ...).

    Those that reach the horizon do not, and are no error here.

    Examples
    --------
    >>> inside([[[5, 0, 10], [0, 5, 20]], [[5, 0, 3], [0, 5, 20]]], (30, 40)).tolist()
    [True, False]
    """
    array = np.asarray(frames, np.float64)
    if array.shape[1:] != (3, 3):
        array = as_frames(array)
    square = np.array([[-1, 1, 1, -1], [-1, -1, 1, 1], [1, 1, 1, 1]], np.float64)
    mapped = (array @ square).swapaxes(1, 2)
    scale = mapped[..., 2] * np.sign(array[:, None, 2, 2])
    with np.errstate(divide="ignore", invalid="ignore"):
        corners = mapped[..., :2] / mapped[..., 2:]
    # An image reaches half a pixel beyond the centres of its outer pixels.
    low, high = np.array([-0.5, -0.5]), np.array([shape[1] - 0.5, shape[0] - 0.5])
    within = (corners >= low) & (corners <= high) & (scale[..., None] > 0)
    return np.asarray(within.all(axis=(1, 2)))

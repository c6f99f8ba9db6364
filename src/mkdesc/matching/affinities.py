"""What a match of two frames says beyond two positions: how the surroundings map to each other.

One match of affine frames is an affine map, hence a guess at the whole geometry; four matched
positions are needed for a homography. Where one match in fifty is right, guesses from single
matches find the geometry and samples of four do not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.views import slopes

#: How much the map of a frame may differ from the geometry: the Frobenius norm of D - 1, where D
#: brings one to the other. Of right matches of SIFT's blobs, 99.5% (graf 1-2) and 96% (1-3)
#: are within it.
SHAPE = 0.7

#: How far the ends of a frame's axes may be off their epipolar lines, as a share of the axis.
FOLLOW = 0.25

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def affinities(a: Floats, b: Floats) -> Floats:
    """The affine maps (M, 2, 3) that bring frames (M, 2, 3) of one image to those of another.

    Examples
    --------
    >>> square = np.array([[[2.0, 0, 10], [0, 2, 20]]])
    >>> affinities(square, [[[1.0, 0, 0], [0, 2, 5]]])[0].tolist()
    [[0.5, 0.0, -5.0], [0.0, 1.0, -15.0]]
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    linear = b[:, :, :2] @ np.linalg.inv(a[:, :, :2])
    shift = b[:, :, 2:] - linear @ a[:, :, 2:]
    return np.concatenate([linear, shift], axis=2)


def frames_agree(matrix: Floats, a: Floats, b: Floats, shape: float = SHAPE) -> Flags:
    """Whether a homography maps the shapes of frames (M, 2, 3), too, to those of their partners.

    Parameters
    ----------
    matrix
        (3, 3), from the first image to the second.
    a, b
        Frames of either.
    shape
        How much they may differ; see :data:`SHAPE`.
    """
    slope = slopes(matrix, a[:, :, 2])
    with np.errstate(all="ignore"):
        differ = np.linalg.inv(b[:, :, :2]) @ slope @ a[:, :, :2] - np.eye(2)
        return np.asarray(np.linalg.norm(differ, axis=(1, 2)) < shape)


def frames_follow(matrix: Floats, a: Floats, b: Floats, share: float = FOLLOW) -> Flags:
    """Whether the ends of frames' axes, too, are near the epipolar lines of their partners.

    Parameters
    ----------
    matrix
        (3, 3): fundamental, of pixels.
    a, b
        Frames (M, 2, 3) of either image.
    share
        How far they may be off, as a share of the axis, in the image in which it is less.
    """
    good = np.ones(len(a), np.bool_)
    for axis in (0, 1):
        one, two = (np.column_stack([f[:, :, 2] + f[:, :, axis], np.ones(len(f))]) for f in (a, b))
        there, here = one @ matrix.T, two @ matrix
        value = np.abs((two * there).sum(axis=1))
        reach = [
            np.linalg.norm(line[:, :2], axis=1) * np.linalg.norm(f[:, :, axis], axis=1)
            for line, f in ((there, b), (here, a))
        ]
        good &= value < share * np.maximum(*reach)
    return good

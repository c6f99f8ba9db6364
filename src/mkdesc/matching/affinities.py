"""What a match of two frames says beyond two positions: how the surroundings map to each other.

One match of affine frames is an affine map, hence a guess at the whole geometry; four matched
positions are needed for a homography. Where one match in fifty is right, guesses from single
matches find the geometry and samples of four do not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mkdesc.geometry.least_squares import fit_affine, fit_homography
from mkdesc.geometry.residuals import transfer_errors
from mkdesc.images.views import slopes

#: Guesses that are followed up, out of all single matches.
FOLLOWED = 12

#: How much the map of a frame may differ from the geometry: the Frobenius norm of D - 1, where D
#: brings one to the other. Of right matches of SIFT's blobs, 99.5% (graf 1-2) and 96% (1-3)
#: are within it.
SHAPE = 0.7

#: Pixels at which a match counts half where matches are first fitted.
FIRST = 20.0

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


def homography_from_frames(a: Floats, b: Floats, threshold: float) -> Floats | None:
    """The homography (3, 3) that most matches of frames agree with, guessed from single ones.

    Parameters
    ----------
    a, b
        Matched frames (M, 2, 3), the most trustworthy first.
    threshold
        Pixels that a match may be off in the end.

    Notes
    -----
    Every match's affine map is a guess. It is scored by the matches whose position it predicts
    to a share of their distance and whose own map is like it; the best guesses are fitted to
    what agrees with them, affine first, then projective, with a tolerance that shrinks.
    """
    if len(a) < 4:
        return None
    here, there = np.ascontiguousarray(a[:, :, 2]), np.ascontiguousarray(b[:, :, 2])
    maps = affinities(a, b)
    best, most = None, 3
    for guess in _guesses(maps, here, there):
        matrix = _grown(guess, a, b, threshold)
        if matrix is None:
            continue
        agree = transfer_errors(matrix, here, there) < threshold
        count = int((agree & frames_agree(matrix, a, b)).sum())
        if count > most:
            best, most = matrix, count
    return best


def _guesses(maps: Floats, here: Floats, there: Floats, at_a_time: int = 256) -> list[Flags]:
    """Sets of matches (M,) that are like one of them, for the matches with the most such."""
    linear, shift = maps[:, :, :2], maps[:, :, 2]
    inverse = np.linalg.inv(linear)
    support = np.zeros(len(maps), np.int64)

    def like(which: slice | NDArray[np.int64]) -> Flags:
        predicted = np.einsum("gij,mj->gmi", linear[which], here) + shift[which][:, None]
        off = np.linalg.norm(predicted - there, axis=2)
        distance = np.linalg.norm(there - there[which][:, None], axis=2)
        differ = np.einsum("gij,mjk->gmik", inverse[which], linear) - np.eye(2)
        near = off < 4 + 0.25 * distance
        return np.asarray(near & (np.einsum("gmik,gmik->gm", differ, differ) < 1))

    for start in range(0, len(maps), at_a_time):
        now = slice(start, start + at_a_time)
        support[now] = like(now).sum(axis=1)
    sets: list[Flags] = []
    taken = np.zeros(len(maps), np.bool_)
    for index in np.argsort(-support, kind="stable"):
        if support[index] < 4 or len(sets) == FOLLOWED:
            break
        if taken[index]:  # it would lead to the same
            continue
        found = like(np.array([index]))[0]
        taken |= found
        sets.append(found)
    return sets


def _grown(agree: Flags, a: Floats, b: Floats, threshold: float) -> Floats | None:
    """A homography fitted to matches, then to those near it, then to those nearer."""
    here, there = a[:, :, 2], b[:, :, 2]
    matrix = None
    for step, tolerance in enumerate((16.0, 8.0, 4.0, 2.0, 1.0, 1.0)):
        if agree.sum() < 4:
            return None
        if step == 0:
            matrix = fit_affine(here[agree], there[agree], FIRST)
        else:
            matrix = fit_homography(here[agree], there[agree])
        if not np.isfinite(matrix).all():
            return None
        near = transfer_errors(matrix, here, there) < tolerance * threshold
        agree = near & frames_agree(matrix, a, b, 1.0)
    return matrix

"""Keypoints of a database moved so that the gray values of all matches of a track agree.

A match says where the second keypoint fits, given the first: x = t + A d, if that has moved by d.
A keypoint of a track has several matches, which contradict each other by as much as detectors are
off. The moves with the least squares of what is left of all contradictions, robustly, are those
that all photographs agree on. Which of the places that look alike a track is of is free: a weak
pull to where the detectors found it decides.

Moving each keypoint to where it fits a single one of its track (Lindenberger et al., Pixel-Perfect
Structure-from-Motion, ICCV 2021, do so with features of a network) needs more fits, and leaves
tracks twice as far off, since a track may have no keypoint that all others match. Here, no
photograph is read again (Dusmanu et al., Multi-View Optimization of Local Feature Geometry, ECCV
2020).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress
from mkdesc.datasets.colmap import to_colmap_pixels
from mkdesc.features.image_features import load_features
from mkdesc.sfm.grown_pairs import read_pairs

#: How strongly, beside one match, a keypoint is held where it was found.
PULL = 0.1
#: Pixels above which a contradiction counts linearly: such a match may be wrong.
ROBUST = 0.3
#: Rounds of least squares, each with the weights of the one before.
ROUNDS = 5
#: Keypoints that would move by more pixels stay: what they were matched with is something else.
MOST = 4.0

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Matches(NamedTuple):
    """All matches of a database.

    Attributes
    ----------
    rows
        (M, 2): numbers of keypoints, counted through all images.
    shifts
        (M, 6): see :class:`~mkdesc.sfm.grown_pairs.PairMatches`.
    """

    rows: Integers
    shifts: NDArray[np.float32]


def refine_tracks(base: Path, progress: Progress) -> None:
    """Move the keypoints of a database, before COLMAP verifies its matches.

    Parameters
    ----------
    base
        With keypoints as they were found, and matches of
        :func:`mkdesc.sfm.matching.match_pairs`.
    progress
        Told when it begins and ends.
    """
    progress("refining", 0, 1)
    with closing(sqlite3.connect(base)) as file, file:
        images = file.execute("SELECT image_id, rows FROM keypoints ORDER BY image_id").fetchall()
        ends = np.cumsum([count for _, count in images])
        start = {image: end - count for (image, count), end in zip(images, ends, strict=True)}
        rows, shifts = [np.empty((0, 2), np.int64)], [np.empty((0, 6), np.float32)]
        for (a, b), found in read_pairs(file):
            rows.append(found.pairs + np.array([start[a], start[b]]))
            shifts.append(found.shifts)
        matches = Matches(np.concatenate(rows), np.concatenate(shifts))
        moves = best_moves(int(sum(count for _, count in images)), matches)
        for image, count in images:
            _move(file, image, moves[start[image] : start[image] + count])
    progress("refining", 1, 1)


def best_moves(count: int, matches: Matches) -> Floats:
    """How to move keypoints (count, 2), in pixels, so that their matches agree.

    Examples
    --------
    Three keypoints of a track: the second is off by a pixel.

    >>> exact = [0, 0, 1, 0, 0, 1]
    >>> rows = np.array([[0, 1], [0, 2], [1, 2]])
    >>> shifts = np.array([[1.0, 0, 1, 0, 0, 1], exact, [-1.0, 0, 1, 0, 0, 1]])
    >>> moves = best_moves(3, Matches(rows, shifts.astype(np.float32)))
    >>> (moves[1] - moves[0]).round(2).tolist(), (moves[2] - moves[0]).round(2).tolist()
    ([1.0, 0.0], [0.0, 0.0])
    """
    from scipy.sparse import csr_matrix, diags
    from scipy.sparse.linalg import cg

    moves = np.zeros((count, 2))
    m = len(matches.rows)
    if not m:
        return moves
    i, j = matches.rows.T
    wanted, maps = (
        matches.shifts[:, :2].astype(np.float64),
        matches.shifts[:, 2:].reshape(-1, 2, 2).astype(np.float64),
    )
    # What is left of a match, in pixels of the coarser of both images.
    unit = 1 / np.maximum(np.sqrt(np.abs(np.linalg.det(maps))), 1)
    number = np.arange(2 * m).reshape(m, 2)
    places = [(number, 2 * j[:, None] + [0, 1], np.ones((m, 2)))]
    places += [(number, np.column_stack([2 * i + side] * 2), -maps[:, :, side]) for side in (0, 1)]
    at, column, value = (np.concatenate([part[k].ravel() for part in places]) for k in range(3))
    system = csr_matrix((value, (at, column)), (2 * m, 2 * count))
    for turn in range(ROUNDS):
        weight = unit**2
        if turn:
            left = (system @ moves.ravel()).reshape(m, 2) - wanted
            size = np.hypot(*left.T) * unit
            weight = weight * np.minimum(1, ROBUST / np.maximum(size, 1e-9))
        weighted = diags(np.repeat(weight, 2)) @ system
        normal = (system.T @ weighted + diags(np.full(2 * count, PULL**2))).tocsr()
        scale = diags(1 / normal.diagonal())
        found, _ = cg(normal, weighted.T @ wanted.ravel(), moves.ravel(), rtol=1e-4, M=scale)
        moves = found.reshape(-1, 2)
    moves[np.hypot(*moves.T) > MOST] = 0
    return moves


def error_before(model: Any, features: Path) -> float:
    """The mean reprojection error of a model, had the keypoints stayed where they were found.

    Parameters
    ----------
    model
        ``pycolmap.Reconstruction``. It is not adjusted to these keypoints, so this is a little
        more than what a model of them would have.
    features
        Folder of what :func:`mkdesc.features.extract_features` wrote.
    """
    numbers, errors = [np.empty(0, np.int64)], [np.empty(0)]
    for image in model.images.values():
        if not image.has_pose:
            continue
        found = to_colmap_pixels(load_features(features, image.name).keypoints[:, :2])
        seen = [k for k, point in enumerate(image.points2D) if point.has_point3D()]
        own = [image.points2D[k].point3D_id for k in seen]
        points = np.array([model.points3D[number].xyz for number in own]).reshape(-1, 3)
        rays = points @ image.cam_from_world().rotation.matrix().T
        rays += image.cam_from_world().translation
        shown = model.cameras[image.camera_id].img_from_cam(rays)
        numbers.append(np.array(own, np.int64))
        errors.append(np.hypot(*(shown - found[seen]).T))
    _, point = np.unique(np.concatenate(numbers), return_inverse=True)
    total = np.bincount(point, np.concatenate(errors))
    return float((total / np.bincount(point)).mean())


def _move(file: sqlite3.Connection, image: int, moves: Floats) -> None:
    """Add to the positions of an image's keypoints."""
    query = "SELECT rows, cols, data FROM keypoints WHERE image_id = ?"
    rows, columns, data = file.execute(query, (image,)).fetchone()
    if not rows:
        return
    points = np.frombuffer(data, np.float32).reshape(rows, columns).copy()
    points[:, :2] += moves
    update = "UPDATE keypoints SET data = ? WHERE image_id = ?"
    file.execute(update, (points.tobytes(), image))

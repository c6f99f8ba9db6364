"""What matches between two photographs are worth, given the true relative pose."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.reading import opencv

#: Pixels from the true epipolar line at which a match counts as right.
RIGHT = 2.0

Floats = NDArray[np.float64]


class PoseScores(NamedTuple):
    """How one method did on one pair.

    Attributes
    ----------
    matches, right
        Mutual nearest neighbours, and those within 2 px of the true epipolar lines.
    inliers
        Matches that agree with the estimated essential matrix.
    error
        Degrees: the larger of the angles by which rotation and direction of translation are off;
        infinite if there is no estimate.
    """

    matches: int
    right: int
    inliers: int
    error: float


def score_pose(
    rays: tuple[Floats, Floats],
    focals: tuple[float, float],
    rotation: Floats,
    translation: Floats,
    threshold: float,
) -> PoseScores:
    """Score the matches of a pair.

    Parameters
    ----------
    rays
        (K, 2) and (K, 2): rays of the matches, at depth 1.
    focals
        Pixels for each unit of the rays, in the images that keypoints were found in.
    rotation, translation
        (3, 3), (3,): the truth.
    threshold
        Of MAGSAC++, in pixels of these images.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = rng.uniform(-1, 1, (100, 3)) + [0, 0, 4]
    >>> moved = points + [1.0, 0.2, 0]
    >>> rays = points[:, :2] / points[:, 2:], moved[:, :2] / moved[:, 2:]
    >>> found = score_pose(rays, (500.0, 500.0), np.eye(3), np.array([1, 0.2, 0]), 1.0)
    >>> found.right, found.inliers, found.error < 0.01
    (100, 100, True)
    """
    distances = epipolar_distances(rays, rotation, translation)
    focal = float(np.sqrt(focals[0] * focals[1]))
    right = int((distances * focal <= RIGHT).sum())
    inliers, error = _estimated(rays, focal, rotation, translation, threshold)
    return PoseScores(len(rays[0]), right, inliers, error)


def epipolar_distances(
    rays: tuple[Floats, Floats], rotation: Floats, translation: Floats
) -> Floats:
    """Distances (K,) of rays from the true epipolar lines, the larger of those in both images."""
    x, y, z = translation
    essential = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ rotation
    one, two = (np.column_stack([ray, np.ones(len(ray))]) for ray in rays)
    along, back = one @ essential.T, two @ essential
    value = np.abs((two * along).sum(axis=1))
    shorter = np.minimum(np.linalg.norm(along[:, :2], axis=1), np.linalg.norm(back[:, :2], axis=1))
    return np.asarray(value / np.maximum(shorter, 1e-12), np.float64)


def _estimated(
    rays: tuple[Floats, Floats],
    focal: float,
    rotation: Floats,
    translation: Floats,
    threshold: float,
) -> tuple[int, float]:
    """Matches that agree with an essential matrix, and by how many degrees its pose is off."""
    nothing = 0, float("inf")
    if len(rays[0]) < 5:
        return nothing
    cv2 = opencv()
    cv2.setRNGSeed(0)
    try:
        matrices, mask = cv2.findEssentialMat(
            *rays,
            np.eye(3),
            method=cv2.USAC_MAGSAC,
            prob=0.9999,
            threshold=threshold / focal,
            maxIters=10_000,
        )
    except cv2.error:  # what it throws when all points are one, say
        return nothing
    if matrices is None or not np.isfinite(matrices).all():
        return nothing
    agree = mask.ravel().astype(np.bool_)
    best, error = -1, float("inf")
    for matrix in matrices.reshape(-1, 3, 3):
        front, turned, moved, _ = cv2.recoverPose(matrix, *rays, np.eye(3), 1e9, mask=mask.copy())[
            :4
        ]
        if front > best:
            best = front
            error = max(_turn(turned @ rotation.T), _angle(moved.ravel(), translation))
    return int(agree.sum()), error


def _turn(rotation: Floats) -> float:
    """Degrees of a rotation (3, 3)."""
    return float(np.degrees(np.arccos(np.clip((np.trace(rotation) - 1) / 2, -1, 1))))


def _angle(a: Floats, b: Floats) -> float:
    """Degrees between the lines along two vectors; their sign does not count."""
    cosine = abs(a @ b) / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-12)
    return float(np.degrees(np.arccos(np.clip(cosine, 0, 1))))

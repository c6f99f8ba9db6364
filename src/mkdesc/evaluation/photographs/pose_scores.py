"""What matches between two photographs are worth, given the true relative pose."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.geometry.estimate import DEFAULT_OPTIONS, estimate_geometry
from mkdesc.geometry.estimators.base import essential_matrix
from mkdesc.geometry.options import EstimatorOptions

#: Pixels from the true epipolar line at which a match counts as right.
RIGHT = 2.0

Floats = NDArray[np.float64]


class PoseScores(NamedTuple):
    """How one method did on one pair.

    Attributes
    ----------
    matches, right
        How many matches there are, and those within 2 px of the true epipolar lines.
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
    estimator: EstimatorOptions = DEFAULT_OPTIONS,
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
        Of the estimator, in pixels of these images.
    estimator
        How it searches.

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
    found = estimate_geometry(
        rays[0] * focals[0],
        rays[1] * focals[1],
        "essential",
        threshold,
        cameras=[np.diag([one, one, 1.0]) for one in focals],
        options=estimator,
    )
    inliers, error = int(found.inliers.sum()), float("inf")
    if found.rotation is not None and found.translation is not None:
        error = max(_turn(found.rotation @ rotation.T), _angle(found.translation, translation))
    return PoseScores(len(rays[0]), right, inliers, error)


def epipolar_distances(
    rays: tuple[Floats, Floats], rotation: Floats, translation: Floats
) -> Floats:
    """Distances (K,) of rays from the true epipolar lines, the larger of those in both images."""
    essential = essential_matrix(rotation, translation)
    one, two = (np.column_stack([ray, np.ones(len(ray))]) for ray in rays)
    along, back = one @ essential.T, two @ essential
    value = np.abs((two * along).sum(axis=1))
    shorter = np.minimum(np.linalg.norm(along[:, :2], axis=1), np.linalg.norm(back[:, :2], axis=1))
    return np.asarray(value / np.maximum(shorter, 1e-12), np.float64)


def _turn(rotation: Floats) -> float:
    """Degrees of a rotation (3, 3)."""
    return float(np.degrees(np.arccos(np.clip((np.trace(rotation) - 1) / 2, -1, 1))))


def _angle(a: Floats, b: Floats) -> float:
    """Degrees between the lines along two vectors; their sign does not count."""
    cosine = abs(a @ b) / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-12)
    return float(np.degrees(np.arccos(np.clip(cosine, 0, 1))))

"""What estimators take and give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.geometry.cameras import Camera

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class MatchedPoints(NamedTuple):
    """Matched positions of two photographs, and what is known of the cameras.

    Attributes
    ----------
    here, there
        (M, 2) each, without distortion, row by row.
    cameras
        Of both; None: unknown.
    centres
        Where the optical axes meet the photographs, (2,) each; None: unknown.
    """

    here: Floats
    there: Floats
    cameras: tuple[Camera, Camera] | None = None
    centres: tuple[Floats, Floats] | None = None


@dataclass(frozen=True, eq=False)
class Estimate:
    """The geometry that matches agree on; ``matrix, inliers = ...`` takes it apart.

    Attributes
    ----------
    matrix
        (3, 3): the homography from the first image to the second, the fundamental matrix
        (x2' F x1 = 0, pixels), or the essential matrix (the same for rays); None if there is
        none. Pixels are those without distortion, where cameras are given.
    inliers
        (M,) bool: which matches agree with it.
    geometry
        Its kind; None if there is none.
    rotation, translation
        (3, 3) and (3,), of an essential matrix: the second camera sees X at
        ``rotation @ X + translation``, of unit length, where the first one sees X.
    focal
        The focal length in pixels, where it was estimated.
    pose_covariance
        (6, 6), in degrees: of the rotation's three angles about the axes of the second camera,
        and of the translation's direction.

    Examples
    --------
    >>> Estimate(None, np.zeros(40, bool))
    <Estimate: none of 40 matches agree>
    """

    matrix: Floats | None
    inliers: Flags
    geometry: str | None = None
    rotation: Floats | None = None
    translation: Floats | None = None
    focal: float | None = None
    pose_covariance: Floats | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.matrix, self.inliers))

    def __repr__(self) -> str:
        found = "none" if self.geometry is None else f"{self.inliers.sum():,}"
        what = "" if self.geometry is None else f" ({self.geometry})"
        return f"<Estimate: {found} of {len(self.inliers):,} matches agree{what}>"


@dataclass(frozen=True, eq=False)
class AbsolutePose:
    """Where a photograph was taken, by points of a model that it shows.

    Attributes
    ----------
    rotation, translation
        (3, 3) and (3,): the camera sees the model's X at ``rotation @ X + translation``.
    inliers
        (M,) bool: which points agree.
    """

    rotation: Floats
    translation: Floats
    inliers: Flags


def essential_matrix(rotation: Floats, translation: Floats) -> Floats:
    """The essential matrix (3, 3) of a pose.

    >>> essential_matrix(np.eye(3), np.array([1.0, 0, 0])).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
    """
    x, y, z = translation
    return np.asarray(np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ rotation, np.float64)


def unit(translation: Any) -> Floats:
    """The same direction (3,) with length 1; zeros stay.

    >>> unit([0, 3, 4]).tolist()
    [0.0, 0.6, 0.8]
    """
    array = np.asarray(translation, np.float64)
    return np.asarray(array / (np.linalg.norm(array) or 1.0), np.float64)


def pinhole(camera: Camera) -> dict[str, Any]:
    """PoseLib's description of a camera without its distortion; pixel centres at integers."""
    (fx, _, cx), (_, fy, cy), _ = camera.matrix.tolist()
    return {
        "model": "PINHOLE",
        "width": camera.width,
        "height": camera.height,
        "params": [fx, fy, cx, cy],
    }

"""Two photographs that are compared: their features, matches, and geometries."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mkdesc.geometry.cameras import Camera
from mkdesc.geometry.estimate import DEFAULT_OPTIONS, Size, estimate_geometry
from mkdesc.geometry.estimators.base import Estimate
from mkdesc.geometry.options import EstimatorOptions
from mkdesc.geometry.residuals import epipolar_errors, transfer_errors
from mkdesc.matching.frame_matches import FrameMatches, LocalFeatures
from mkdesc.matching.growing.grow import GrownMatches

#: A scene is deep if this share of what agrees on an epipolar geometry is off the homography by
#: more than so many thresholds: real planes are never quite flat.
DEEP_SHARE, OFF_PLANE = 0.1, 2.5

#: An essential matrix is taken where it keeps this share of the inliers of the fundamental one:
#: with less, the cameras are not those of the photographs.
POSED_SHARE = 0.8

#: Matches that must agree before a geometry is looked at: any fewer agree by chance.
MIN_INLIERS = 10

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PhotoPair:
    """Two photographs that are compared. What is estimated of them is kept, and never done twice.

    Attributes
    ----------
    features
        All that was found in both, and described.
    matches
        Between them.
    sizes
        Height and width of both.
    cameras
        Of both; None: unknown.
    tentative
        What they were grown from.
    grown
        The same matches with what the gray values say of each; None: they were not grown.
    threshold
        Largest error of an inlier, in pixels.
    n_overlaid
        Matches of an overlay, which were removed.
    estimator
        How geometries are estimated.
    """

    features: tuple[LocalFeatures, LocalFeatures]
    matches: FrameMatches
    sizes: tuple[Size, Size]
    tentative: FrameMatches | None = None
    grown: GrownMatches | None = None
    cameras: tuple[Camera, Camera] | None = None
    threshold: float = 2.0
    n_overlaid: int = 0
    estimator: EstimatorOptions = DEFAULT_OPTIONS
    _known: dict[str, Estimate] = field(default_factory=dict, repr=False)

    def estimate(self, kind: str) -> Estimate:
        """The geometry of one kind that most matches agree on."""
        if kind not in self._known:
            found = estimate_geometry(
                *self.matches.positions,
                kind,
                self.threshold,
                cameras=self.cameras,
                sizes=self.sizes,
                options=self.estimator,
            )
            enough = found.inliers.sum() >= MIN_INLIERS
            self._known[kind] = found if enough else self.nothing()
        return self._known[kind]

    @cached_property
    def ideal(self) -> tuple[Floats, Floats]:
        """Positions (M, 2) of the matches in both photographs, without lens distortion."""
        return self._undistorted(self.matches)

    def _undistorted(self, matches: FrameMatches) -> tuple[Floats, Floats]:
        here, there = matches.positions
        if self.cameras is None:
            return here, there
        return self.cameras[0].undistorted(here), self.cameras[1].undistorted(there)

    def nothing(self) -> Estimate:
        """No geometry."""
        return Estimate(None, np.zeros(len(self.matches.a), np.bool_))

    def geometry(self, asked: str = "auto") -> Estimate:
        """The geometry that was asked for; ``"auto"``: a homography if the scene is flat.

        Otherwise an essential matrix, if there are cameras and they fit, or a fundamental one.
        """
        if asked != "auto":
            return self.estimate(asked)
        deep, plane = self.estimate("fundamental"), self.estimate("homography")
        if plane.matrix is not None and self._off(plane, deep) < DEEP_SHARE:
            return plane
        if self.cameras is not None:
            pose = self.estimate("essential")
            if pose.inliers.sum() >= POSED_SHARE * deep.inliers.sum():
                return pose
        return deep

    def residuals(self, found: Estimate, matches: FrameMatches | None = None) -> Floats:
        """How far (M,), in pixels, the matches, or others, are off a geometry."""
        assert found.matrix is not None
        here, there = self.ideal if matches is None else self._undistorted(matches)
        if found.geometry == "homography":
            return transfer_errors(found.matrix, here, there)
        return epipolar_errors(self.fundamental(found), here, there)

    def fundamental(self, found: Estimate) -> Floats:
        """An epipolar geometry as a fundamental matrix (3, 3), of pixels without distortion."""
        assert found.matrix is not None
        if found.geometry == "fundamental":
            return found.matrix
        if found.focal is None:
            assert self.cameras is not None
            first, second = (np.linalg.inv(camera.matrix) for camera in self.cameras)
        else:
            first, second = (
                np.linalg.inv(Camera.from_focal(found.focal, width, height).matrix)
                for height, width in self.sizes
            )
        return np.asarray(second.T @ found.matrix @ first, np.float64)

    def _off(self, plane: Estimate, deep: Estimate) -> float:
        """Of the inliers of an epipolar geometry, the share that is off a homography."""
        far = self.residuals(plane)[deep.inliers] > OFF_PLANE * self.threshold
        return float(far.mean()) if len(far) else 0.0

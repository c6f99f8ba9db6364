"""The geometry that matches of two photographs agree on, as it was asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.geometry.cameras import Camera
from mkdesc.geometry.estimate import DEFAULT_OPTIONS
from mkdesc.geometry.estimators.base import Estimate
from mkdesc.geometry.options import EstimatorOptions
from mkdesc.geometry.residuals import transfer_errors
from mkdesc.matching.affinities import affinities
from mkdesc.matching.coherence import Size
from mkdesc.matching.frame_matches import FrameMatches
from mkdesc.matching.verification import (
    choose_geometry,
    verify_matches,
)

Floats = NDArray[np.float64]


class TwoViewOptions(NamedTuple):
    """What is asked of two views.

    Attributes
    ----------
    sizes
        Height and width of either image.
    geometry, threshold, cameras
        As for :func:`mkdesc.verify_matches`.
    estimator
        How to search for a geometry.
    device
        As for :func:`mkdesc.match_descriptors`.
    """

    sizes: tuple[Size, Size]
    geometry: str = "auto"
    threshold: float = 2.0
    cameras: tuple[Camera, Camera] | None = None
    device: str | None = None
    estimator: EstimatorOptions = DEFAULT_OPTIONS


def verify(matches: FrameMatches, geometry: str, options: TwoViewOptions) -> Estimate:
    """Which matches agree on a geometry of this kind."""
    return verify_matches(
        *matches.positions,
        geometry,
        options.threshold,
        cameras=options.cameras,
        sizes=options.sizes,
        options=options.estimator,
    )


def fit_homography(matches: FrameMatches, threshold: float) -> Estimate:
    """The homography of matches; pixels are those of the image that shows things smaller."""
    here, there = matches.positions
    larger = len(here) and np.median(np.linalg.det(affinities(matches.a, matches.b)[:, :, :2])) > 1
    if not larger:
        return verify_matches(here, there, "homography", threshold)
    found = verify_matches(there, here, "homography", threshold)
    if found.matrix is None:
        return found
    return replace(found, matrix=np.linalg.inv(found.matrix).astype(np.float64))


def verify_near_plane(matches: FrameMatches, matrix: Floats, options: TwoViewOptions) -> Estimate:
    """What matches agree on, given a homography (3, 3) that some of them do."""
    if options.geometry not in ("auto", "homography"):
        return verify(matches, options.geometry, options)
    plane = plane_near(matches, matrix, options.threshold)
    if options.geometry == "homography":
        return plane
    return choose_geometry(
        plane,
        lambda kind: verify(matches, kind, options),
        *matches.positions,
        options.threshold,
        options.cameras is not None,
    )


def plane_near(matches: FrameMatches, matrix: Floats, threshold: float) -> Estimate:
    """A homography, refined by the matches that are near it."""
    here, there = matches.positions
    near = transfer_errors(matrix, here, there) < 4 * threshold
    refined = fit_homography(matches.take(near), threshold).matrix
    best = matrix if refined is None else refined
    return Estimate(best, transfer_errors(best, here, there) < threshold, "homography")


def of_pixels(found: Estimate, options: TwoViewOptions) -> tuple[Floats, str]:
    """A geometry as one of pixels: an essential matrix becomes a fundamental one."""
    assert found.matrix is not None
    if found.geometry != "essential":
        return found.matrix, str(found.geometry)
    assert options.cameras is not None
    first, second = (np.linalg.inv(camera.matrix) for camera in options.cameras)
    return second.T @ found.matrix @ first, "fundamental"

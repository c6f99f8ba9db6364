"""The geometry that matches of two photographs agree on, as it was asked for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.geometry.cameras import Camera
from mkdesc.geometry.estimate import DEFAULT_OPTIONS
from mkdesc.geometry.estimators.base import Estimate
from mkdesc.geometry.options import EstimatorOptions
from mkdesc.matching.coherence import Size
from mkdesc.matching.frame_matches import FrameMatches
from mkdesc.matching.verification import (
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


def of_pixels(found: Estimate, options: TwoViewOptions) -> tuple[Floats, str]:
    """A geometry as one of pixels: an essential matrix becomes a fundamental one."""
    assert found.matrix is not None
    if found.geometry != "essential":
        return found.matrix, str(found.geometry)
    assert options.cameras is not None
    first, second = (np.linalg.inv(camera.matrix) for camera in options.cameras)
    return second.T @ found.matrix @ first, "fundamental"

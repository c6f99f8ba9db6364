"""Cameras, and the geometry that matched points agree on: one estimator for each kind.

May use: _support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.geometry.camera_files import read_cameras as read_cameras
    from mkdesc.geometry.cameras import Camera as Camera
    from mkdesc.geometry.estimate import estimate_absolute_pose as estimate_absolute_pose
    from mkdesc.geometry.estimate import estimate_geometry as estimate_geometry
    from mkdesc.geometry.estimators.base import AbsolutePose as AbsolutePose
    from mkdesc.geometry.estimators.base import Estimate as Estimate
    from mkdesc.geometry.options import EstimatorOptions as EstimatorOptions

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)

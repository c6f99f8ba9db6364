"""The geometry that matched points agree on: one call for every kind."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_choice, check_number
from mkdesc.geometry.cameras import Camera, as_camera, both_cameras
from mkdesc.geometry.estimators.base import AbsolutePose, Estimate, MatchedPoints
from mkdesc.geometry.options import EstimatorOptions
from mkdesc.geometry.positions import as_positions
from mkdesc.geometry.uncertainty import pose_covariance

#: The kinds of geometry, and how many matches determine one.
SAMPLES = {"homography": 4, "fundamental": 7, "essential": 5, "shared-focal": 6}

#: Kinds that are relative poses.
POSES = ("essential", "shared-focal")

DEFAULT_OPTIONS = EstimatorOptions()

Size = tuple[int, int]
Floats = NDArray[np.float64]


def estimate_geometry(
    a: ArrayLike,
    b: ArrayLike,
    kind: str,
    threshold: float = 2.0,
    *,
    cameras: Sequence[Camera | ArrayLike] | None = None,
    sizes: tuple[Size, Size] | None = None,
    options: EstimatorOptions = DEFAULT_OPTIONS,
) -> Estimate:
    """The geometry of one kind that most matches agree on.

    Parameters
    ----------
    a, b
        Positions (M, 2) in the first and the second image, matched row by row.
    kind
        ``"homography"``: a flat scene, or a camera that only turns. ``"fundamental"``: any scene
        that does not move. ``"essential"``: the same with known cameras; gives the pose of the
        second relative to the first. ``"shared-focal"``: the same with one focal length that is
        not known, and the optical axes in the middle of the images.
    threshold
        Largest error of an inlier, in pixels.
    cameras
        Two cameras, or calibration matrices (3, 3). Lens distortion is undone first.
    sizes
        Height and width of both images; needed for ``"shared-focal"``.
    options
        How to search.

    Returns
    -------
    Estimate
        Without a matrix if there is none.

    Examples
    --------
    >>> here = np.random.default_rng(0).uniform(0, 500, (50, 2))
    >>> there = here * 0.5 + 20
    >>> there[:10] = here[:10]
    >>> found = estimate_geometry(here, there, "homography")
    >>> found.inliers.sum(), (found.matrix / found.matrix[2, 2]).round(3).diagonal().tolist()
    (np.int64(40), [0.5, 0.5, 1.0])
    """
    check_choice("geometry", kind, SAMPLES)
    check_number("threshold", threshold, above=0)
    here, there = (as_positions(name, xy) for name, xy in (("a", a), ("b", b)))
    if len(here) != len(there):
        raise ValueError(f"a and b: expected as many rows, got {len(here)} and {len(there)}")
    if kind == "essential" and cameras is None:
        raise ValueError("cameras: expected two for an essential matrix, got None")
    if kind == "shared-focal" and sizes is None:
        raise ValueError("sizes: expected height and width of both images, got None")
    known = None if cameras is None else both_cameras(cameras, sizes)
    if known is not None:
        here, there = (
            camera.undistorted(xy) for camera, xy in zip(known, (here, there), strict=True)
        )
    centres = None
    if sizes is not None:
        first, second = (np.array([width - 1, height - 1]) / 2 for height, width in sizes)
        centres = first, second
    shown = np.isfinite(here).all(axis=1) & np.isfinite(there).all(axis=1)
    points = MatchedPoints(here[shown], there[shown], known, centres)
    found = _estimated(kind, points, threshold, options)
    inliers = np.zeros(len(here), np.bool_)
    if found.matrix is None or not np.isfinite(found.matrix).all() or not found.inliers.any():
        return Estimate(None, inliers)
    if min(_width(xy[found.inliers]) for xy in points[:2]) < threshold / 2:
        return Estimate(None, inliers)  # matches on one line determine nothing
    inliers[shown] = found.inliers
    covariance = pose_covariance(found, points) if kind in POSES else None
    return replace(found, inliers=inliers, pose_covariance=covariance)


def _width(xy: Floats) -> float:
    """The standard deviation of positions (M, 2) across the line that fits them best."""
    spread = np.linalg.svd(xy - xy.mean(axis=0), compute_uv=False)
    return float(spread[-1] / np.sqrt(len(xy)))


def _estimated(
    kind: str, points: MatchedPoints, threshold: float, options: EstimatorOptions
) -> Estimate:
    if len(points.here) < SAMPLES[kind]:
        return Estimate(None, np.zeros(len(points.here), np.bool_))
    if options.library == "opencv":
        from mkdesc.geometry.estimators import with_opencv

        return with_opencv.estimate(kind, points, threshold, options)
    module = importlib.import_module(f"mkdesc.geometry.estimators.{kind.replace('-', '_')}")
    found: Estimate = module.estimate(points, threshold, options)
    return found


def estimate_absolute_pose(
    xy: ArrayLike,
    points: ArrayLike,
    camera: Camera | ArrayLike,
    threshold: float = 4.0,
    options: EstimatorOptions = DEFAULT_OPTIONS,
) -> AbsolutePose | None:
    """Where a photograph was taken, by points of a model that it shows; None: no pose.

    Parameters
    ----------
    xy
        Positions (M, 2) in the photograph.
    points
        (M, 3): the model's points there.
    camera
        Of the photograph; its lens distortion is undone first.
    threshold
        Largest error of an inlier, in pixels.
    options
        How to search.

    Examples
    --------
    >>> points = np.random.default_rng(0).uniform(-1, 1, (50, 3)) + [0, 0, 5]
    >>> camera = Camera.from_focal(500, 640, 480)
    >>> xy = camera.project(points[:, :2] / points[:, 2:])
    >>> found = estimate_absolute_pose(xy, points, camera)
    >>> found.inliers.sum(), (abs(found.translation) < 1e-6).all()
    (np.int64(50), np.True_)
    """
    check_number("threshold", threshold, above=0)
    seen = as_positions("xy", xy)
    places = np.ascontiguousarray(points, np.float64)
    if places.shape != (len(seen), 3) or not np.isfinite(places).all():
        raise ValueError(
            f"points: expected finite numbers ({len(seen)}, 3), got an array {places.shape}"
        )
    camera = as_camera("camera", camera)
    ideal = camera.undistorted(seen)
    shown = np.isfinite(ideal).all(axis=1)
    if shown.sum() < 4:
        return None
    from mkdesc.geometry.estimators import absolute_pose, with_opencv

    opencv = options.library == "opencv"
    estimate = with_opencv.estimate_absolute_pose if opencv else absolute_pose.estimate
    found = estimate(ideal[shown], places[shown], camera, threshold, options)
    if found is None or not np.isfinite(found.translation).all() or found.inliers.sum() < 4:
        return None
    inliers = np.zeros(len(seen), np.bool_)
    inliers[shown] = found.inliers
    return replace(found, inliers=inliers)

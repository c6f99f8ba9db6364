"""Two photographs, matched: what belongs to what, and the geometry behind it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.arrays import is_number
from mkdesc._support.check import check_not_both
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.threads import checked_threads
from mkdesc.features.features import Features
from mkdesc.features.matches import ImageMatches
from mkdesc.features.wide import match_wide
from mkdesc.geometry.cameras import Camera, both_cameras
from mkdesc.geometry.estimate import DEFAULT_OPTIONS
from mkdesc.geometry.options import EstimatorOptions
from mkdesc.images.exif import focal_length
from mkdesc.images.frames import frames_from_points
from mkdesc.images.gray import as_gray_uint8
from mkdesc.images.reading import MAX_PIXELS, read_gray
from mkdesc.matching.coherence import Size
from mkdesc.matching.frame_matches import LocalFeatures, plain_features
from mkdesc.matching.judging import UNVERIFIED, VERIFIED, one_make
from mkdesc.matching.mirrored import mirrors
from mkdesc.matching.nearest import check_limits
from mkdesc.matching.two_view_geometry import TwoViewOptions
from mkdesc.matching.two_views import TwoViewResult, guide, match_and_verify, nothing_found
from mkdesc.matching.verification import check_geometry, transfer_errors, verify_matches
from mkdesc.models import DEFAULT_MODEL, model_ratio

#: Keypoints per photograph, unless told otherwise.
KEYPOINTS = 2000

#: Seconds of a wide search, unless told otherwise.
LIMIT = 30.0

#: Estimate matches, as a share of the keypoints, at which a wide search need not begin.
ENOUGH = 0.1

Image = str | os.PathLike[str] | ArrayLike


def match_images(
    a: Image,
    b: Image,
    features: Features | None = None,
    *,
    ratio: float | Literal["auto"] | None = 0.95,
    geometry: str = "auto",
    threshold: float = 2.0,
    guided: bool = False,
    wide: bool = False,
    limit: float = LIMIT,
    cameras: Sequence[Camera | ArrayLike] | None = None,
    focal_lengths: tuple[float | None, float | None] | None = None,
    estimator: EstimatorOptions = DEFAULT_OPTIONS,
    max_pixels: int = MAX_PIXELS,
    progress: Progress = no_progress,
) -> ImageMatches:
    """Match two photographs: keypoints, descriptors, nearest neighbours, one geometry.

    Parameters
    ----------
    a, b
        Files, or images: gray (H, W) or colour (H, W, 3 or 4; blue first), uint8, uint16, or
        floats in [0, 1]. Files are turned as their EXIF data say, as ``cv2.imread`` does.
    features
        What detects and describes; None: ``Features(2000)``. If they have a device, descriptors
        are matched there, too.
    ratio
        Ratio test on mutual nearest neighbours (not with ``wide``, which has its own). ``"auto"``:
        that of the model. None: no test.
    geometry
        What matches must agree on: ``"homography"``, ``"fundamental"``, ``"essential"``,
        ``"shared-focal"`` or ``"auto"``; see :func:`mkdesc.verify_matches`.
    threshold
        Largest error of an inlier, in pixels.
    guided
        Whether to match once more with the geometry that was found, for more and better matches.
    wide
        Whether to go on, where few matches agree, with shapes and with views of both photographs
        from the side, until a geometry is believed, all views are tried, or the time is over.
        Includes ``guided``.
    limit
        Seconds after which ``wide`` tries no more views.
    cameras
        Of the photographs: two :class:`mkdesc.Camera`, or calibration matrices (3, 3). Lens
        distortion is undone before anything is estimated. None: what ``focal_lengths`` say.
    focal_lengths
        The short form: of both cameras, in pixels; None: what the EXIF data of the files say, if
        they do. The optical axes are then taken to meet the middle of the photographs.
    estimator
        How geometries are estimated.
    max_pixels
        Larger files are refused.
    progress
        Told what is being done.

    Returns
    -------
    ImageMatches
        With ``matrix`` None, no inliers and the tentative matches unless it is believed that the
        two show the same scene; ``verdict`` and ``reason`` say why not.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (100, 120), np.uint8)
    >>> found = match_images(image, image[10:, 20:])
    >>> found.geometry, (found.matrix.round() + 0.0).tolist()
    ('homography', [[1.0, 0.0, -20.0], [0.0, 1.0, -10.0], [0.0, 0.0, 1.0]])
    """
    if features is not None and not isinstance(features, Features):
        raise ValueError(f"features: expected mkdesc.Features or None, got {features!r}")
    if isinstance(ratio, str) and ratio == "auto":
        ratio = model_ratio(DEFAULT_MODEL if features is None else features.mkd)
    check_options(ratio, geometry, threshold, limit)
    check_files(a, b)
    progress("reading", 0, 0)
    clock = _Clock()
    grays = (_gray(a, max_pixels), _gray(b, max_pixels))
    sizes = (grays[0].shape[0], grays[0].shape[1]), (grays[1].shape[0], grays[1].shape[1])
    if cameras is None:
        known = _cameras_of((a, b), sizes, focal_lengths)
    else:
        check_not_both(cameras=cameras, focal_lengths=focal_lengths)
        known = both_cameras(cameras, sizes)
    if geometry == "essential" and known is None:
        raise ValueError(
            "cameras: expected two for an essential matrix; neither they nor focal lengths are "
            "given, and there are none in the EXIF data (geometry='shared-focal' needs none)"
        )
    describe = features or Features(KEYPOINTS)
    if describe.output == "bits" and (wide or guided):
        raise ValueError(
            "features: bits are compared between two photographs alone; wide and guided need "
            "output float32, int8 or uint8"
        )
    device = describe.get_params()["device"]
    options = TwoViewOptions(sizes, geometry, threshold, known, device, estimator)
    clock.lap("read")
    progress("describing", 0, 0)
    found = (_features(grays[0], describe), _features(grays[1], describe))
    clock.lap("describe")
    result = match_and_verify(*found, ratio, options)
    clock.lap("match")
    most = describe.max_keypoints or max(len(one.frames) for one in found)
    if wide and result.verified.inliers.sum() < ENOUGH * most and not _mirrors(result):
        one_thread = _for_blobs(describe)
        threads = checked_threads(describe.mkd.n_threads)
        found_wide = match_wide(grays, one_thread, options, most, threads, progress, limit)
        result = better(result, _unless_of_one_make(found_wide, result, options))
        clock.lap("wide")
    if (guided or wide) and result.verified.matrix is not None:
        result = guide(result, options)
        clock.lap("guided")
    files = (_file(a), _file(b))
    return _result(result, grays, describe.sides[0], clock.laps, files)


def _mirrors(result: TwoViewResult) -> bool:
    """Whether one photograph is the other one mirrored: from no side will there be more of it."""
    found = result.verified
    if found.matrix is None or found.geometry != "homography":
        return False
    return mirrors(found.matrix, result.matches.take(found.inliers).positions[0])


def _unless_of_one_make(
    wide: TwoViewResult, plain: TwoViewResult, options: TwoViewOptions
) -> TwoViewResult:
    """The wide result, unless plain keypoints say that these are two things of one make."""
    if wide.verified.matrix is None or wide.verified.geometry != "homography":
        return wide
    off = transfer_errors(wide.verified.matrix, *plain.matches.positions)
    alike = one_make(plain.features, plain.matches.take(off < options.threshold))
    return wide if alike is None else nothing_found(wide.features, wide.matches, alike)


def better(plain: TwoViewResult, wide: TwoViewResult) -> TwoViewResult:
    """The wide result, unless it alone is not believed; it says more about why not.

    A doubt of the plain one stays, where the wide one has none.
    """
    if wide.verdict.name == VERIFIED or plain.verdict.name == UNVERIFIED:
        return wide
    return plain if plain.verdict.name == VERIFIED else wide._replace(verdict=plain.verdict)


def check_options(
    ratio: float | None, geometry: str, threshold: float, limit: float = LIMIT
) -> None:
    """Refuse what :func:`match_images` would, before any work."""
    if not (is_number(limit) and limit > 0):
        raise ValueError(f"limit: expected seconds > 0, got {limit!r}")
    check_limits(ratio)
    check_geometry(geometry)
    verify_matches([], [], "homography", threshold)


def check_files(a: Image, b: Image) -> None:
    """Refuse files that are not there."""
    for name, image in (("a", a), ("b", b)):
        if isinstance(image, (str, os.PathLike)) and not Path(image).is_file():
            what = "a folder, not a file" if Path(image).is_dir() else "no such file"
            raise FileNotFoundError(f"{name}: {what}: {image}")


class _Clock:
    """Seconds by what they were spent on."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now


def _file(image: Image) -> Path | None:
    return Path(image) if isinstance(image, (str, os.PathLike)) else None


def _gray(image: Image, max_pixels: int) -> NDArray[np.uint8]:
    if isinstance(image, (str, os.PathLike)):
        return read_gray(Path(image), max_pixels)
    return as_gray_uint8(image)


def _cameras_of(
    images: tuple[Image, Image],
    sizes: tuple[Size, Size],
    given: tuple[float | None, float | None] | None,
) -> tuple[Camera, Camera] | None:
    """Cameras with these focal lengths, or those of the EXIF data; None if one is not known."""
    focals = _focals(given)
    for i, (image, size) in enumerate(zip(images, sizes, strict=True)):
        if focals[i] is None and isinstance(image, (str, os.PathLike)):
            focals[i] = focal_length(Path(image).read_bytes(), max(size))
    if focals[0] is None or focals[1] is None:
        return None
    (height, width), (other_height, other_width) = sizes
    return (
        Camera.from_focal(focals[0], width, height),
        Camera.from_focal(focals[1], other_width, other_height),
    )


def _focals(given: object) -> list[float | None]:
    """Two focal lengths as they were given; None: not known."""
    if given is None:
        return [None, None]
    both = list(given) if isinstance(given, (tuple, list)) else []
    if len(both) != 2 or not all(focal is None or _is_length(focal) for focal in both):
        raise ValueError(f"focal_lengths: expected two numbers > 0 or None, got {given!r}")
    return both


def _is_length(value: object) -> bool:
    return is_number(value) and 0 < value < np.inf


def _features(gray: NDArray[np.uint8], features: Features) -> LocalFeatures:
    keypoints, descriptors = features.extract(gray)
    frames = frames_from_points(keypoints.points, features.sides[0])
    return plain_features(frames, descriptors, features.output == "bits")


def _for_blobs(features: Features) -> Features:
    """What describes in views, each in one thread: the sides are those of SIFT's blobs."""
    named = features.get_params()["detector"] == "sift"
    own = {} if named else {"detector": "sift", "side": None, "max_keypoints": None}
    return features.replace(n_threads=1, **own)


def _result(
    found: TwoViewResult,
    grays: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    side: float,
    timings: dict[str, float],
    files: tuple[Path | None, Path | None],
) -> ImageMatches:
    matches, verified = found.matches, found.verified
    here, there = matches.positions
    keypoints = [_points(one.frames, side) for one in found.features]
    return ImageMatches(
        points_a=here.copy(),
        points_b=there.copy(),
        distances=matches.distances,
        inliers=verified.inliers,
        matrix=verified.matrix,
        geometry=verified.geometry,
        rotation=verified.rotation,
        translation=verified.translation,
        pose_covariance=verified.pose_covariance,
        focal=verified.focal,
        verdict=found.verdict.name,
        reason=found.verdict.reason,
        pairs=matches.pairs,
        keypoints_a=keypoints[0],
        keypoints_b=keypoints[1],
        timings=timings,
        images=grays,
        files=files,
    )


def _points(frames: NDArray[np.float64], side: float) -> NDArray[np.float64]:
    """Points (N, 4) with the centre, area and mean direction of affine frames."""
    (p, q, x), (r, s, y) = np.moveaxis(frames, 0, -1)
    sigma = np.sqrt(np.abs(p * s - q * r)) * 2 / side
    return np.stack([x, y, sigma, np.rad2deg(np.arctan2(r - q, p + s)) % 360], axis=-1)

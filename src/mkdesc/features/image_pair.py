"""Two photographs, matched: what belongs to what, and the geometry behind it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.arrays import is_number
from mkdesc._support.check import check_choice, check_integer, check_not_both
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.threads import checked_threads
from mkdesc.belief.checks import UNVERIFIED, VERIFIED
from mkdesc.belief.judgement import BELIEFS, Judged, judge
from mkdesc.features.dense_pair import fill_grid
from mkdesc.features.features import Features
from mkdesc.features.growing_pair import GrownPair, grow_pair
from mkdesc.features.matches import ImageMatches
from mkdesc.features.wide import match_wide
from mkdesc.geometry.cameras import Camera, both_cameras
from mkdesc.geometry.estimate import DEFAULT_OPTIONS
from mkdesc.geometry.estimators.base import Estimate
from mkdesc.geometry.options import EstimatorOptions
from mkdesc.images.exif import focal_length
from mkdesc.images.frames import frames_from_points
from mkdesc.images.gray import as_gray_uint8
from mkdesc.images.reading import MAX_PIXELS, opencv, read_gray
from mkdesc.matching.affinities import affinities
from mkdesc.matching.coherence import Size
from mkdesc.matching.frame_matches import FrameMatches, LocalFeatures, plain_features
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import make_pyramid
from mkdesc.matching.nearest import check_limits
from mkdesc.matching.two_view_geometry import TwoViewOptions
from mkdesc.matching.two_views import TwoViewResult, match_and_verify, mutual_matches
from mkdesc.matching.verification import check_geometry, verify_matches
from mkdesc.models import DEFAULT_MODEL, model_ratio

#: Keypoints per photograph, unless told otherwise.
KEYPOINTS = 2000

#: Pixels from place to place of a grid, at most.
LARGEST_GRID = 10_000

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
    grow: bool | GrowOptions = True,
    ratio: float | Literal["auto"] | None = 0.95,
    geometry: str = "auto",
    threshold: float = 2.0,
    belief: str = "strict",
    wide: bool = False,
    limit: float = LIMIT,
    grid: int | None = None,
    cameras: Sequence[Camera | ArrayLike] | None = None,
    focal_lengths: tuple[float | None, float | None] | None = None,
    estimator: EstimatorOptions = DEFAULT_OPTIONS,
    max_pixels: int = MAX_PIXELS,
    progress: Progress = no_progress,
) -> ImageMatches:
    """Match two photographs: keypoints, nearest neighbours, growth, one geometry.

    Parameters
    ----------
    a, b
        Files, or images: gray (H, W) or colour (H, W, 3 or 4; blue first), uint8, uint16, or
        floats in [0, 1]. Files are turned as their EXIF data say, as ``cv2.imread`` does.
    features
        What detects and describes; None: ``Features(2000)``. If they have a device, descriptors
        are matched and gray values fitted there, too.
    grow
        Whether to fit mutual nearest neighbours to the gray values, and grow matches from what
        fits (:func:`mkdesc.grow_matches`); or its options. False: nearest neighbours alone.
    ratio
        Ratio test on mutual nearest neighbours, where nothing is grown. ``"auto"``: that of the
        model. None: no test.
    geometry
        What matches must agree on: ``"homography"``, ``"fundamental"``, ``"essential"``,
        ``"shared-focal"`` or ``"auto"``; see :func:`mkdesc.verify_matches`.
    threshold
        Largest error of an inlier, in pixels.
    belief
        How much evidence is asked for, where matches are grown. ``"strict"``: what two
        photographs alone need. ``"mapping"``: less; what a reconstruction of many photographs
        needs. ``"off"``: any geometry is taken.
    wide
        Whether to go on, where few matches agree, with shapes and with views of both photographs
        from the side, until a geometry is believed, all views are tried, or the time is over.
    limit
        Seconds after which ``wide`` tries no more views.
    grid
        Where the pair is verified: pixels between places of the first photograph that are tried
        as well, from their neighbours. 8 gives matches nearly everywhere where there is texture,
        which :meth:`ImageMatches.flow` makes a field of. None: only keypoints are tried.
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
        Called with what is being done.

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
    check_options(ratio, geometry, threshold, limit, belief)
    how = _growing(grow)
    if wide and how is None:
        raise ValueError("wide: grows matches; expected grow=True, got False")
    check_grid(grid, how is not None)
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
    if describe.output == "bits" and wide:
        raise ValueError(
            "features: bits are compared between two photographs alone; wide needs output "
            "float32, int8 or uint8"
        )
    device = describe.get_params()["device"]
    options = TwoViewOptions(sizes, geometry, threshold, known, device, estimator)
    clock.lap("read")
    progress("describing", 0, 0)
    seen = (_features(grays[0], describe), _features(grays[1], describe))
    clock.lap("describe")
    files = (_file(a), _file(b))
    if how is None:
        plain = match_and_verify(*seen, ratio, options)
        clock.lap("match")
        return _result(_of_plain(plain), grays, describe.sides[0], clock.laps, files)
    threads = checked_threads(describe.mkd.n_threads)
    pyramids = make_pyramid(grays[0]), make_pyramid(grays[1])
    tentative = mutual_matches(*seen, options)
    clock.lap("match")
    progress("growing", 0, 0)
    found = grow_pair(pyramids, seen, tentative, options, how, threads)
    judged = judge(found.pair, geometry, belief)
    clock.lap("grow")
    if wide and judged.verdict.name == UNVERIFIED:
        most = describe.max_keypoints or max(len(one.frames) for one in seen)
        opencv("a search with shapes and views (wide)")
        blobs = _for_blobs(describe)
        found, judged = match_wide(
            grays, pyramids, blobs, options, belief, how, most, threads, progress, limit
        )
        clock.lap("wide")
    if grid is not None:
        found, judged = fill_grid(found, judged, pyramids, grid, how, threads)
        clock.lap("grid")
    return _result(_of_grown(found, judged), grays, describe.sides[0], clock.laps, files)


def _growing(grow: bool | GrowOptions) -> GrowOptions | None:
    """How to grow; None: not at all."""
    if isinstance(grow, GrowOptions):
        return grow
    if not isinstance(grow, (bool, np.bool_)):
        raise ValueError(f"grow: expected True, False or GrowOptions, got {grow!r}")
    return GrowOptions() if grow else None


def check_options(
    ratio: float | None,
    geometry: str,
    threshold: float,
    limit: float = LIMIT,
    belief: str = "strict",
) -> None:
    """Refuse what :func:`match_images` would, before any work."""
    if not (is_number(limit) and limit > 0):
        raise ValueError(f"limit: expected seconds > 0, got {limit!r}")
    check_limits(ratio)
    check_geometry(geometry)
    check_choice("belief", belief, BELIEFS)
    verify_matches([], [], "homography", threshold)


def check_grid(grid: int | None, grow: bool) -> None:
    """Refuse a grid that :func:`match_images` would, before any work."""
    check_integer("grid", grid, least=2, most=LARGEST_GRID, optional=True)
    if grid is not None and not grow:
        raise ValueError("grid: grows matches; expected grow=True, got False")


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


class _Found(NamedTuple):
    """What is told of two photographs; correlation is None where nothing was grown."""

    features: tuple[LocalFeatures, LocalFeatures]
    matches: FrameMatches
    correlation: NDArray[np.float64] | None
    geometry: Estimate
    verdict: str
    reason: str


def _of_plain(found: TwoViewResult) -> _Found:
    return _Found(found.features, found.matches, None, found.verified, *found.verdict[:2])


def _of_grown(found: GrownPair, judged: Judged) -> _Found:
    """What was grown, if it is believed; otherwise what it was grown from."""
    if judged.verdict.name == VERIFIED:
        matches, correlation = found.pair.matches, found.grown.correlation
        return _Found(found.pair.features, matches, correlation, judged.geometry, *judged.verdict)
    nothing = Estimate(None, np.zeros(len(found.tentative.a), np.bool_))
    return _Found(found.pair.features, found.tentative, None, nothing, *judged.verdict)


def _result(
    found: _Found,
    images: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    side: float,
    timings: dict[str, float],
    files: tuple[Path | None, Path | None],
) -> ImageMatches:
    matches, geometry = found.matches, found.geometry
    here, there = matches.positions
    nothing = np.full(len(here), np.nan)
    return ImageMatches(
        points_a=here.copy(),
        points_b=there.copy(),
        distances=matches.distances,
        correlation=nothing if found.correlation is None else found.correlation,
        affine=affinities(matches.a, matches.b)[:, :, :2],
        inliers=geometry.inliers,
        matrix=geometry.matrix,
        geometry=geometry.geometry,
        rotation=geometry.rotation,
        translation=geometry.translation,
        pose_covariance=geometry.pose_covariance,
        focal=geometry.focal,
        verdict=found.verdict,
        reason=found.reason,
        pairs=matches.pairs,
        keypoints_a=_points(found.features[0].frames, side),
        keypoints_b=_points(found.features[1].frames, side),
        timings=timings,
        images=images,
        files=files,
    )


def _points(frames: NDArray[np.float64], side: float) -> NDArray[np.float64]:
    """Points (N, 4) with the centre, area and mean direction of affine frames."""
    (p, q, x), (r, s, y) = np.moveaxis(frames, 0, -1)
    sigma = np.sqrt(np.abs(p * s - q * r)) * 2 / side
    return np.stack([x, y, sigma, np.rad2deg(np.arctan2(r - q, p + s)) % 360], axis=-1)

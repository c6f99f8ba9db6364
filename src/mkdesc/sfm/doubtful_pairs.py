"""Which pairs of a database are believed: fewer than those that COLMAP takes for verified."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress
from mkdesc._support.threads import one_thread_each
from mkdesc._support.work import in_order
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.features.image_features import load_features
from mkdesc.geometry.estimators.base import Estimate
from mkdesc.images.frames import frames_from_points
from mkdesc.matching.coherence import Size
from mkdesc.matching.frame_matches import FrameMatches, LocalFeatures, plain_features
from mkdesc.matching.judging import AMBIGUOUS, UNVERIFIED, VERIFIED, Verdict, judge
from mkdesc.matching.two_view_geometry import TwoViewOptions
from mkdesc.retrieval.pairs import AT_HAND, NamePair

#: Pixels that a match may be off its epipolar line: what COLMAP's verification allows.
WITHIN = 4.0

Floats = NDArray[np.float64]


class _VerifiedPair(NamedTuple):
    """A verified pair of a database, as far as it is judged."""

    key: tuple[int, int]
    matches: FrameMatches
    verified: Estimate
    sizes: tuple[Size, Size]
    features: tuple[LocalFeatures, LocalFeatures] | None


def drop_doubtful_pairs(base: Path, progress: Progress, features: Path | None = None) -> None:
    """Take geometries that are not believed out of a database; their matches stay.

    The check is that of two photographs (:func:`mkdesc.matching.judging.judge`), less its
    count of matches: of several pairs of an image the mapping needs the weak ones, too. Pairs of
    keypoints that are positions alone, as others write them, are left as they are.

    Parameters
    ----------
    base
        COLMAP's database, with verified pairs.
    progress
        Told of every pair.
    features
        Folder of the features that are matched; None: the database's own descriptors, where it
        has some, tell which things look the same.
    """
    pycolmap = pycolmap_module()
    # Without matches they are not mapped. COLMAP verifies them anew if it is asked to.
    kinds = pycolmap.TwoViewGeometryConfiguration
    nothing = {
        UNVERIFIED: pycolmap.TwoViewGeometry(config=kinds.DEGENERATE),
        AMBIGUOUS: pycolmap.TwoViewGeometry(config=kinds.MULTIPLE),
    }
    with pycolmap.Database.open(base) as file, one_thread_each():
        keys, _ = file.read_two_view_geometry_num_inliers()
        pairs = [pycolmap.pair_id_to_image_pair(key) for key in keys]
        verdicts = in_order(_judged, _read(file, pairs, features))
        for done, (key, verdict) in enumerate(verdicts, 1):
            if verdict.name != VERIFIED:
                file.update_two_view_geometry(*key, nothing[verdict.name])
            progress("checking", done, len(pairs))


def ambiguous_pairs(base: Path) -> list[NamePair]:
    """Pairs of images, by name, that were dropped because their structure repeats itself."""
    pycolmap = pycolmap_module()
    kind = int(pycolmap.TwoViewGeometryConfiguration.MULTIPLE)
    with closing(sqlite3.connect(base)) as file:
        names = dict(file.execute("SELECT image_id, name FROM images"))
        query = "SELECT pair_id FROM two_view_geometries WHERE rows = 0 AND config = ?"
        pairs = [pycolmap.pair_id_to_image_pair(key) for (key,) in file.execute(query, (kind,))]
    return sorted((names[a], names[b]) for a, b in pairs)


def _read(
    file: Any, pairs: list[tuple[int, int]], features: Path | None
) -> Iterator[_VerifiedPair]:
    """The pairs that can be judged, one after the other: several at a time are in memory."""
    images = {image.image_id: image for image in file.read_all_images()}
    cameras = {camera.camera_id: camera for camera in file.read_all_cameras()}

    @lru_cache(AT_HAND)
    def seen(image: int) -> tuple[Floats | None, LocalFeatures | None]:
        frames = frames_of(file.read_keypoints(image))
        if features is not None:
            descriptors = load_features(features, images[image].name).descriptors
        else:
            descriptors = file.read_descriptors(image).data
        if frames is None or len(descriptors) != len(frames):
            return frames, None
        return frames, plain_features(frames, descriptors)

    for a, b in pairs:
        known = file.read_two_view_geometry(a, b)
        (here, one), (there, other) = seen(a), seen(b)
        if not len(known.inlier_matches) or here is None or there is None:
            continue
        rows = file.read_matches(a, b).astype(np.int64)
        agree = known.inlier_matches.astype(np.int64)
        if not len(rows):  # others' databases may have what is verified alone
            rows = agree
        wide = int(max(rows[:, 1].max(), agree[:, 1].max())) + 1
        inliers = np.isin(rows @ [wide, 1], agree @ [wide, 1])
        matrix, kind = geometry_of(known)
        if matrix is None:  # others' databases need not have it
            continue
        distances = np.zeros(len(rows), np.float32)
        matches = FrameMatches(here[rows[:, 0]], there[rows[:, 1]], distances, rows)
        cams = [cameras[images[image].camera_id] for image in (a, b)]
        sizes = (cams[0].height, cams[0].width), (cams[1].height, cams[1].width)
        both = None if one is None or other is None else (one, other)
        yield _VerifiedPair((a, b), matches, Estimate(matrix, inliers, kind), sizes, both)


def _judged(pair: _VerifiedPair) -> tuple[tuple[int, int], Verdict]:
    options = TwoViewOptions(pair.sizes, threshold=WITHIN)
    return pair.key, judge(pair.matches, pair.verified, options, pair.features, math.inf)


def geometry_of(known: Any) -> tuple[Floats | None, str]:
    """The matrix of a ``pycolmap.TwoViewGeometry``, if it has one, and its kind."""
    kinds = pycolmap_module().TwoViewGeometryConfiguration
    flat = (kinds.PLANAR, kinds.PANORAMIC, kinds.PLANAR_OR_PANORAMIC)
    if known.config in flat:
        return known.H, "homography"
    return known.F, "fundamental"


def frames_of(keypoints: NDArray[np.float32]) -> Floats | None:
    """Frames (N, 2, 3) of COLMAP's keypoints (N, 4 or 6); None if they are positions alone."""
    columns = keypoints.shape[1]
    if columns == 6:
        shape = keypoints[:, 2:].astype(np.float64).reshape(-1, 2, 2)
        good = np.abs(np.linalg.det(shape)) > 0
        return np.dstack([shape, keypoints[:, :2]]) if good.all() else None
    if columns == 4 and (keypoints[:, 2] > 0).all():
        turned = np.rad2deg(keypoints[:, 3:].astype(np.float64))
        return frames_from_points(np.hstack([keypoints[:, :3], turned]))
    return None

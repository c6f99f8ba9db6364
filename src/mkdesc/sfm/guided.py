"""Matches of a database once more, guided by the geometry that was verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mkdesc._support.progress import Progress
from mkdesc.datasets.colmap import pycolmap_module, to_colmap_pixels
from mkdesc.features.folder import ImageFeatures
from mkdesc.matching.guided import match_guided

__all__ = ["guide_pairs"]

#: Pixels that a match may be off its epipolar line: what COLMAP's verification allows.
WITHIN = 4.0


def guide_pairs(
    base: Path,
    pairs: Sequence[tuple[str, str]],
    features: Callable[[str], ImageFeatures],
    ratio: float | None,
    tell: Progress,
) -> None:
    """Add what the verified geometry of pairs finds to their matches; to be verified again.

    Parameters
    ----------
    base
        COLMAP's database, with verified pairs.
    pairs
        Names of images.
    features
        Gives those of an image.
    ratio
        As for :func:`mkdesc.matching.guided.match_guided`.
    tell
        Told of every pair.
    """
    pycolmap = pycolmap_module()
    with pycolmap.Database.open(base) as file:
        ids = {image.name: image.image_id for image in file.read_all_images()}
        for done, (a, b) in enumerate(pairs, 1):
            key = ids[a], ids[b]
            if file.exists_two_view_geometry(*key):
                known = file.read_two_view_geometry(*key)
                found = _guided(known, features(a), features(b), ratio)
                if found is not None:
                    both = np.unique(np.concatenate([known.inlier_matches, found]), axis=0)
                    file.delete_two_view_geometry(*key)
                    file.delete_matches(*key)
                    file.write_matches(*key, _one_to_one(both, known.inlier_matches))
            tell("guiding", done, len(pairs))


def _guided(known: Any, a: ImageFeatures, b: ImageFeatures, ratio: float | None) -> Any:
    """Guided matches (M, 2) uint32; None where there is no geometry to guide."""
    kinds = pycolmap_module().TwoViewGeometryConfiguration
    if len(known.inlier_matches) == 0:
        return None
    if known.config in (kinds.UNCALIBRATED, kinds.CALIBRATED) and known.F is not None:
        matrix, kind = known.F, "fundamental"
    elif known.H is not None and known.config in (
        kinds.PLANAR,
        kinds.PANORAMIC,
        kinds.PLANAR_OR_PANORAMIC,
    ):
        matrix, kind = known.H, "homography"
    else:
        return None
    i, j = known.inlier_matches.T
    apart = a.descriptors[i].astype(np.float64) - b.descriptors[j].astype(np.float64)
    usual = float(np.quantile(np.linalg.norm(apart, axis=1), 0.95))
    found = match_guided(
        a.descriptors,
        b.descriptors,
        to_colmap_pixels(a.keypoints[:, :2]),
        to_colmap_pixels(b.keypoints[:, :2]),
        matrix,
        kind,
        within=WITHIN,
        ratio=ratio,
        max_distance=usual,
    )
    return found.pairs.astype(np.uint32)


def _one_to_one(both: Any, known: Any) -> Any:
    """Pairs (M, 2) in which nothing occurs twice; those that were known come first."""
    was = {tuple(row) for row in known.tolist()}
    rows = sorted(both.tolist(), key=lambda row: tuple(row) not in was)
    left: set[int] = set()
    right: set[int] = set()
    kept = []
    for i, j in rows:
        if i not in left and j not in right:
            left.add(i)
            right.add(j)
            kept.append((i, j))
    return np.array(kept, np.uint32).reshape(-1, 2)

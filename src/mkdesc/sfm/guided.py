"""Matches of a database once more, guided by the geometry that was verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress
from mkdesc.datasets.colmap import pycolmap_module, to_colmap_pixels
from mkdesc.features.image_features import ImageFeatures
from mkdesc.matching.frame_matches import LocalFeatures
from mkdesc.matching.guided import rematch
from mkdesc.retrieval.agreement import local_features
from mkdesc.sfm.doubtful_pairs import WITHIN, geometry_of


def guide_pairs(
    base: Path,
    pairs: Sequence[tuple[str, str]],
    features: Callable[[str], ImageFeatures],
    ratio: float | None,
    progress: Progress,
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
        As for :func:`mkdesc.matching.guided.rematch`.
    progress
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
                    file.delete_two_view_geometry(*key)
                    file.delete_matches(*key)
                    file.write_matches(*key, found)
            progress("guiding", done, len(pairs))


def _guided(
    known: Any, a: ImageFeatures, b: ImageFeatures, ratio: float | None
) -> NDArray[np.uint32] | None:
    """Known matches, then guided ones (M, 2); None where there is no geometry to guide."""
    matrix, kind = geometry_of(known)
    if not len(known.inlier_matches) or matrix is None:
        return None
    one, other = _on_colmap(a), _on_colmap(b)
    found = rematch(
        one,
        other,
        known.inlier_matches.astype(np.int64),
        matrix,
        kind,
        within=WITHIN,
        ratio=ratio,
    )
    return np.concatenate([known.inlier_matches, found.pairs]).astype(np.uint32)


def _on_colmap(image: ImageFeatures) -> LocalFeatures:
    """Features where COLMAP has them."""
    found = local_features(image)
    found.frames[:, :, 2] = to_colmap_pixels(found.frames[:, :, 2])
    return found

"""Matching patches from a sparse COLMAP model and its photographs.

The observations of one 3-D point match. A model says where they are in the photographs but not
how large and how oriented, so SIFT keypoints are detected again and each observation takes the
nearest one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from mkdesc.datasets.colmap import Observations
from mkdesc.images.cutting import cut_patches
from mkdesc.images.frames import SIDE, points_from_keypoints
from mkdesc.images.keypoints import detect_keypoints
from mkdesc.images.reading import read_gray
from mkdesc.learn.learner import TrainingBlock

__all__ = ["colmap_blocks"]

#: How far, in pixels, the keypoint of an observation may be.
NEAR = 1.5


def colmap_blocks(
    observations: Mapping[str, Observations],
    images: str | Path,
    patch_size: int = 64,
    side: float = SIDE,
) -> Iterator[TrainingBlock]:
    """Patches around the observations of 3-D points, one photograph at a time.

    Parameters
    ----------
    observations
        What :func:`mkdesc.datasets.colmap.read_observations` returns.
    images
        Folder of the photographs.
    patch_size, side
        Side of the patches in pixels, and of their squares in units of sigma.
    """
    from scipy.spatial import KDTree

    used = 0
    for name, (xy, points) in observations.items():
        file = Path(images) / name
        if not file.is_file():
            warnings.warn(f"{file} is not there; left out", stacklevel=2)
            continue
        image = read_gray(file, as_stored=True)
        keypoints = points_from_keypoints(detect_keypoints(image))
        if len(keypoints) and len(xy):
            distance, nearest = map(np.asarray, KDTree(keypoints[:, :2]).query(xy))
            near = distance <= NEAR
            frames = keypoints[nearest[near]]
            used += len(frames)
            yield TrainingBlock(cut_patches(image, frames, patch_size, side), points[near])
    if not used:
        raise ValueError(
            f"{images}: no keypoint is near any observation; are these the photographs of the "
            "model, in their original size?"
        )

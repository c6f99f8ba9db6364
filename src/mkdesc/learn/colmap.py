"""Matching patches from a sparse COLMAP model and its photographs.

The observations of one 3-D point match. A model says where they are in the photographs but not
how large and how oriented, so SIFT keypoints are detected again and each observation takes the
nearest one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mkdesc.datasets.colmap import Observations
from mkdesc.images.cutting import cut_patches
from mkdesc.images.detectors.registry import make_detector
from mkdesc.images.frames import SIDE
from mkdesc.images.reading import read_gray
from mkdesc.learn.shards import TrainingBlock

#: How far, in pixels, the keypoint of an observation may be.
NEAR = 1.5


def colmap_blocks(
    observations: Mapping[str, Observations],
    images: str | Path,
    patch_size: int = 64,
    side: float = SIDE,
) -> Iterator[TrainingBlock]:
    """Patches around the observations of 3-D points, one photograph at a time.

    Photographs that are missing or cannot be read are skipped with a warning.

    Parameters
    ----------
    observations
        What :func:`mkdesc.datasets.read_observations` returns.
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
            warnings.warn(f"{file} does not exist; left out", stacklevel=2)
            continue
        try:
            image = read_gray(file, as_stored=True)
        except (ValueError, OSError) as error:
            warnings.warn(f"skipped: {error}", RuntimeWarning, stacklevel=2)
            continue
        keypoints = make_detector("sift").detect(image).strongest().points
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


@dataclass(frozen=True, eq=False)
class PointShard:
    """Some 3-D points: their observations, by photograph, and how patches are cut."""

    observations: Mapping[str, Observations]
    images: Path
    patch_size: int
    side: float

    @property
    def inputs(self) -> list[Path]:
        """The photographs."""
        return [self.images / name for name in self.observations]

    @property
    def size(self) -> int:
        """How many observations."""
        return sum(len(points) for _, points in self.observations.values())

    def blocks(self) -> Iterator[TrainingBlock]:
        """Photograph after photograph."""
        return colmap_blocks(self.observations, self.images, self.patch_size, self.side)


def point_shards(
    observations: Mapping[str, Observations],
    images: Path,
    patch_size: int,
    side: float,
    most: int,
) -> list[PointShard]:
    """The points of a model in parts of about ``most`` observations.

    Points are ordered by the first photograph that shows them, so that a part is seen by few.

    Parameters
    ----------
    observations, images, patch_size, side
        As for :func:`colmap_blocks`.
    most
        Observations of a part.
    """
    every = np.concatenate([np.asarray(points) for _, points in observations.values()])
    points, first, inverse, counts = np.unique(
        every, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first, kind="stable")
    part_of = np.empty(len(points), np.int64)
    part_of[order] = (np.cumsum(counts[order]) - 1) // most
    shards = []
    for part in range(int(part_of.max(initial=-1)) + 1):
        own, done = {}, 0
        for name, (xy, there) in observations.items():
            here = part_of[inverse[done : done + len(there)]] == part
            done += len(there)
            if here.any():
                own[name] = Observations(xy[here], there[here])
        shards.append(PointShard(own, images, patch_size, side))
    return shards

"""Matching patches from a sparse COLMAP model and its photographs.

The observations of one 3-D point match. A model says where they are in the photographs but not
how large and how oriented, so SIFT keypoints are detected again and each observation takes the
nearest one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.cutting import cut_patches
from mkdesc.images.frames import SIDE, points_from_keypoints
from mkdesc.images.keypoints import detect_keypoints
from mkdesc.images.reading import read_gray
from mkdesc.learn.learner import TrainingBlock

__all__ = ["colmap_blocks", "read_observations"]

#: COLMAP's coordinates have (0.5, 0.5) at the centre of the first pixel, OpenCV's (0, 0).
PIXEL_CENTRE = 0.5
#: How far, in pixels, the keypoint of an observation may be.
NEAR = 1.5


class Observations(dict[str, tuple[NDArray[np.float64], NDArray[np.int64]]]):
    """By image name: positions (n, 2) in OpenCV's pixels and 3-D points (n,)."""


def read_observations(model: str | Path) -> Observations:
    """Where the 3-D points of a model are seen; needs pycolmap.

    Parameters
    ----------
    model
        Folder of a sparse model, text or binary, or the folder in which it is called ``0``.
    """
    folder = Path(model)
    if (folder / "0").is_dir():  # where COLMAP and mkdesc sfm put the first, often the only one
        folder = folder / "0"
    kinds = {suffix for suffix in (".txt", ".bin") if (folder / f"points3D{suffix}").is_file()}
    if not kinds:
        raise ValueError(
            f"{folder}: no COLMAP model (points3D.txt or points3D.bin) in this folder"
        )
    try:
        import pycolmap
    except ImportError:
        raise ImportError(
            "reading COLMAP models needs pycolmap: pip install 'mkdesc[colmap]'"
        ) from None
    try:
        reconstruction = pycolmap.Reconstruction(str(folder))
    except Exception as error:  # pycolmap raises whatever its parsers do
        reason = " ".join(str(error).split())
        raise ValueError(f"{folder}: not a readable COLMAP model ({reason})") from None
    found = Observations()
    for image in sorted(reconstruction.images.values(), key=lambda image: str(image.name)):
        seen = [point for point in image.points2D if point.has_point3D()]
        xy = np.array([point.xy for point in seen], np.float64).reshape(-1, 2)
        points = np.array([point.point3D_id for point in seen], np.int64)
        found[image.name] = (xy - PIXEL_CENTRE, points)
    if not any(len(points) for _, points in found.values()):
        raise ValueError(f"{folder}: no image of this model sees any 3-D point")
    return found


def colmap_blocks(
    observations: Observations,
    images: str | Path,
    patch_size: int = 64,
    side: float = SIDE,
    done: Callable[[str], Any] | None = None,
) -> Iterator[TrainingBlock]:
    """Patches around the observations of 3-D points, one photograph at a time.

    Parameters
    ----------
    observations
        What :func:`read_observations` returns.
    images
        Folder of the photographs.
    patch_size, side
        Side of the patches in pixels, and of their squares in units of sigma.
    done
        Called with the name of each photograph.
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
        if done is not None:
            done(name)
    if not used:
        raise ValueError(
            f"{images}: no keypoint is near any observation; are these the photographs of the "
            "model, in their original size?"
        )

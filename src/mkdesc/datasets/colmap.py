"""COLMAP's sparse models, and where its pixels are; needs pycolmap.

COLMAP has (0.5, 0.5) at the centre of the first pixel; OpenCV, and all of this package, (0, 0).
"""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.optional import needed
from mkdesc._support.text import shorten
from mkdesc.datasets.colmap_sizes import check_sizes

if TYPE_CHECKING:
    import pycolmap


#: Where COLMAP has the centre of the first pixel.
_CENTRE = 0.5


@cache
def pycolmap_module() -> Any:
    """The pycolmap module, told once to be quiet, or an ImportError that says how to get it."""
    with suppress(ImportError):
        import cv2  # noqa: F401 (loaded after pycolmap, it crashes when it writes a PNG file)
    with needed("COLMAP needs pycolmap", "colmap"):
        import pycolmap
    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    _heed_sigterm()
    return pycolmap


def _heed_sigterm() -> None:
    """Give SIGTERM back to Python: COLMAP's own handler prints where every call was."""
    handler = signal.getsignal(signal.SIGTERM)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


@cache
def camera_parameters() -> dict[int, int]:
    """How many numbers a camera has, by COLMAP's numbers of the camera models."""
    pycolmap = pycolmap_module()
    models = {name: int(kind) for name, kind in pycolmap.CameraModelId.__members__.items()}
    return {
        number: len(pycolmap.Camera.create_from_model_name(1, name, 1.0, 1, 1).params)
        for name, number in models.items()
        if number >= 0
    }


def to_colmap_pixels(xy: ArrayLike) -> NDArray[np.float64]:
    """Positions (N, 2) in images as COLMAP has them.

    >>> to_colmap_pixels([[0, 0], [9.5, 2]]).tolist()
    [[0.5, 0.5], [10.0, 2.5]]
    """
    return np.asarray(xy, np.float64) + _CENTRE


def from_colmap_pixels(xy: ArrayLike) -> NDArray[np.float64]:
    """Positions (N, 2) in images as OpenCV and this package have them.

    >>> from_colmap_pixels([[0.5, 0.5], [10, 2.5]]).tolist()
    [[0.0, 0.0], [9.5, 2.0]]
    """
    return np.asarray(xy, np.float64) - _CENTRE


def read_model(model: str | Path) -> pycolmap.Reconstruction:
    """A sparse model as a ``pycolmap.Reconstruction``.

    Parameters
    ----------
    model
        Folder of the model, text or binary, or the folder in which it is called ``0``.
    """
    folder = Path(model)
    if (folder / "0").is_dir():  # where COLMAP and mkdesc sfm put the first, often the only one
        folder = folder / "0"
    if not any((folder / f"points3D{suffix}").is_file() for suffix in (".txt", ".bin")):
        raise ValueError(
            f"{folder}: no COLMAP model (points3D.txt or points3D.bin) in this folder"
        )
    pycolmap = pycolmap_module()
    check_sizes(folder, camera_parameters())
    try:
        return pycolmap.Reconstruction(str(folder))
    except MemoryError:
        raise
    except Exception as error:  # pycolmap raises whatever its parsers do
        reason = shorten(" ".join(str(error).split()), 300)
        raise ValueError(f"{folder}: not a readable COLMAP model ({reason})") from None


class Observations(NamedTuple):
    """Where an image sees 3-D points.

    Attributes
    ----------
    xy
        (N, 2) float64: positions, pixel centres at integers.
    points
        (N,) int64: COLMAP's numbers of the 3-D points.
    """

    xy: NDArray[np.float64]
    points: NDArray[np.int64]


def read_observations(model: str | Path) -> dict[str, Observations]:
    """Where the 3-D points of a model are seen, by name of the image, sorted.

    Parameters
    ----------
    model
        As for :func:`read_model`.
    """
    found = {}
    try:
        images = {str(image.name): image for image in read_model(model).images.values()}
    except UnicodeDecodeError:
        raise ValueError(f"{model}: names of images that are not UTF-8") from None
    for name, image in sorted(images.items()):
        seen = [point for point in image.points2D if point.has_point3D()]
        xy = np.array([point.xy for point in seen], np.float64).reshape(-1, 2)
        points = np.array([point.point3D_id for point in seen], np.int64)
        found[name] = Observations(from_colmap_pixels(xy), points)
    if not any(len(one.points) for one in found.values()):
        raise ValueError(f"{model}: no image of this model sees any 3-D point")
    return found

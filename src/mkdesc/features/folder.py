"""Features of many images, one file for each: parallel, and able to go on where it stopped."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path, read_text
from mkdesc._support.npy import BROKEN, read_archive, reason_of
from mkdesc._support.progress import Progress, nobody
from mkdesc._support.text import shorten
from mkdesc._support.work import Workers, in_order, share_memory
from mkdesc.features.features import DEFAULT_MODEL, Features, side_for
from mkdesc.images.detectors.registry import (
    DEFAULT_DETECTOR,
    Detector,
    make_detector,
    settings_of,
)
from mkdesc.images.reading import MAX_PIXELS, one_opencv_thread_each, opencv, read_gray
from mkdesc.models import bundled_models, load_model, read_card

__all__ = [
    "Extracted",
    "ImageFeatures",
    "Settings",
    "check_settings",
    "describe_image",
    "extract_features",
    "features_path",
    "load_features",
    "newer",
    "refuse_foreign",
    "remove_features",
]

#: Where a folder of features says how they were made.
SETTINGS = "features.json"


class ImageFeatures(NamedTuple):
    """What is kept of an image.

    Attributes
    ----------
    keypoints
        (N, 4) float32: x, y, sigma, angle; pixel centres at integers, degrees clockwise.
    scores
        (N,) float32: responses of the detector, falling.
    descriptors
        (N, D) float32, int8 or uint8.
    image_size
        (2,) int64: width and height of the image that keypoints lie on.
    """

    keypoints: NDArray[np.float32]
    scores: NDArray[np.float32]
    descriptors: NDArray[Any]
    image_size: NDArray[np.int64]


@dataclass(frozen=True)
class Settings:
    """All that features depend on, besides the image; as for :class:`mkdesc.Features`.

    ``sensitive`` asks for weak keypoints too, where the detector has settings for that: what a
    reconstruction wants. ``as_stored`` leaves photographs as their files store them, as COLMAP
    and hloc do; otherwise they are turned as their EXIF data say, as ``cv2.imread`` does.
    """

    detector: str = DEFAULT_DETECTOR
    max_keypoints: int | None = None
    model: str = DEFAULT_MODEL
    side: float | None = None
    upright: bool = False
    output: str = "float32"
    sensitive: bool = False
    as_stored: bool = False

    def make(self, n_threads: int | None = None, device: str | None = None) -> Features:
        """The features these settings describe."""
        return Features(
            self._detector(n_threads, device),
            self.max_keypoints,
            self.model,
            self.side,
            self.upright,
            self.output,
            n_threads,
            device,
        )

    def _detector(self, n_threads: int | None = None, device: str | None = None) -> Detector:
        return make_detector(
            self.detector,
            max_keypoints=self.max_keypoints,
            upright=self.upright,
            n_threads=n_threads,
            device=device,
            sensitive=self.sensitive,
        )

    def to_json(self) -> str:
        """As text, with what names stand for: the model, and how keypoints are found and cut."""
        detector = self._detector()
        side = self.side
        if side is None:
            side = side_for(detector, load_model(self.model))
        made_of = {
            "model": read_card(self.model).sha256,
            "side": side,
            "detector_settings": settings_of(detector),
        }
        return json.dumps({**asdict(self), **made_of}, indent=1)


def _shown(key: str, value: object) -> str:
    """A setting for reading: a model by its name, if it is a bundled one."""
    if key != "model":
        return shorten(str(value))
    known = {read_card(name).sha256: name for name in bundled_models()}
    return known.get(str(value)) or f"one of sha256 {shorten(str(value)[:12])}"


class Extracted(NamedTuple):
    """What became of a batch.

    Attributes
    ----------
    done, kept
        Names of the images that were described now, and earlier.
    bad
        Names of those that could not be, and why.
    """

    done: list[str]
    kept: list[str]
    bad: dict[str, str]


def check_settings(place: Path, found: str, expected: str) -> None:
    """Refuse to mix features that were made with different settings."""
    try:
        theirs, ours = json.loads(found), json.loads(expected)
        theirs = {"as_stored": True, **theirs}  # before it was a setting
        differing = [key for key in ours if theirs.get(key) != ours[key]]
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{place}: does not say how its features were made") from None
    if differing:
        had = ", ".join(
            f"{key} {_shown(key, theirs.get(key))} instead of {_shown(key, ours[key])}"
            for key in differing
        )
        raise ValueError(f"{place}: has features of other settings ({had}); choose another place")


def features_path(folder: Path, name: str) -> Path:
    """Where in a folder of features those of an image are."""
    return folder / f"{name}.npz"


def extract_features(
    images: Mapping[str, Path],
    folder: str | Path,
    settings: Settings | None = None,
    progress: Progress | None = None,
    max_pixels: int = MAX_PIXELS,
    workers: Workers = None,
    device: str | None = None,
) -> Extracted:
    """Describe images into a folder, one ``.npz`` for each; those that are there are kept.

    Photographs that were changed since then are described again.

    Parameters
    ----------
    images
        Names and files, as :func:`mkdesc.images.listing.find_images` gives them.
    folder
        Made if it is not there. Each of its files is whole, whenever one stops.
    settings
        How to detect and describe; a folder holds features of one kind only.
    progress
        Told of every image.
    max_pixels
        Larger images are refused.
    workers
        Images at a time (None: one per core), or who describes them: an executor or a Dask
        client, whose processes must see the same files.
    device
        As for :class:`mkdesc.Features`.

    Returns
    -------
    Extracted
        A bad image stops nothing; it is listed.
    """
    how = settings or Settings()
    target = Path(folder)
    described = how.to_json()
    how.make(device=device)  # refuses what is wrong before anything is written
    target.mkdir(parents=True, exist_ok=True)
    if (target / SETTINGS).exists():
        check_settings(target, read_text(target / SETTINGS), described)
    elif any(features_path(target, name).exists() for name in images):
        raise ValueError(
            f"{target}: has files of features, but no {SETTINGS}; choose another place"
        )
    else:
        with atomic_path(target / SETTINGS) as partial:
            partial.write_text(described, encoding="utf-8")
    kept = [name for name, file in images.items() if _is_whole(target, name, file)]
    there = set(kept)
    names = [name for name in images if name not in there]

    # Other processes may work in another folder; messages here name files as their user does.
    apart = not share_memory(workers)
    where = Path.absolute if apart else _as_it_is
    pieces = (
        _Piece(
            where(images[name]), where(features_path(target, name)), how, max_pixels, device, apart
        )
        for name in names
    )
    tell = progress or nobody
    tell("describing", len(kept), len(images))
    bad: dict[str, str] = {}
    with nullcontext() if apart or len(names) < 2 else one_opencv_thread_each():
        for index, reason in enumerate(in_order(_describe_file, pieces, workers, _lost)):
            if reason is not None:
                bad[names[index]] = reason
            tell("describing", len(kept) + index + 1, len(images))
    return Extracted([name for name in names if name not in bad], kept, bad)


@dataclass(frozen=True)
class _Piece:
    """A photograph to describe, and the file to write; in a process of its own or here."""

    source: Path
    target: Path
    settings: Settings
    max_pixels: int
    device: str | None
    apart: bool


def _as_it_is(path: Path) -> Path:
    return path


#: What each thread made last: features of these settings.
_local = threading.local()


def _describe_file(piece: _Piece) -> str | None:
    """Describe a photograph into a file; if that cannot be, why."""
    made_by = (piece.settings, piece.device)
    try:
        if getattr(_local, "made_by", None) != made_by:
            if piece.apart:  # there are as many such processes as cores
                opencv().setNumThreads(1)
            _local.features = piece.settings.make(n_threads=1, device=piece.device)
            _local.made_by = made_by
        image = read_gray(piece.source, piece.max_pixels, as_stored=piece.settings.as_stored)
        found = describe_image(_local.features, image)
    except (ValueError, OSError) as error:
        return str(error)
    _save(piece.target, found)
    return None


def _lost(piece: _Piece, reason: str) -> str:
    return f"{piece.source}: {reason}"


def describe_image(
    features: Features, image: NDArray[Any], mask: NDArray[np.uint8] | None = None
) -> ImageFeatures:
    """What is kept of an image.

    Parameters
    ----------
    features
        How to detect and describe.
    image, mask
        As for :meth:`mkdesc.Features.detect`.
    """
    found, descriptors = features.extract(image, mask)
    return ImageFeatures(
        found.points.astype(np.float32),
        found.scores,
        descriptors,
        np.array(image.shape[1::-1], np.int64),
    )


def _save(path: Path, found: ImageFeatures) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as partial, partial.open("wb") as file:
        np.savez(file, **found._asdict())


def load_features(folder: str | Path, name: str) -> ImageFeatures:
    """The features of an image out of a folder.

    Parameters
    ----------
    folder
        What :func:`extract_features` wrote.
    name
        Of the image.
    """
    path = features_path(Path(folder), name)
    try:
        found = ImageFeatures(*read_archive(path, ImageFeatures._fields))
        _check_arrays(found)
    except (FileNotFoundError, PermissionError):
        raise
    except BROKEN as error:
        raise ValueError(f"{path}: not a file of features ({reason_of(error, path)})") from None
    return found


def _check_arrays(found: ImageFeatures) -> None:
    """Refuse arrays that cannot be features."""
    count = len(found.keypoints) if found.keypoints.ndim else 0
    expected = {
        "keypoints": (found.keypoints, (count, 4), "f"),
        "scores": (found.scores, (count,), "f"),
        "descriptors": (found.descriptors, (count, *found.descriptors.shape[1:2]), "fiu"),
        "image_size": (found.image_size, (2,), "iu"),
    }
    for name, (array, shape, kinds) in expected.items():
        if array.shape != shape or array.dtype.kind not in kinds:
            raise ValueError(f"{name}: {array.dtype} {array.shape}")


def newer(image: Path, made: Path) -> bool:
    """Whether a photograph was changed after a file was made of it."""
    try:
        return image.stat().st_mtime_ns > made.stat().st_mtime_ns
    except OSError:  # whoever reads them will say so
        return False


def _is_whole(folder: Path, name: str, image: Path) -> bool:
    """Whether an image has features that can be read; damaged and old ones are made again."""
    if newer(image, features_path(folder, name)):
        return False
    try:
        load_features(folder, name)
    except FileNotFoundError:
        return False
    except ValueError as error:
        warnings.warn(f"{error}; it is made again", stacklevel=3)
        return False
    return True


def refuse_foreign(folder: Path, settings: str) -> None:
    """Refuse a folder that has files but does not say that they are features so made."""
    if (folder / SETTINGS).is_file():
        check_settings(folder, read_text(folder / SETTINGS), settings)
    elif folder.is_dir() and any(not file.name.startswith(".") for file in folder.iterdir()):
        raise ValueError(f"{folder}: expected no such folder, or one of features; it has others")


def remove_features(folder: Path, names: Iterable[str]) -> None:
    """Remove the features of images, and the folder if nothing else is in it.

    Parameters
    ----------
    folder
        What :func:`extract_features` wrote.
    names
        Of the images.
    """
    for name in names:
        path = features_path(folder, name)
        path.unlink(missing_ok=True)
        for parent in path.relative_to(folder).parents[:-1]:
            inner = folder / parent
            if inner.is_dir() and not any(inner.iterdir()):
                inner.rmdir()
    if {file.name for file in folder.iterdir()} <= {SETTINGS}:
        (folder / SETTINGS).unlink(missing_ok=True)
        folder.rmdir()

"""Features of many images, one file for each: parallel, and able to go on where it stopped."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path
from mkdesc._support.npy import BROKEN, read_archive, reason_of
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.threads import checked_threads
from mkdesc._support.version import __version__
from mkdesc._support.work import Workers, in_order, share_memory
from mkdesc._support.workfolder import WorkFolder, content_part, fingerprint, same_input
from mkdesc.features.choices import sides_for
from mkdesc.features.features import Features
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.registry import (
    DEFAULT_DETECTOR,
    Detector,
    make_detector,
    settings_of,
)
from mkdesc.images.reading import (
    MAX_PIXELS,
    has_opencv,
    one_opencv_thread_each,
    opencv,
    read_gray,
)
from mkdesc.models import DEFAULT_MODEL, bundled_models, load_model, read_card

if TYPE_CHECKING:
    import cv2
    import pandas as pd

    from mkdesc.features.features_torch import Features as DeviceFeatures

#: Where a folder of features says how they were made.
SETTINGS = "features.json"


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """Keypoints and descriptors of an image, as they are kept.

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
    source
        () str: fingerprint of the file that was described, if it was a file.
    """

    keypoints: NDArray[np.float32]
    scores: NDArray[np.float32]
    descriptors: NDArray[Any]
    image_size: NDArray[np.int64]
    source: NDArray[Any] = field(default_factory=lambda: np.array(""))

    def __len__(self) -> int:
        return len(self.keypoints)

    def __repr__(self) -> str:
        kind = f"{self.descriptors.shape[1]} x {self.descriptors.dtype}"
        return f"<ImageFeatures: {len(self):,} keypoints, {kind} each>"

    def to_opencv(self) -> list[cv2.KeyPoint]:
        """The keypoints as OpenCV has them."""
        return self._as_keypoints().to_opencv()

    def to_dataframe(self) -> pd.DataFrame:
        """A data frame of pandas: ``x``, ``y``, ``sigma``, ``angle``, ``score`` of keypoints."""
        return self._as_keypoints().to_dataframe()

    def _as_keypoints(self) -> Keypoints:
        return Keypoints(self.keypoints.astype(np.float64), self.scores)


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
    side: float | tuple[float, ...] | None = None
    upright: bool = False
    output: str = "float32"
    sensitive: bool = False
    as_stored: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.side, list):  # as JSON has it
            object.__setattr__(self, "side", tuple(self.side))

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

    def check_numbers(self, whose: str) -> None:
        """Refuse bits where something compares numbers."""
        if self.output == "bits":
            raise ValueError(
                f"output: {whose} compares numbers; expected float32, int8 or uint8, got bits"
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
            sides = sides_for(detector, load_model(self.model))
            side = sides if len(sides) > 1 else sides[0]
        made_of = {
            "mkdesc": __version__,
            "model": _identity(self.model),
            "side": side,
            "detector_settings": settings_of(detector),
        }
        return json.dumps({**asdict(self), **made_of}, indent=1)


def _identity(model: str) -> str:
    """The digest of a model; with the name, if it is a bundled one, by whatever file."""
    own = read_card(model).sha256
    known = {own: model} if model in bundled_models() else _bundled_digests()
    return f"{known[own]} ({own[:16]})" if own in known else f"sha256 {own}"


def _bundled_digests() -> dict[str, str]:
    return {read_card(name).sha256: name for name in bundled_models()}


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


def features_path(folder: Path, name: str) -> Path:
    """Where in a folder of features those of an image are."""
    return folder / f"{name}.npz"


def extract_features(
    images: Mapping[str, Path],
    folder: str | Path,
    *,
    settings: Settings | None = None,
    progress: Progress = no_progress,
    max_pixels: int = MAX_PIXELS,
    workers: Workers = None,
    device: str | None = None,
) -> Extracted:
    """Describe images into a folder, one ``.npz`` for each; those that are there are kept.

    Photographs that were changed since then are described again.

    Parameters
    ----------
    images
        Names and files, as :func:`mkdesc.images.find_images` gives them.
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
    features = how.make(device=device)  # refuses what is wrong before anything is written
    work_folder(target).open(json.loads(described))
    kept = [name for name, file in images.items() if _is_kept(target, name, file)]
    there = set(kept)
    names = [name for name in images if name not in there]

    # Other processes may work in another folder; messages here name files as their user does.
    elsewhere = not share_memory(workers)
    pieces = [(images[name], features_path(target, name)) for name in names]
    if elsewhere:
        pieces = [(file.absolute(), path.absolute()) for file, path in pieces]
    describe = partial(_describe_file, how, described, max_pixels, device, elsewhere)
    progress("describing", len(kept), len(images))
    bad: dict[str, str] = {}
    outcomes: Iterable[tuple[int, str | None]]
    module = None if elsewhere else features.on_device()
    if module is None:
        outcomes = enumerate(in_order(describe, pieces, workers, _lost))
    else:
        outcomes = _describe_on_device(module, how, max_pixels, pieces, workers)
    with nullcontext() if elsewhere or len(names) < 2 else one_opencv_thread_each():
        for done, (index, reason) in enumerate(outcomes, 1):
            if reason is not None:
                bad[names[index]] = reason
            progress("describing", len(kept) + done, len(images))
    return Extracted([name for name in names if name not in bad], kept, bad)


def work_folder(folder: Path) -> WorkFolder:
    """A folder of features."""
    return WorkFolder(str(folder), str(folder / SETTINGS))


#: What each thread made last: features of these settings.
_local = threading.local()


def _describe_file(
    settings: Settings,
    described: str,
    max_pixels: int,
    device: str | None,
    elsewhere: bool,
    piece: tuple[Path, Path],
) -> str | None:
    """Describe a photograph into a file; if that cannot be, why."""
    source, target = piece
    made_by = (described, device)  # which says which model the settings name
    try:
        if getattr(_local, "made_by", None) != made_by:
            if elsewhere and has_opencv():  # there are as many such processes as cores
                opencv().setNumThreads(1)
            _local.features = settings.make(n_threads=1, device=device)
            _local.made_by = made_by
        before = fingerprint(source)  # what is changed from here on is noticed by the next run
        image = read_gray(source, max_pixels, as_stored=settings.as_stored)
        found = describe_image(_local.features, image)
    except (ValueError, OSError) as error:
        return str(error)
    _save(target, replace(found, source=np.array(before)))
    return None


def _describe_on_device(
    module: DeviceFeatures,
    settings: Settings,
    max_pixels: int,
    pieces: Sequence[tuple[Path, Path]],
    workers: Workers,
) -> Iterable[tuple[int, str | None]]:
    """Describe photographs into files; of each its number, and if that cannot be, why."""
    from mkdesc.features.files_on_device import Photograph, describe_files

    def read(piece: tuple[Path, Path]) -> Photograph:
        before = fingerprint(piece[0])
        gray = read_gray(piece[0], max_pixels, as_stored=settings.as_stored)
        return Photograph(gray, before)

    def save(
        piece: tuple[Path, Path], photograph: Photograph, arrays: tuple[NDArray[Any], ...]
    ) -> None:
        size = np.array(photograph.gray.shape[::-1], np.int64)
        points, scores, descriptors = arrays
        source = np.array(photograph.source)
        _save(piece[1], ImageFeatures(points, scores, descriptors, size, source))

    threads = checked_threads(workers if isinstance(workers, int) else None, "workers")
    return describe_files(module, pieces, read, save, threads)


def _lost(piece: tuple[Path, Path], reason: str) -> str:
    return f"{piece[0]}: {reason}"


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
        np.savez(file, **vars(found))


def load_features(folder: str | Path, name: str) -> ImageFeatures:
    """The features of an image out of a folder.

    Parameters
    ----------
    folder
        What :func:`extract_features` wrote.
    name
        Of the image.
    """
    return load_file(features_path(Path(folder), name))


def load_file(path: Path) -> ImageFeatures:
    """The same by the file of the features."""
    try:
        names = tuple(one.name for one in fields(ImageFeatures))
        found = ImageFeatures(*read_archive(path, names))
        _check_arrays(found)
    except (FileNotFoundError, PermissionError):
        raise
    except BROKEN as error:
        raise ValueError(f"{path}: not a file of features ({reason_of(error, path)})") from None
    return found


def content_of(folder: Path, name: str) -> str:
    """A digest of the file that the features of an image were made of."""
    (source,) = read_archive(features_path(folder, name), ("source",))
    return content_part(str(source))


def _check_arrays(found: ImageFeatures) -> None:
    """Refuse arrays that cannot be features."""
    count = len(found.keypoints) if found.keypoints.ndim else 0
    expected = {
        "keypoints": (found.keypoints, (count, 4), "f"),
        "scores": (found.scores, (count,), "f"),
        "descriptors": (found.descriptors, (count, *found.descriptors.shape[1:2]), "fiu"),
        "image_size": (found.image_size, (2,), "iu"),
        "source": (found.source, (), "U"),
    }
    for name, (array, shape, kinds) in expected.items():
        if array.shape != shape or array.dtype.kind not in kinds:
            raise ValueError(f"{name}: {array.dtype} {array.shape}")
    str(found.source)  # refuses numbers that are no characters


def _is_kept(folder: Path, name: str, image: Path) -> bool:
    """Whether an image has features that are its own and can be read; others are removed."""
    path = features_path(folder, name)
    try:
        found = load_features(folder, name)
    except FileNotFoundError:
        return False
    except ValueError as error:
        warnings.warn(f"{error}; it will be made again", stacklevel=3)
        return False
    known = str(found.source)
    now = same_input(known, image)
    if now is None:
        path.unlink()
    elif now != known:
        _save(path, replace(found, source=np.array(now)))
    return now is not None


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

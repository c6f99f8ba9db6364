"""Features of many images, one file for each: parallel, and able to go on where it stopped."""

from __future__ import annotations

import errno
import json
import sys
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.threads import checked_threads
from mkdesc._support.work import Workers, in_order, share_memory
from mkdesc._support.workfolder import WorkFolder, fingerprint, same_input
from mkdesc.features.image_features import (
    ImageFeatures,
    check_own,
    describe_image,
    features_path,
    load_features,
    save_file,
)
from mkdesc.features.settings import Settings
from mkdesc.images.reading import MAX_PIXELS, one_opencv_thread_each, read_gray

if TYPE_CHECKING:
    from mkdesc.features.features_torch import Features as DeviceFeatures

#: Where a folder of features says how they were made.
SETTINGS = "features.json"


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
    bad = {
        name: f"{file}: its name is too long for a file of features"
        for name, file in images.items()
        if _is_too_long(features_path(target, name))
    }
    usable = {name: file for name, file in images.items() if name not in bad}
    kept = [name for name, file in usable.items() if _is_kept(target, name, file)]
    there = set(kept)
    names = [name for name in usable if name not in there]

    # Other processes may work in another folder; messages here name files as their user does.
    elsewhere = not share_memory(workers)
    pieces = [(images[name], features_path(target, name)) for name in names]
    if elsewhere:
        pieces = [(file.absolute(), path.absolute()) for file, path in pieces]
    describe = partial(_describe_file, how, described, max_pixels, device, elsewhere)
    progress("describing", len(kept), len(usable))
    lost: dict[str, str] = {}
    outcomes: Iterable[tuple[int, str | None]]
    module = None if elsewhere else features.on_device()
    if module is None:
        outcomes = enumerate(in_order(describe, pieces, workers, _lost))
    else:
        outcomes = _describe_on_device(module, how, max_pixels, pieces, workers)
    with nullcontext() if elsewhere or len(names) < 2 else one_opencv_thread_each():
        for done, (index, reason) in enumerate(outcomes, 1):
            if reason is not None:
                lost[names[index]] = reason
            progress("describing", len(kept) + done, len(usable))
    for name in lost:
        features_path(target, name).unlink(missing_ok=True)  # of what it was before
    return Extracted([name for name in names if name not in lost], kept, bad | lost)


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
            _local.features = settings.make(n_threads=1, device=device)
            if elsewhere and "cv2" in sys.modules:  # there are as many such processes as cores
                sys.modules["cv2"].setNumThreads(1)
            _local.made_by = made_by
        before = fingerprint(source)  # what is changed from here on is noticed by the next run
        image = read_gray(source, max_pixels, as_stored=settings.as_stored)
        found = describe_image(_local.features, image)
    except (ValueError, OSError) as error:
        return str(error)
    save_file(target, replace(found, source=np.array(before)))
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
        save_file(piece[1], ImageFeatures(points, scores, descriptors, size, source))

    threads = checked_threads(workers if isinstance(workers, int) else None, "workers")
    return describe_files(module, pieces, read, save, threads)


def _lost(piece: tuple[Path, Path], reason: str) -> str:
    return f"{piece[0]}: {reason}"


def _is_too_long(path: Path) -> bool:
    """Whether no file can be called so."""
    try:
        path.lstat()
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG
    return False


def _is_kept(folder: Path, name: str, image: Path) -> bool:
    """Whether an image has features that are its own and can be read."""
    path = features_path(folder, name)
    try:
        found = load_features(folder, name)
    except FileNotFoundError:
        return False
    except ValueError as error:
        check_own(path)
        warnings.warn(f"{error}; it will be made again", stacklevel=3)
        return False
    known = str(found.source)
    now = same_input(known, image)
    if now != known:
        check_own(path)
    if now not in (None, known):
        save_file(path, replace(found, source=np.array(now)))
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

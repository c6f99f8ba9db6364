"""Features of all photographs by all methods, kept in the cache of a run."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mkdesc._support.files import atomic_path
from mkdesc._support.npy import BROKEN, read_archive
from mkdesc._support.progress import Progress
from mkdesc._support.threads import one_thread_each
from mkdesc._support.work import Workers, in_order
from mkdesc._support.workfolder import cached_reader, state_of
from mkdesc.evaluation.contenders.base import file_name
from mkdesc.evaluation.photographs.base import Method, Photograph, PhotographFeatures
from mkdesc.evaluation.photographs.methods import get_method
from mkdesc.images.reading import one_opencv_thread_each, read_gray
from mkdesc.images.resampling import reduced


class FoundFeatures(NamedTuple):
    """Features of a photograph, and what they cost.

    Attributes
    ----------
    features
        What was found.
    seconds
        Of CPU, in one thread.
    shape
        Height and width of the image they were found in.
    scale
        Its pixels for each pixel of the file, along x and y.
    """

    features: PhotographFeatures
    seconds: float
    shape: tuple[int, int]
    scale: tuple[float, float]


class Extraction(NamedTuple):
    """What all features of a run depend on.

    Attributes
    ----------
    folder
        The cache.
    keypoints
        How many to find at most.
    max_size
        Pixels of the longer side that photographs are reduced to; None: they stay as they are.
    """

    folder: Path
    keypoints: int
    max_size: int | None

    def file(self, method: str, name: str) -> Path:
        """Where the features of a photograph are kept."""
        return self.folder / file_name(method) / f"{name}.npz"

    def load(self, method: str, name: str) -> FoundFeatures:
        """The features of a photograph that :func:`extract_all` has been through."""
        return _load(self.file(method, name))


@cached_reader(64)
def _load(file: Path) -> FoundFeatures:
    names = ("xy", "descriptors", "seconds", "shape", "scale")
    xy, descriptors, seconds, shape, scale = read_archive(file, names)
    (height, width), (x, y) = shape.tolist(), scale.tolist()
    features = PhotographFeatures(xy, descriptors)
    return FoundFeatures(features, float(seconds), (height, width), (x, y))


def read_photograph(path: Path, name: str, max_size: int | None) -> Photograph:
    """A photograph in gray, as its file stores it, reduced if it is larger than asked for."""
    gray = read_gray(path, as_stored=True)
    small = reduced(gray, max_size)
    scale = small.shape[1] / gray.shape[1], small.shape[0] / gray.shape[0]
    return Photograph(name, small, scale)


def extract_all(
    methods: Sequence[Method],
    photographs: dict[str, Path],
    settings: Extraction,
    workers: Workers,
    progress: Progress,
) -> None:
    """Fill the cache; what is there already stays.

    Parameters
    ----------
    methods
        All of them.
    photographs
        Files by name.
    settings
        Where features go, and what they depend on.
    workers
        Threads, an executor or a Dask client; on processes and clusters methods travel
        by their names.
    progress
        Told of every photograph.
    """
    pieces = [
        (method.name, name, path.absolute())
        for method in methods
        for name, path in photographs.items()
        if not _is_kept(settings.file(method.name, name))
    ]
    work = partial(_extract, settings)
    with _one_thread_for_each_piece():
        for done, name in enumerate(in_order(work, pieces, workers), 1):
            progress(f"features: {name}", done, len(pieces))


def _is_kept(file: Path) -> bool:
    if not file.is_file():
        return False
    try:
        _load(file)
    except BROKEN:
        return False
    return True


def _extract(settings: Extraction, piece: tuple[str, str, Path]) -> str:
    method, name, path = piece
    photograph = read_photograph(path, name, settings.max_size)
    extract = known_method(method).extract
    if method not in _used:  # compiling and loading do not count
        extract(photograph, settings.keypoints)
        _used.add(method)
    start = time.thread_time()
    found = extract(photograph, settings.keypoints)
    seconds = time.thread_time() - start
    file = settings.file(method, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(file) as partial_file, partial_file.open("wb") as out:
        shape, scale = np.array(photograph.gray.shape), np.array(photograph.scale)
        np.savez(out, **found._asdict(), seconds=seconds, shape=shape, scale=scale)
    return method


def known_method(name: str) -> Method:
    """A method by its name, made once in a process as long as nothing happens to its files."""
    files = (part for part in re.split("[+:]", name) if Path(part).is_file())
    return _made(name, tuple(state_of(file) for file in files))


@lru_cache(maxsize=32)
def _made(name: str, _files: tuple[str, ...]) -> Method:
    return get_method(name)


#: Methods that have been used in this process.
_used: set[str] = set()


@contextmanager
def _one_thread_for_each_piece() -> Iterator[None]:
    """OpenCV, PyTorch and matrix products keep to the thread that asks: its CPU time is all."""
    torch = sys.modules.get("torch")
    threads = 1 if torch is None else torch.get_num_threads()
    with one_opencv_thread_each(), one_thread_each():
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(threads)


def mean_cost(found: Iterable[FoundFeatures]) -> float:
    """CPU seconds per megapixel."""
    costs = [(one.seconds, one.shape[0] * one.shape[1] / 1e6) for one in found]
    return sum(cost for cost, _ in costs) / max(sum(size for _, size in costs), 1e-9)

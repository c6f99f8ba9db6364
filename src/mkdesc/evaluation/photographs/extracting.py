"""Features of all photographs by all methods, kept in the cache of a run."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from mkdesc._support.files import atomic_path
from mkdesc._support.npy import BROKEN, read_archive
from mkdesc._support.progress import Progress
from mkdesc._support.threads import one_thread_each
from mkdesc._support.work import Workers, in_order
from mkdesc._support.workfolder import cached_reader, state_of
from mkdesc.evaluation.contenders.base import file_name
from mkdesc.evaluation.photographs.base import (
    FoundFeatures,
    Method,
    Photograph,
    PhotographOptions,
)
from mkdesc.evaluation.photographs.methods import get_method
from mkdesc.images.reading import one_opencv_thread_each, read_gray
from mkdesc.images.resampling import reduced

T = TypeVar("T")


class PhotographFile(NamedTuple):
    """A photograph among the others: its name, with folders, and its file."""

    name: str
    path: Path


class Extraction(NamedTuple):
    """The cache of features, and what is asked of them."""

    folder: Path
    options: PhotographOptions

    def file(self, features: str, name: str) -> Path:
        """Where the features of a photograph are kept, given the name of the features."""
        return self.folder / file_name(features) / f"{name}.npz"

    def load(self, features: str, name: str) -> FoundFeatures:
        """The features of a photograph that :func:`extract_all` has been through."""
        return _load(self.file(features, name))


@cached_reader(64)
def _load(file: Path) -> FoundFeatures:
    keypoints, descriptors, seconds, shape, scale = read_archive(file, FoundFeatures._fields)
    (height, width), (x, y) = shape.tolist(), scale.tolist()
    return FoundFeatures(keypoints, descriptors, float(seconds), (height, width), (x, y))


def read_photograph(file: PhotographFile, max_size: int | None) -> Photograph:
    """A photograph in gray, as its file stores it, reduced if it is larger than asked for."""
    gray = read_gray(file.path, as_stored=True)
    small = reduced(gray, max_size)
    scale = small.shape[1] / gray.shape[1], small.shape[0] / gray.shape[0]
    return Photograph(file.name, small, scale)


def extract_all(
    methods: Iterable[Method],
    photographs: Iterable[PhotographFile],
    settings: Extraction,
    workers: Workers,
    progress: Progress,
) -> None:
    """Fill the cache; what is there already stays.

    Parameters
    ----------
    methods
        All of them; those that share features share what is kept.
    photographs
        All that are in a pair.
    settings
        Where features go, and what they depend on.
    workers
        Threads, an executor or a Dask client; on processes and clusters methods travel
        by their names.
    progress
        Told of every photograph.
    """
    pieces = [
        (features, photograph)
        for features in dict.fromkeys(method.features for method in methods)
        for photograph in photographs
        if not _is_kept(settings.file(features, photograph.name))
    ]
    work = partial(_extract, settings)
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


def _extract(settings: Extraction, piece: tuple[str, PhotographFile]) -> str:
    features, file = piece
    photograph = read_photograph(file, settings.options.max_size)
    extract = partial(known_method(features).extract, photograph, settings.options.keypoints)
    found, seconds = timed(f"features {features}", extract)
    target = settings.file(features, file.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(target) as partial_file, partial_file.open("wb") as out:
        shape, scale = photograph.gray.shape, photograph.scale
        np.savez(out, **found._asdict(), seconds=seconds, shape=shape, scale=scale)
    return features


def known_method(name: str) -> Method:
    """A method by its name, made once in a process as long as nothing happens to its files."""
    files = (part for part in re.split("[+:]", name) if Path(part).is_file())
    return _made(name, tuple(state_of(file) for file in files))


@lru_cache(maxsize=32)
def _made(name: str, _files: tuple[str, ...]) -> Method:
    return get_method(name)


#: What has been timed in this process.
_used: set[str] = set()


def timed(what: str, work: Callable[[], T]) -> tuple[T, float]:
    """What work gives, and its CPU seconds; it is done twice where it is done for the first time.

    Parameters
    ----------
    what
        Its name: of one name the first time does not count, since it compiles and loads.
    work
        Computes in the thread that calls it.
    """
    if what not in _used:
        work()
        _used.add(what)
    start = time.thread_time()
    return work(), time.thread_time() - start


@contextmanager
def one_thread_for_each_piece() -> Iterator[None]:
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

"""Descriptors and statistics on disk: computed once, mapped into memory when they are needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path
from mkdesc._support.npy import BROKEN, map_array, reason_of
from mkdesc._support.progress import Progress, no_progress
from mkdesc.evaluation.contenders.base import CsvDescriptor, PatchDescriptor, file_name
from mkdesc.evaluation.report.table import short_names
from mkdesc.heads.statistics import Statistics
from mkdesc.measures.descriptors import as_descriptors

Vectors = NDArray[np.float32]
Blocks = Callable[[], Iterator[NDArray[np.uint8]]]


class DescriptorCache:
    """Arrays (N, D) of descriptors by descriptor and part of the data, in a folder.

    Parameters
    ----------
    folder
        Where the files are or will be.
    progress
        Told of every block of patches that is described.

    Examples
    --------
    >>> import tempfile
    >>> cache = DescriptorCache(Path(tempfile.mkdtemp()))
    >>> mean = PatchDescriptor("mean", lambda patches: patches.mean(axis=(1, 2))[:, None])
    >>> cache.rows(mean, "dots", 2, lambda: iter([np.ones((2, 8, 8), np.uint8)])).tolist()
    [[1.0], [1.0]]
    """

    def __init__(self, folder: Path, progress: Progress = no_progress) -> None:
        self.folder = folder
        self._progress = progress

    def within(self, name: str) -> DescriptorCache:
        """A cache in a folder of this one's."""
        return DescriptorCache(self.folder / name, self._progress)

    def rows(self, descriptor: PatchDescriptor, part: str, count: int, blocks: Blocks) -> Vectors:
        """Descriptors of a part of the data, from the file if it is there.

        Parameters
        ----------
        descriptor
            What describes.
        part
            Name of the part: a subset, a sequence.
        count
            Number of its patches.
        blocks
            Call it to go through them, in order.
        """
        if descriptor.whole is not None:
            whole = self.rows(descriptor.whole, part, count, blocks)
            return whole[:, slice(*descriptor.columns)]

        def described() -> Iterator[Vectors]:
            done = 0
            for patches in _ahead(blocks()):
                name = f"{descriptor.name}: descriptors of {part} from {done}"
                yield as_descriptors(descriptor.describe(patches), len(patches), name)
                done += len(patches)

        return self.keep(descriptor, part, count, described)

    def keep(
        self,
        descriptor: PatchDescriptor | CsvDescriptor,
        part: str,
        count: int,
        blocks: Callable[[], Iterator[Vectors]],
    ) -> Vectors:
        """The same for descriptors that come as such, in blocks of rows."""
        file = self._file(descriptor, f"{part}.npy")
        rows = _mapped(file) if file.exists() else None
        if rows is None:
            what = f"{short_names([descriptor.name])[descriptor.name]}, {part}"
            self._write(file, what, count, blocks())
            rows = map_array(file)
        if len(rows) != count:
            raise ValueError(
                f"{file}: {len(rows)} descriptors, but there are {count} patches; the cache is of "
                "other data"
            )
        return rows

    def _write(self, file: Path, what: str, count: int, blocks: Iterator[Vectors]) -> None:
        done, dims = 0, -1
        with atomic_path(file) as partial, partial.open("wb") as out:
            for block in blocks:
                if dims < 0:
                    dims = block.shape[1]
                    header = {"descr": "<f4", "fortran_order": False, "shape": (count, dims)}
                    np.lib.format.write_array_header_1_0(out, header)
                if block.shape[1] != dims:
                    raise ValueError(f"{what}: expected {dims} columns, got {block.shape[1]}")
                out.write(block.tobytes())
                done += len(block)
                self._progress(what, done, count)
            if done != count:
                raise ValueError(f"{what}: expected {count} descriptors, got {done}")

    def statistics(
        self,
        descriptor: PatchDescriptor | CsvDescriptor,
        part: str,
        gather: Callable[[PatchDescriptor | CsvDescriptor], Statistics],
    ) -> Statistics:
        """Statistics of training data; those of a part of a descriptor are a part of its whole's.

        Parameters
        ----------
        descriptor, part
            Of what.
        gather
            Called with the descriptor if they are not known yet.
        """
        if isinstance(descriptor, PatchDescriptor) and descriptor.whole is not None:
            whole = self.statistics(descriptor.whole, part, gather)
            return whole.columns(*descriptor.columns)
        file = self._file(descriptor, f"{part}.statistics.safetensors")
        if file.exists():
            try:
                return Statistics.load(file)
            except ValueError as error:
                _say_again(error)
        statistics = gather(descriptor)
        statistics.save(file)
        return statistics

    def _file(self, descriptor: PatchDescriptor | CsvDescriptor, name: str) -> Path:
        folder = self.folder / file_name(descriptor.name)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name


def _mapped(file: Path) -> Vectors | None:
    """The descriptors in a file, which only we write and never change; None if it is damaged."""
    try:
        rows: Vectors = map_array(file)
        if rows.ndim != 2 or not rows.flags.c_contiguous or rows.dtype != np.float32:
            raise ValueError(f"{rows.dtype} {rows.shape}")
    except BROKEN as error:
        _say_again(ValueError(f"{file}: damaged ({reason_of(error, file)})"))
        return None
    return rows


def _say_again(error: ValueError) -> None:
    warnings.warn(f"{error}; it will be made again", stacklevel=4)


def _ahead(blocks: Iterator[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    """The blocks, each read from disk and decoded while the one before it is described."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            yield block

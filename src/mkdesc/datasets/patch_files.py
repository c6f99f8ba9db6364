"""Patches on disk, block by block: arrays (.npy, .npz), Phototourism sheets, HPatches strips."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.npy import BROKEN, ArrayHeader, read_array_header, reason_of
from mkdesc.datasets.phototourism.layout import PATCH_SIZE, count_patches, read_sheets
from mkdesc.images.reading import read_gray
from mkdesc.kernels.patches import as_patches

__all__ = ["PatchSource", "open_patches"]

#: Patches that are read at a time, at most, and their bytes.
BLOCK, BLOCK_BYTES = 4096, 64 * 2**20

Block = NDArray[Any]


def _block_length(size: int, dtype: np.dtype[Any]) -> int:
    return max(1, min(BLOCK, BLOCK_BYTES // (size * size * dtype.itemsize)))


@dataclass(frozen=True)
class PatchSource:
    """Patches that are read when they are asked for.

    Attributes
    ----------
    count, size, dtype
        How many patches there are, their side in pixels, and their type.
    blocks
        Call it to go through them as arrays (n, size, size), in order.
    """

    count: int
    size: int
    dtype: np.dtype[Any]
    blocks: Callable[[], Iterator[Block]]


def open_patches(path: str | Path) -> PatchSource:
    """Open patches without reading them: nothing but one block is ever in memory.

    Parameters
    ----------
    path
        ``.npy`` (N, W, W); ``.npz`` with an array ``patches`` or a single one; a folder of
        Phototourism sheets (``*.bmp``); or an HPatches strip (``.png``, patches one below
        the other).

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "patches.npy"
    >>> np.save(file, np.zeros((5, 32, 32), np.uint8))
    >>> source = open_patches(file)
    >>> source.count, source.size
    (5, 32)
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if path.is_dir():
        return _open_sheets(path)
    reader = {".npy": _open_npy, ".npz": _open_npz, ".png": _open_strip}.get(path.suffix.lower())
    if reader is None:
        raise ValueError(
            f"{path}: expected .npy, .npz, a folder of .bmp sheets or a .png strip of patches"
        )
    return reader(path)


def _from_array(array: NDArray[Any], path: Path) -> PatchSource:
    try:
        patches = as_patches(array)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None

    length = _block_length(patches.shape[-1], patches.dtype)

    def blocks() -> Iterator[Block]:
        for first in range(0, len(patches), length):
            yield patches[first : first + length]

    return PatchSource(len(patches), patches.shape[-1], patches.dtype, blocks)


def _open_npy(path: Path) -> PatchSource:
    try:
        with path.open("rb") as stream:
            header = read_array_header(stream)
            left = path.stat().st_size - stream.tell()
            if left < header.nbytes:
                raise ValueError(f"truncated, {left} bytes for an array of {header.nbytes}")
            if header.fortran:  # its patches are all over the file
                flat = np.frombuffer(stream.read(header.nbytes), header.dtype)
                return _from_array(flat.reshape(header.shape, order="F"), path)
        return _streamed(path, header, lambda: path.open("rb"))
    except BROKEN as error:
        raise ValueError(f"{path}: {reason_of(error, path)}") from None


def _open_npz(path: Path) -> PatchSource:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            if "patches.npy" in names:
                names = ["patches.npy"]
            if len(names) != 1:
                found = ", ".join(name.removesuffix(".npy") for name in names) or "nothing"
                raise ValueError(f"expected an array named 'patches', found {found}")
            with archive.open(names[0]) as stream:
                header = read_array_header(stream)
        if header.fortran:
            raise ValueError("the array is in Fortran order; save it with numpy.ascontiguousarray")
        return _streamed(path, header, lambda: _open_member(path, names[0]))
    except BROKEN as error:
        raise ValueError(f"{path}: {reason_of(error, path)}") from None


@contextmanager
def _open_member(path: Path, name: str) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path) as archive, archive.open(name) as stream:
        yield stream


def _streamed(
    path: Path, header: ArrayHeader, opened: Callable[[], AbstractContextManager[IO[bytes]]]
) -> PatchSource:
    """The patches of an array in C order that are read one block after another."""
    # A stand-in of the same shape and type that takes no memory, for the checks.
    native = header.dtype.newbyteorder("=")
    checked = as_patches(np.broadcast_to(np.zeros((), native), header.shape))
    count, size = checked.shape[:2]
    length = _block_length(size, header.dtype)
    bytes_each = size * size * header.dtype.itemsize

    def blocks() -> Iterator[Block]:
        with opened() as stream:
            read_array_header(stream)
            for first in range(0, count, length):
                n = min(length, count - first)
                try:
                    data = stream.read(n * bytes_each)
                except BROKEN as error:
                    raise ValueError(f"{path}: {reason_of(error, path)}") from None
                if len(data) < n * bytes_each:
                    raise ValueError(f"{path}: the array ends early, at patch {first}")
                yield np.frombuffer(data, header.dtype).reshape(n, size, size)

    return PatchSource(count, size, header.dtype, blocks)


def _open_sheets(path: Path) -> PatchSource:
    count = count_patches(path)
    return PatchSource(count, PATCH_SIZE, np.dtype(np.uint8), lambda: read_sheets(path, count))


def _open_strip(path: Path) -> PatchSource:
    strip = read_gray(path)
    height, width = strip.shape
    if height % width:
        raise ValueError(
            f"{path}: a strip's height must be a multiple of its width, got {height} x {width}"
        )
    return _from_array(strip.reshape(-1, width, width), path)

"""Patches on disk, row by row: arrays (.npy, .npz, .zarr, .parquet), sheets, HPatches strips."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import MOST_SQUARES
from mkdesc._support.locations import as_location, exists, is_address, open_location
from mkdesc._support.npy import BROKEN, ArrayHeader, read_array_header, reason_of
from mkdesc.datasets.patch_stores import Rows, parquet_rows, zarr_rows
from mkdesc.datasets.phototourism.layout import (
    PATCH_SIZE,
    PER_SIDE,
    count_patches,
    read_sheet,
    sheets,
)
from mkdesc.images.listing import check_no_pipe
from mkdesc.images.reading import read_gray
from mkdesc.kernels.patches import as_patches

#: Patches that are read at a time, at most, and their bytes.
BLOCK, BLOCK_BYTES = 4096, 64 * 2**20

Block = NDArray[Any]


@dataclass(frozen=True)
class PatchSource:
    """Patches that are read when they are asked for.

    Attributes
    ----------
    count, size, dtype
        How many rows there are, the side of a patch in pixels, and its type.
    read
        Called with the first row and the one after the last, gives an array (n, size, size), or
        (n, squares, size, size).
    stream
        Where rows can only be had one after the other without reading all before them again
        (compressed archives): called with a number of rows, gives arrays of so many, in order.
    squares
        Patches of a row: how many squares of a keypoint it shows.
    """

    count: int
    size: int
    dtype: np.dtype[Any]
    read: Rows
    stream: Callable[[int], Iterator[Block]] | None = None
    squares: int = 1

    def blocks(self, length: int | None = None) -> Iterator[Block]:
        """Go through the patches in arrays, as ``read`` gives them, in order.

        Parameters
        ----------
        length
            Rows at a time; None: what takes some 64 MB.
        """
        if length is None:
            row = self.squares * self.size * self.size * self.dtype.itemsize
            most = BLOCK_BYTES // row
            length = max(1, min(BLOCK, most))
        if self.stream is not None:
            yield from self.stream(length)
            return
        for first in range(0, self.count, length):
            yield self.read(first, min(first + length, self.count))


def open_patches(path: str | Path) -> PatchSource:
    """Open patches without reading them: nothing but one block is ever in memory.

    Parameters
    ----------
    path
        ``.npy`` (N, W, W), or (N, k, W, W) of k squares of each keypoint; ``.npz`` with an array
        ``patches`` or a single one; ``.zarr``, an array; ``.parquet``, a file or folder with a
        column ``patch``; a folder of Phototourism sheets (``*.bmp``); or an HPatches strip
        (``.png``, patches one below the other). ``.npy``, ``.zarr`` and ``.parquet`` may be
        addresses that fsspec knows.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "patches.npy"
    >>> np.save(file, np.zeros((5, 32, 32), np.uint8))
    >>> source = open_patches(file)
    >>> source.count, source.size
    (5, 32)
    """
    location = as_location(path)
    if not exists(location):
        raise FileNotFoundError(f"{path} does not exist")
    if not is_address(location):
        check_no_pipe(Path(location), "a file or a folder of patches")
    suffix = Path(location).suffix.lower()
    if suffix in _ANYWHERE:
        return _refusing(_ANYWHERE[suffix], location, str(path))
    if is_address(location):
        raise ValueError(f"{path}: expected .npy, .zarr or .parquet at an address")
    file = Path(path)
    if file.is_dir():
        return _open_sheets(file)
    if suffix == ".png":
        return _open_strip(file)
    if suffix == ".npz":
        return _refusing(_open_npz, location, str(path))
    raise ValueError(
        f"{path}: expected .npy, .npz, a folder of .bmp sheets, a .png strip of patches, .zarr "
        "or .parquet"
    )


def _refusing(open_: Callable[[str, str], PatchSource], location: str, name: str) -> PatchSource:
    """Open a file; what is broken is said in one line that names it."""
    try:
        return open_(location, name)
    except BROKEN as error:
        raise ValueError(f"{name}: {reason_of(error, name)}") from None


class _Shape(NamedTuple):
    """Of an array of patches: rows, patches of a row, and their side in pixels."""

    rows: int
    squares: int
    size: int

    @property
    def each(self) -> tuple[int, ...]:
        """The shape of one row."""
        return (self.squares, self.size, self.size)[self.squares == 1 :]


def _shape_of(header: ArrayHeader) -> _Shape:
    """The shape of an array of patches; ValueError for anything else."""
    # A stand-in of the same shape and type that takes no memory, for the checks.
    native = header.dtype.newbyteorder("=")
    checked = _as_rows(np.broadcast_to(np.zeros((), native), header.shape))
    squares = checked.shape[1] if checked.ndim == 4 else 1
    return _Shape(len(checked), squares, checked.shape[-1])


def _as_rows(array: NDArray[Any]) -> NDArray[Any]:
    """Patches (N, W, W), or stacks of them (N, k, W, W), checked."""
    stacks = array.ndim == 4 and 2 <= array.shape[1] <= MOST_SQUARES
    return as_patches(array, array.shape[1] if stacks else 1)


@dataclass(frozen=True)
class _Stream:
    """Rows of an array that follow each other in a file, behind its header."""

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    shape: _Shape
    dtype: np.dtype[Any]

    def read(self, first: int, last: int) -> Block:
        """Rows ``first`` to ``last - 1``."""
        with self.open() as stream:
            read_array_header(stream)
            stream.seek(first * self._row, 1)
            return self._rows(stream, first, last)

    def blocks(self, length: int) -> Iterator[Block]:
        """All rows, without going back."""
        with self.open() as stream:
            read_array_header(stream)
            count = self.shape.rows
            for first in range(0, count, length):
                yield self._rows(stream, first, min(first + length, count))

    @property
    def _row(self) -> int:
        return math.prod(self.shape.each) * self.dtype.itemsize

    def _rows(self, stream: IO[bytes], first: int, last: int) -> Block:
        try:
            data = stream.read((last - first) * self._row)
        except BROKEN as error:
            raise ValueError(f"{self.name}: {reason_of(error, self.name)}") from None
        if len(data) < (last - first) * self._row:
            raise ValueError(f"{self.name}: ends early, at patch {first + len(data) // self._row}")
        return np.frombuffer(data, self.dtype).reshape(-1, *self.shape.each)


def _open_npy(location: str, name: str) -> PatchSource:
    with open_location(location) as stream:
        header = read_array_header(stream)
        shape = _shape_of(header)
        begin = stream.tell()
        left = stream.seek(0, 2) - begin
        if left < header.nbytes:
            raise ValueError(f"truncated, {left} bytes for an array of {header.nbytes}")
        if header.fortran:  # its patches are all over the file
            stream.seek(begin)
            flat = np.frombuffer(stream.read(header.nbytes), header.dtype)
            return _of_array(flat.reshape(header.shape, order="F"))
    rows = _Stream(name, lambda: open_location(location), shape, header.dtype)
    return PatchSource(shape.rows, shape.size, header.dtype, rows.read, None, shape.squares)


def _of_array(array: NDArray[Any]) -> PatchSource:
    patches = _as_rows(array)
    return PatchSource(
        len(patches),
        patches.shape[-1],
        patches.dtype,
        lambda first, last: patches[first:last],
        squares=patches.shape[1] if patches.ndim == 4 else 1,
    )


def _open_npz(location: str, name: str) -> PatchSource:
    with zipfile.ZipFile(location) as archive:
        names = [inner for inner in archive.namelist() if inner.endswith(".npy")]
        if "patches.npy" in names:
            names = ["patches.npy"]
        if len(names) != 1:
            found = ", ".join(inner.removesuffix(".npy") for inner in names) or "nothing"
            raise ValueError(f"expected an array named 'patches', found {found}")
        with archive.open(names[0]) as stream:
            header = read_array_header(stream)
    if header.fortran:
        raise ValueError("the array is in Fortran order; save it with numpy.ascontiguousarray")
    shape = _shape_of(header)

    @contextmanager
    def array() -> Iterator[IO[bytes]]:
        with zipfile.ZipFile(location) as archive, archive.open(names[0]) as stream:
            yield stream

    rows = _Stream(name, array, shape, header.dtype)
    return PatchSource(shape.rows, shape.size, header.dtype, rows.read, rows.blocks, shape.squares)


def _open_zarr(location: str, name: str) -> PatchSource:
    return _of_rows(name, *zarr_rows(location))


def _open_parquet(location: str, name: str) -> PatchSource:
    return _of_rows(name, *parquet_rows(location))


def _of_rows(name: str, found: tuple[int, ...], dtype: np.dtype[Any], read: Rows) -> PatchSource:
    shape = _shape_of(ArrayHeader(found, False, dtype))

    def rows(first: int, last: int) -> Block:
        try:
            return read(first, last).reshape(last - first, *shape.each)
        except BROKEN as error:
            raise ValueError(f"{name}: {reason_of(error, name)}") from None

    return PatchSource(shape.rows, shape.size, dtype, rows, None, shape.squares)


_ANYWHERE = {".npy": _open_npy, ".zarr": _open_zarr, ".parquet": _open_parquet}


def _open_sheets(path: Path) -> PatchSource:
    count = count_patches(path)
    files = sheets(path)
    each = PER_SIDE**2

    def read(first: int, last: int) -> Block:
        some = range(first // each, -(-last // each))
        patches = np.concatenate([read_sheet(files[number]) for number in some])
        return patches[first - some.start * each : last - some.start * each]

    return PatchSource(count, PATCH_SIZE, np.dtype(np.uint8), read)


def _open_strip(path: Path) -> PatchSource:
    strip = read_gray(path)
    height, width = strip.shape
    if height % width:
        raise ValueError(
            f"{path}: a strip's height must be a multiple of its width, got {height} x {width}"
        )
    try:
        return _of_array(strip.reshape(-1, width, width))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None

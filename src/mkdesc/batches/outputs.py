"""Files of descriptors that are written in parts: ``.npy``, ``.zarr``, ``.parquet``.

Each part is whole or not there, and a manifest says what the parts are of: a run that is started
again writes those that are missing.
"""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path, saying_what_failed
from mkdesc._support.locations import (
    exists,
    inside,
    is_address,
    names_in,
    read_location,
)
from mkdesc._support.npy import BROKEN, array_of
from mkdesc._support.optional import needed
from mkdesc._support.workfolder import WorkFolder

Vectors = NDArray[Any]

#: Bytes before the numbers of a ``.npy`` file of ours. The format allows any multiple of 64; numpy
#: takes 128 for a table. So a file is known by its header: by its numbers it cannot be.
_HEADER = 256
#: How such a file begins.
OWN_NPY = (
    rb"\A\x93NUMPY\x01\x00\xf6\x00"
    rb"\{'descr': '[<|][fiu]\d', 'fortran_order': False, 'shape': \(\d+, \d+\), \} +\n"
)


@dataclass(frozen=True)
class Output(ABC):
    """A file of descriptors (count, width).

    Attributes
    ----------
    location
        Path or address.
    count, width
        Its shape.
    rows
        Rows of a part; the last one may have fewer.
    dtype
        Type of the numbers.
    """

    location: str
    count: int
    width: int
    rows: int
    dtype: str = "float32"

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.count // self.rows)

    def bounds(self, part: int) -> tuple[int, int]:
        """First row of a part, and the one after its last."""
        return part * self.rows, min((part + 1) * self.rows, self.count)

    @property
    def work(self) -> WorkFolder:
        """The parts, and beside them, where no reader trips over it, what they are made of."""
        return WorkFolder(self.location, f"{self.location}.mkdesc.json")

    @staticmethod
    @abstractmethod
    def load() -> None:
        """Import what writing needs: said before the work if it is not there."""

    @abstractmethod
    def begin(self) -> None:
        """Make what parts are written into, if it is not there."""

    @abstractmethod
    def written(self) -> set[int]:
        """The parts that are there."""

    @abstractmethod
    def write(self, part: int, rows: Vectors) -> None:
        """Write a part (n, width); done by workers."""

    @abstractmethod
    def finish(self) -> None:
        """Make the whole of the parts."""

    def discard(self) -> None:
        """Remove what was begun, if nothing came of it."""
        self.work.discard()


class Npy(Output):
    """One ``.npy``; parts wait in a folder beside it until all are there."""

    @property
    def work(self) -> WorkFolder:
        """``<location>.parts``, which goes when all is done."""
        return WorkFolder(f"{self.location}.parts", f"{self.location}.parts/mkdesc.json")

    @staticmethod
    def load() -> None:
        """Needs no other package."""

    def begin(self) -> None:
        """Nothing to make."""

    def written(self) -> set[int]:
        """Parts by their files."""
        return self.work.done(".npy")

    def write(self, part: int, rows: Vectors) -> None:
        """Write ``part-000000.npy``."""
        buffer = io.BytesIO()
        np.save(buffer, rows)
        self.work.write(part, ".npy", buffer.getbuffer())

    def finish(self) -> None:
        """Join the parts, and remove them."""
        if is_address(self.location):
            raise ValueError(f"{self.location}: expected .zarr or .parquet at an address")
        with atomic_path(self.location) as partial, partial.open("wb") as file:
            file.write(self._header())
            for part in range(self.parts):
                file.write(self._rows(part).tobytes())
        self.discard()

    def _header(self) -> bytes:
        """What the file begins with, padded as none of numpy's is."""
        descr, shape = np.dtype(self.dtype).newbyteorder("<").str, (self.count, self.width)
        text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
        magic = np.lib.format.magic(1, 0)
        length = _HEADER - len(magic) - 2
        return magic + length.to_bytes(2, "little") + text.ljust(length - 1) + b"\n"

    def _rows(self, part: int) -> Vectors:
        """What :meth:`write` wrote."""
        first, last = self.bounds(part)
        location = self.work.part(part, ".npy")
        try:
            rows = array_of(read_location(location) or b"")
        except BROKEN:
            rows = np.empty(0)
        if rows.shape != (last - first, self.width) or rows.dtype != self.dtype:
            raise ValueError(f"{location}: damaged; remove it")
        return rows


class Parquet(Output):
    """A folder of Parquet files with columns ``row`` and ``descriptor`` (a list of numbers)."""

    @staticmethod
    def load() -> None:
        """Needs pyarrow."""
        _pyarrow()

    def begin(self) -> None:
        """Nothing to make."""

    def written(self) -> set[int]:
        """Parts by their files."""
        return self.work.done(".parquet")

    def write(self, part: int, rows: Vectors) -> None:
        """Write ``part-000000.parquet``."""
        pa, parquet = _pyarrow()
        first, last = self.bounds(part)
        values = pa.array(np.ascontiguousarray(rows).reshape(-1))
        table = pa.table(
            {
                "row": pa.array(np.arange(first, last)),
                "descriptor": pa.FixedSizeListArray.from_arrays(values, self.width),
            }
        )
        buffer = pa.BufferOutputStream()
        parquet.write_table(table, buffer, compression="none", use_dictionary=False)
        self.work.write(part, ".parquet", memoryview(buffer.getvalue()))

    def finish(self) -> None:
        """The parts are the whole."""


#: How zarr calls files in a group of ours until they are whole.
_LEFT = re.compile(r"(zarr|descriptors/(zarr|c/\d+/0))\.[0-9a-f]{32}\.partial")


class Zarr(Output):
    """A Zarr group, as xarray expects it, with one array; a chunk for each part."""

    #: Its name in the group.
    ARRAY = "descriptors"

    @staticmethod
    def load() -> None:
        """Needs zarr."""
        _zarr()

    def begin(self) -> None:
        """Make the array, without data."""
        zarr = _zarr()
        if exists(inside(self.location, f"{self.ARRAY}/zarr.json")):
            return
        with saying_what_failed(self.location, OSError):
            zarr.open_group(self.location, mode="a").create_array(
                self.ARRAY,
                overwrite=True,
                shape=(self.count, self.width),
                chunks=(max(1, min(self.rows, self.count)), self.width),
                dtype=self.dtype,
                compressors=None,
                dimension_names=("patch", "dimension"),
                config={"write_empty_chunks": True},  # a chunk that is there has been described
            )

    def written(self) -> set[int]:
        """Parts by their chunks."""
        chunks = inside(self.location, f"{self.ARRAY}/c")
        return {
            int(name)
            for name in names_in(chunks)
            if name.isdecimal() and exists(inside(chunks, f"{name}/0"))
        }

    def write(self, part: int, rows: Vectors) -> None:
        """Write a chunk."""
        array = _zarr().open_array(self.location, path=self.ARRAY, mode="r+")
        array = array.with_config({"write_empty_chunks": True})
        first, last = self.bounds(part)
        with saying_what_failed(self.location, OSError):  # which has a number alone
            array[first:last] = rows

    def discard(self) -> None:
        """Remove the group, but for what others added to it."""
        self.work.discard((self.ARRAY, "zarr.json"))

    def finish(self) -> None:
        """Remove what killed workers have left of zarr's files, and nothing else."""
        if not is_address(self.location):
            for file in Path(self.location).rglob("*.partial"):
                name = file.relative_to(self.location).as_posix()
                if _LEFT.fullmatch(name) and file.is_file():
                    file.unlink()


#: Kinds of output by the ending of their name.
FORMATS: dict[str, type[Output]] = {".npy": Npy, ".zarr": Zarr, ".parquet": Parquet}


def _pyarrow() -> tuple[Any, Any]:
    with needed("Parquet needs pyarrow", "cluster"):
        import pyarrow as pa
        import pyarrow.parquet
    return pa, pa.parquet


def _zarr() -> Any:
    with needed("Zarr arrays need zarr", "cluster"):
        import zarr
    return zarr

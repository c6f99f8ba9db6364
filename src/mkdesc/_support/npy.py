"""Numpy's files as they may come from anybody: what they claim is checked before it is believed.

Nothing is unpickled, and nothing is mapped: a mapped file that somebody shortens ends the process.
"""

from __future__ import annotations

import math
import os
import tokenize
import warnings
import zipfile
import zlib
from io import BytesIO
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BROKEN", "ArrayHeader", "read_archive", "read_array_header", "reason_of"]

#: What numpy, zipfile and zlib raise for files that are broken in one way or another.
BROKEN = (
    ValueError, TypeError, KeyError, EOFError, OSError, OverflowError, RuntimeError,
    AttributeError, SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


#: Bytes of a header, at most.
MOST_HEADER = 10_000


class ArrayHeader(NamedTuple):
    """What a file says of its array: shape, whether in Fortran's order, and type."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_array_header(stream: IO[bytes]) -> ArrayHeader:
    """The header of an array, from the beginning of a .npy file; one of :data:`BROKEN` if bad.

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> np.save(file, np.zeros((2, 3), "<u2"))
    >>> _ = file.seek(0)
    >>> read_array_header(file).shape
    (2, 3)
    """
    version = np.lib.format.read_magic(stream)
    length = stream.read(2 if version == (1, 0) else 4)
    if int.from_bytes(length, "little") > MOST_HEADER:  # numpy makes room before it reads
        raise ValueError("a header of more than a few lines")
    text = BytesIO(length + stream.read(int.from_bytes(length, "little")))
    read = np.lib.format.read_array_header_1_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # headers of Python 2 are as good as others
        header = ArrayHeader(
            *(read if version == (1, 0) else np.lib.format.read_array_header_2_0)(text)
        )
    if header.dtype.hasobject:
        raise ValueError("not a plain numpy array (pickled objects are never loaded)")
    if any(isinstance(side, bool) or side < 0 for side in header.shape):
        raise ValueError(f"an array of the shape {header.shape}")
    return header


def read_archive(path: str | os.PathLike[str], names: tuple[str, ...]) -> list[NDArray[Any]]:
    """Arrays of a .npz file by their names; one of :data:`BROKEN` if it is damaged.

    Parameters
    ----------
    path
        Of the file.
    names
        Of the arrays, all of which must be there.
    """
    arrays = []
    with zipfile.ZipFile(path) as archive:
        for name in names:
            member = archive.getinfo(f"{name}.npy")
            with archive.open(member) as stream:
                header = read_array_header(stream)
                left = member.file_size - stream.tell()
                if header.nbytes != left:
                    raise ValueError(f"{name}: {left} bytes for an array of {header.nbytes}")
                data = stream.read()  # to the end: the checksum is looked at there
            flat = np.frombuffer(data, header.dtype)
            array = flat.reshape(header.shape, order="F" if header.fortran else "C")
            arrays.append(array.copy(order="K"))  # one that can be written to
    return arrays


def reason_of(error: Exception, path: str | os.PathLike[str]) -> str:
    """What is wrong with a file, in one line and without its path."""
    text = str(error).removeprefix(f"{os.fspath(path)}: ")
    return " ".join(text.split())[:200] or "not a numpy array"

"""Numpy's files as they may come from anybody: what they claim is checked before it is believed.

Nothing is unpickled, and files of others are not mapped: a mapped file that somebody shortens ends
the process.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import tokenize
import warnings
import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: What numpy, zipfile and zlib raise for files that are broken in one way or another.
BROKEN = (
    ValueError, TypeError, KeyError, EOFError, OSError, OverflowError, RuntimeError,
    AttributeError, SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


#: Bytes of a header, at most.
MOST_HEADER = 10_000

#: Headers are literals of Python, and before 3.11.8 and 3.12.2 (gh-106905) two threads that parse
#: some disturb each other now and then.
_PARSING = threading.RLock()


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
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # headers of Python 2 are as good as others
        header = ArrayHeader(
            *(read if version == (1, 0) else np.lib.format.read_array_header_2_0)(text)
        )
    if header.dtype.hasobject:
        raise ValueError("not a plain numpy array (pickles are never loaded)")
    if any(isinstance(length, bool) or length < 0 for length in header.shape):
        raise ValueError(f"an array of the shape {header.shape}")
    return header


def array_of(content: bytes) -> NDArray[Any]:
    """The array in the bytes of a .npy file, which cannot be written to; one of :data:`BROKEN`.

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> np.save(file, np.arange(3))
    >>> array_of(file.getvalue()).tolist()
    [0, 1, 2]
    """
    stream = BytesIO(content)
    header = read_array_header(stream)
    _check_length(header, len(content) - stream.tell())
    return _shaped(np.frombuffer(content, header.dtype, offset=stream.tell()), header)


def map_array(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of a .npy file, mapped and not read; one of :data:`BROKEN` if it is damaged.

    For files of our own: whoever shortens one that is mapped ends the process.
    """
    with Path(path).open("rb") as file:
        header = read_array_header(file)
        begin = file.tell()
        _check_length(header, file.seek(0, 2) - begin)
    order: Literal["F", "C"] = "F" if header.fortran else "C"
    return np.memmap(path, header.dtype, "r", begin, header.shape, order)


def _check_length(header: ArrayHeader, left: int) -> None:
    if header.nbytes != left:
        raise ValueError(f"{left} bytes for an array of {header.nbytes}")


def _shaped(flat: NDArray[Any], header: ArrayHeader) -> NDArray[Any]:
    if flat.dtype.kind == "U" and flat.dtype.itemsize:
        codes = flat.view(flat.dtype.byteorder.replace("|", "=") + "u4")
        if codes.max(initial=0) > sys.maxunicode:  # Python cannot make a text of it
            raise ValueError("text with characters that there are not")
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


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
                _check_length(header, member.file_size - stream.tell())
                data = stream.read()  # to the end: the checksum is looked at there
            array = _shaped(np.frombuffer(data, header.dtype), header)
            arrays.append(array.copy(order="K"))  # one that can be written to
    return arrays


def names_in_archive(path: str | os.PathLike[str]) -> set[str] | None:
    """Names of the arrays in a .npz file; None if it is no such file, or a damaged one.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.npz"
    >>> np.savez(file, ones=np.ones(3))
    >>> names_in_archive(file)
    {'ones'}
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except BROKEN:
        return None


def reason_of(error: Exception, path: str | os.PathLike[str]) -> str:
    """What is wrong with a file, in one line and without its path."""
    text = str(error).removeprefix(f"{os.fspath(path)}: ")
    return " ".join(text.split())[:200] or "not a numpy array"

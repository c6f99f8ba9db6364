"""Descriptors of HPatches in the official layout: ``<name>/<sequence>/<image>.csv``.

N rows of D numbers, without a header, separated by "," or ";".
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.files import atomic_path
from mkdesc._support.targets import lines_of, make_folder

#: Rows of numbers.
_ROWS = lines_of(rb"[-+.0-9a-z]+(,[-+.0-9a-z]+)*")


def read_csv(folder: str | Path, sequence: str, image: str) -> NDArray[np.float32]:
    """Descriptors (N, D) of one image.

    Parameters
    ----------
    folder
        Holds a folder for each sequence.
    sequence, image
        Such as ``"v_graffiti"`` and ``"e1"``.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_csv(folder, "v_wall", "ref", np.eye(2))
    >>> read_csv(folder, "v_wall", "ref").tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    file = Path(folder) / sequence / f"{image}.csv"
    if not file.is_file():
        raise ValueError(f"{file}: no such file")
    with file.open(encoding="utf-8", errors="replace") as lines:
        delimiter = ";" if ";" in lines.readline() else ","
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty file is only a warning to numpy
            values = np.loadtxt(file, np.float32, comments=None, delimiter=delimiter, ndmin=2)
    except (ValueError, Warning) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{file}: expected rows of numbers ({reason})") from None
    return values


def is_written(folder: str | Path, sequence: str, image: str, count: int) -> bool:
    """Whether the descriptors of one image, so many rows, are there; ValueError if others are.

    Parameters
    ----------
    folder, sequence, image
        As for :func:`read_csv`.
    count
        Of the rows.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> is_written(folder, "v_wall", "ref", 2)
    False
    >>> write_csv(folder, "v_wall", "ref", np.full((2, 1127), 0.5))
    >>> is_written(folder, "v_wall", "ref", 2)
    True
    """
    file = Path(folder) / sequence / f"{image}.csv"
    if not file.exists():
        return False
    with file.open("rb") as lines:
        rows = sum(line.endswith(b"\n") for line in lines)  # the last one is whole, too
    if rows != count or not _ROWS(file):
        raise ValueError(f"{file}: is not what is written here; remove it, or use --overwrite")
    return True


def write_csv(folder: str | Path, sequence: str, image: str, descriptors: ArrayLike) -> None:
    """Write the descriptors (N, D) of one image, float32, without losing a bit."""
    values = np.asarray(descriptors, np.float32)
    if values.ndim != 2:
        raise ValueError(f"descriptors: expected shape (N, D), got {values.shape}")
    target = make_folder(Path(folder) / sequence)
    line = ",".join(["%.9g"] * values.shape[1]) + "\n"
    with (
        atomic_path(target / f"{image}.csv") as partial,
        partial.open("w", encoding="ascii") as out,
    ):
        out.writelines(line % tuple(row) for row in values.tolist())

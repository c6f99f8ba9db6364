"""Text files of numbers, read quickly, with errors that name the line."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def _load(
    path: Path,
    dtype: DTypeLike,
    kinds: Sequence[tuple[int, type]],
    delimiter: str | None,
    skip: int,
) -> NDArray[Any]:
    """Read columns with numpy's compiled reader; if it fails, look for the line that is wrong."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    try:
        with warnings.catch_warnings():
            # "1.5" where an integer belongs, and an empty file, are only warnings to numpy.
            warnings.simplefilter("error")
            return np.loadtxt(
                path,
                dtype,
                comments=None,
                delimiter=delimiter,
                skiprows=skip,
                usecols=[column for column, _ in kinds],
                ndmin=1,
            )
    except (ValueError, Warning, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise _explain(path, kinds, delimiter, skip, reason) from None


def _explain(
    path: Path,
    kinds: Sequence[tuple[int, type]],
    delimiter: str | None,
    skip: int,
    reason: str,
) -> ValueError:
    """The error for the first line that cannot be read."""
    words = {int: "an integer", float: "a number", str: "a name"}
    least = max(column for column, _ in kinds) + 1
    found = False
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if number <= skip or not line.strip():
                continue
            found = True
            fields = line.rstrip("\n").split(delimiter)
            if len(fields) < least:
                return ValueError(
                    f"{path}, line {number}: expected at least {least} columns, got "
                    f"{len(fields)}: {line.strip()[:60]!r}"
                )
            for column, kind in kinds:
                try:
                    kind(fields[column])
                except ValueError:
                    return ValueError(
                        f"{path}, line {number}: expected {words[kind]} in column {column + 1}, "
                        f"got {fields[column][:60]!r}"
                    )
    return ValueError(f"{path}: {reason if found else 'the file holds no lines'}")


def read_columns(
    path: str | Path, columns: Sequence[int], kind: type[int] | type[float] = int
) -> NDArray[Any]:
    r"""Columns of a file of numbers separated by blanks; other columns may hold anything.

    Parameters
    ----------
    path
        Text, one row per line; empty lines are skipped.
    columns
        Which columns to read, counted from 0.
    kind
        ``int`` or ``float``.

    Returns
    -------
    ndarray of shape (N, len(columns)), int64 or float64

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "info.txt"
    >>> _ = file.write_text("7 0\n8 0\n")
    >>> read_columns(file, [0]).tolist()
    [[7], [8]]
    """
    dtype = np.int64 if kind is int else np.float64
    rows = _load(Path(path), dtype, [(column, kind) for column in columns], None, 0)
    return rows.reshape(-1, len(columns))


def read_records(
    path: str | Path, header: Sequence[str], kinds: Sequence[type], width: int = 64
) -> NDArray[Any]:
    r"""A CSV file with the given header as a structured array, one field per column.

    Parameters
    ----------
    path
        Comma-separated text whose first line is ``header``.
    header, kinds
        Names of the columns, and ``int`` or ``str`` for each.
    width
        Names are bytes of this length at most; longer ones are cut.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "queries.csv"
    >>> _ = file.write_text("s,idx\nv_graffiti,3\n")
    >>> read_records(file, ["s", "idx"], [str, int])["idx"].tolist()
    [3]
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    with path.open(encoding="utf-8", errors="replace") as lines:
        first = lines.readline().strip()
    if [name.strip() for name in first.split(",")] != list(header):
        raise ValueError(
            f"{path}, line 1: expected the header {','.join(header)}, got {first[:60]!r}"
        )
    formats = {int: "i8", str: f"S{width}"}
    dtype = np.dtype([(name, formats[kind]) for name, kind in zip(header, kinds, strict=True)])
    return _load(path, dtype, list(enumerate(kinds)), ",", 1)


def line_of_row(path: str | Path, row: int, skip: int = 0) -> int:
    """The line (from 1) that row ``row`` (from 0) was read from: empty lines hold no row."""
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if number > skip and line.strip():
                if row == 0:
                    return number
                row -= 1
    raise ValueError(f"{path}: the file has no such row")

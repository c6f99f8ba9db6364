"""Patches in the stores of others: Zarr arrays, Parquet files."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.locations import as_location
from mkdesc._support.optional import needed

#: Called with the first row and the one after the last.
Rows = Callable[[int, int], NDArray[Any]]

#: The column of patches in a Parquet file.
COLUMN = "patch"


def zarr_rows(location: str) -> tuple[tuple[int, ...], np.dtype[Any], Rows]:
    """Shape, type and rows of a Zarr array, or of the only one of a group.

    Parameters
    ----------
    location
        Path or address.
    """
    with needed("Zarr arrays need zarr", "cluster"):
        import zarr
    try:
        found = zarr.open(as_location(location), mode="r")
        arrays = dict(found.arrays()) if isinstance(found, zarr.Group) else {"": found}
    except Exception as error:  # whatever it is that zarr finds wrong
        raise ValueError(f"not a Zarr array ({error})") from None
    if len(arrays) != 1:
        names = ", ".join(sorted(arrays)) or "none"
        raise ValueError(f"expected a Zarr array, or a group with one array; it has {names}")
    (array,) = arrays.values()
    try:
        absent = array.nchunks - array.nchunks_initialized
    except Exception:  # a store that cannot be listed
        absent = 0
    if absent:
        warnings.warn(
            f"{location}: {absent} of {array.nchunks} chunks are not there, and are read as "
            f"{array.fill_value} everywhere",
            stacklevel=2,
        )
    return array.shape, array.dtype, lambda first, last: np.asarray(array[first:last])


def parquet_rows(location: str) -> tuple[tuple[int, ...], np.dtype[Any], Rows]:
    """Shape, type and rows of a Parquet file, or of a folder of them in the order of their names.

    The column ``patch`` holds W * W numbers a row, as a list or, of uint8, as binary data.

    Parameters
    ----------
    location
        Path or address.
    """
    with needed("Parquet needs pyarrow", "cluster"):
        import pyarrow as pa
        import pyarrow.dataset as ds
    try:
        fragments = sorted(ds.dataset(location).get_fragments(), key=lambda part: part.path)
        counts = [part.count_rows() for part in fragments]
        kind = ds.dataset(location).schema.field(COLUMN).type
        rows = sum(counts)
        head = ds.dataset(location).head(1, columns=[COLUMN])[COLUMN]
    except (pa.ArrowException, KeyError, OSError) as error:
        raise ValueError(f"not Parquet with a column {COLUMN!r} ({error})") from None
    dtype = (
        np.dtype(np.uint8) if _binary(pa, kind) else np.dtype(kind.value_type.to_pandas_dtype())
    )
    if rows and not len(head):
        raise ValueError(f"claims {rows} rows that are not there")
    if not rows:
        raise ValueError("no rows, so the size of its patches is unknown")
    length = len(head[0].as_py())
    size = math.isqrt(length)
    if size * size != length:
        raise ValueError(f"{COLUMN}: expected W * W numbers a row, got {length}")
    ends = list(accumulate(counts))

    def read(first: int, last: int) -> NDArray[Any]:
        found = []
        while first < last:
            number = bisect_right(ends, first)
            begin = ends[number] - counts[number]
            until = min(last, ends[number])
            column = fragments[number].to_table(columns=[COLUMN])[COLUMN]
            found.append(_numbers(pa, column.slice(first - begin, until - first), dtype, size))
            first = until
        return np.concatenate(found) if found else np.empty((0, size, size), dtype)

    return (rows, size, size), dtype, read


def _binary(pa: Any, kind: Any) -> bool:
    types = pa.types
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return True
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    if not any(is_list(kind) for is_list in lists):
        raise ValueError(f"{COLUMN}: expected lists of numbers or binary data, got {kind}")
    return False


def _numbers(pa: Any, column: Any, dtype: np.dtype[Any], size: int) -> NDArray[Any]:
    """Patches (n, size, size) of a column."""
    if column.null_count:
        raise ValueError(f"{COLUMN}: {column.null_count} of its values are missing")
    if _binary(pa, column.type):
        data = b"".join(column.to_pylist())
        values: NDArray[Any] = np.frombuffer(data, np.uint8)
    else:
        values = column.combine_chunks().flatten().to_numpy(zero_copy_only=False).astype(dtype)
    if values.size != len(column) * size * size:
        raise ValueError(f"{COLUMN}: expected {size * size} numbers in every row")
    return values.reshape(-1, size, size)

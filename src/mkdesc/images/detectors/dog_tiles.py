"""Tiles of an octave, each scanned by itself, and where a tile's rows are kept meanwhile."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.detectors.dog_reference import STEPS

#: Columns of a tile: its rows of all images and differences stay in the cache.
TILE = 1600
#: Rows of a tile at least, where there are several threads.
FEWEST_ROWS = 128
#: Rows that are made of each image before it is the next one's turn.
CHUNK = 16
#: Pixels beyond an extremum that its refinement may look at.
AROUND = STEPS + 1
#: Numbers for each blob: those of ``dog_reference.Blob`` but for the octave.
NUMBERS = 7


class Plan(NamedTuple):
    """A tile of an octave, and where its images are kept; arrays have one number for each image.

    The images are the doubled photograph (first octave only) and the six of an octave.
    """

    height: int
    width: int
    row: int
    row_end: int
    column: int
    column_end: int
    stride: int  # pixels from row to row
    margin: int  # pixels of a row before its column 0
    images_size: int
    dogs_size: int
    reach: NDArray[np.int64]  # taps of the filter that makes it, to one side
    lag: NDArray[np.int64]  # rows that it is behind the first image
    start: NDArray[np.int64]  # rows that are made of it
    end: NDArray[np.int64]
    low: NDArray[np.int64]  # columns that are made of it
    high: NDArray[np.int64]
    front: NDArray[np.int64]  # the row that comes next
    top: NDArray[np.int64]  # the first row that is kept
    at: NDArray[np.int64]  # where that row is
    depth: NDArray[np.int64]  # rows kept of what differs from the image before
    dog_at: NDArray[np.int64]  # where those are


def plans_for(
    height: int, width: int, reaches: list[int], first: bool, threads: int
) -> list[Plan]:
    """Tiles that cover an octave; what is found does not depend on them.

    Parameters
    ----------
    height, width
        Of the octave.
    reaches
        Of its filters, to one side; the first blurs the doubled photograph.
    first
        Whether it is the first octave, made of the doubled photograph.
    threads
        That share the tiles.
    """
    columns = -(-width // TILE)
    rows = 1 if threads == 1 else -(-2 * threads // columns)
    rows = min(max(height // FEWEST_ROWS, 1), rows)
    return [
        _plan(height, width, part_of(height, rows, i), part_of(width, columns, j), reaches, first)
        for i in range(rows)
        for j in range(columns)
    ]


def part_of(size: int, parts: int, i: int) -> tuple[int, int]:
    """Where part ``i`` begins and ends; all begin at even numbers.

    >>> [part_of(101, 3, i) for i in range(3)]
    [(0, 32), (32, 66), (66, 101)]
    """
    end = size if i + 1 == parts else size * (i + 1) // parts // 2 * 2
    return size * i // parts // 2 * 2, end


def _plan(
    height: int,
    width: int,
    rows: tuple[int, int],
    columns: tuple[int, int],
    reaches: list[int],
    first: bool,
) -> Plan:
    reach = np.array([0, *reaches], np.int64)
    beyond = AROUND + reach.sum() - np.cumsum(reach)  # what later images and blobs need
    lag = np.cumsum(reach) - (0 if first else reach[:2].sum())
    after = np.append(reach[1:], 0)
    low = np.maximum(columns[0] - beyond, 0)
    high = np.minimum(columns[1] + beyond, width)
    low[0], high[0] = low[0] // 2 * 2, (high[0] + 1) // 2 * 2
    start, end = np.maximum(rows[0] - beyond, 0), np.minimum(rows[1] + beyond, height)
    margin = int(beyond[0] + reach.max() + 1 - columns[0])
    # An odd number of cache lines: rows that are filtered together do not push each other out.
    stride = (int(margin + columns[1] + beyond[0] + reach.max()) // 16 // 2 * 2 + 3) * 16
    kept = CHUNK + 3 * after + 2  # rows; filters make two at a time
    kept[-1] = 1
    depth = CHUNK + 2 * AROUND + 2 + lag[-1] - lag
    depth[:2] = 1
    return Plan(
        height, width, *rows, *columns, stride, margin,
        images_size=int(kept.sum() + 1) * stride,
        dogs_size=int(depth.sum()) * stride,
        reach=reach,
        lag=lag,
        start=start,
        end=end,
        low=low,
        high=high,
        front=start.copy(),
        top=np.append(start[1:] - reach[1:], 0),
        at=(np.cumsum(kept) - kept) * stride,
        depth=depth,
        dog_at=(np.cumsum(depth) - depth) * stride,
    )  # fmt: skip

"""Nearest neighbours of binary descriptors: bits that differ, counted in words of 64."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import array_type
from mkdesc._support.threads import available_threads

#: More than any distance.
FAR = 0xFFFF
#: Columns of a block, which stay in the cache; rows at a time, of which a number has room for.
COLUMNS, ROWS = 512, 4096
#: Bytes that the loop compares at a time, and of a descriptor at most.
BYTES, MOST_BYTES = 32, 8160


class Nearest(NamedTuple):
    """Of two sets, whose nearest is whose.

    Attributes
    ----------
    nearest, distance
        (N,): for each of the first set the nearest of the second, and how many bits differ.
    second
        (N,) float64: of the second nearest; infinity if there is none.
    back
        (M,): for each of the second set the nearest of the first.
    """

    nearest: NDArray[np.int64]
    distance: NDArray[np.uint32]
    second: NDArray[np.float64]
    back: NDArray[np.int64]


def check_bits(array: NDArray[Any], name: str) -> None:
    """Refuse what are no packed bits (N, B).

    >>> check_bits(np.zeros((3, 16)), "a")
    Traceback (most recent call last):
    ValueError: a: expected packed bits, uint8 (N, dims / 8), got float64 (3, 16)
    """
    if array.dtype != np.uint8 or array.ndim != 2:
        raise ValueError(
            f"{name}: expected packed bits, uint8 (N, dims / 8), got {array.dtype} {array.shape}"
        )
    if array.shape[1] > MOST_BYTES:
        raise ValueError(f"{name}: expected at most {MOST_BYTES} bytes each, got {array.shape}")


def nearest_bits(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> Nearest:
    """Nearest neighbours of packed bits (N, B) and (M, B), neither of them empty.

    >>> bits = np.packbits(np.eye(8, dtype=np.uint8), axis=1)
    >>> nearest_bits(bits[:3], bits[[2, 0]]).nearest.tolist()
    [1, 0, 0]
    """
    here = _words(a)
    blocks = -(-len(b) // COLUMNS)
    padded = np.zeros((blocks * COLUMNS, here.shape[1]), np.uint64)
    padded[: len(b)] = _words(b)
    there = padded.reshape(blocks, COLUMNS, -1).transpose(0, 2, 1).copy()
    loop, size = compile_bits(), blocks * COLUMNS
    best, second = np.empty((2, len(a)), np.uint32)
    index = np.empty(len(a), np.int64)

    def run(start: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        rows = slice(start, start + step)
        near, which = np.empty(size, np.uint32), np.empty(size, np.int64)
        loop(here[rows], there, len(b), best[rows], second[rows], index[rows], near, which)
        return near, which + start

    threads = available_threads()
    step = min(ROWS, -(-len(a) // threads))
    starts = range(0, len(a), step)
    back, least = np.zeros(size, np.int64), np.full(size, np.iinfo(np.uint32).max, np.uint32)
    with ThreadPoolExecutor(threads) as pool:
        for near, which in pool.map(run, starts):  # in order: of equally near ones the first
            back = np.where(near < least, which, back)
            least = np.minimum(least, near)
    runner_up = np.where(second < FAR, second.astype(np.float64), np.inf)
    return Nearest(index, best, runner_up, back[: len(b)])


def _words(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Packed bits (N, B) as words (N, W), with zeros behind them."""
    padded = np.zeros((len(bits), bits.shape[1] + -bits.shape[1] % BYTES), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)


@locked_cache
def compile_bits() -> Callable[..., None]:
    """The compiled loop, found or compiled."""

    def written(dtype: str) -> Any:
        return array_type(dtype, 1, written=True)

    arguments = (
        array_type("uint64", 2),
        array_type("uint64", 3),
        "int64",
        written("uint32"),
        written("uint32"),
        written("int64"),
        written("uint32"),
        written("int64"),
    )
    return compile_loop("mkdesc.matching.bits_numba:nearest_of_block", arguments)

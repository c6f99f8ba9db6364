"""How many threads there are, and how many each may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from mkdesc._support.check import check_integer

P = TypeVar("P")
T = TypeVar("T")


def available_threads() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked_threads(n_threads: int | None, name: str = "n_threads") -> int:
    """A number of threads as it was asked for by this name; None: one per core.

    >>> checked_threads(3)
    3
    """
    if n_threads is None:
        return available_threads()
    check_integer(name, n_threads, optional=True)
    return int(n_threads)


def in_threads(function: Callable[[P], T], items: Iterable[P], threads: int) -> list[T]:
    """The results of a function, in the order of the items, by several threads.

    >>> in_threads(abs, [-2, 1], 2)
    [2, 1]
    """
    every = list(items)
    if threads == 1 or len(every) < 2:
        return [function(item) for item in every]
    with ThreadPoolExecutor(min(threads, len(every))) as pool:
        return list(pool.map(function, every))


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Run matrix products in the calling thread alone: the caller has several threads.

    Needs threadpoolctl; without it, it only takes longer.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1, "blas"):
        yield

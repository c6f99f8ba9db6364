"""How many threads there are, and how many each may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from mkdesc._support.check import check_integer


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


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Keep matrix products to the thread that asks for them: whoever calls has several.

    Needs threadpoolctl; without it, it only takes longer.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1, "blas"):
        yield

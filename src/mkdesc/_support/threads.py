"""How many threads there are, and work shared among them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from numbers import Integral
from typing import TypeVar

__all__ = ["available_threads", "checked_threads", "in_order", "one_thread_each"]

T = TypeVar("T")


def available_threads() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked_threads(n_threads: int | None) -> int:
    """A number of threads as it was asked for; None: one per core.

    >>> checked_threads(3)
    3
    """
    if n_threads is None:
        return available_threads()
    if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1:
        raise ValueError(f"n_threads: expected an integer >= 1 or None, got {n_threads!r}")
    return int(n_threads)


def in_order(make: Callable[[int], T], count: int, threads: int) -> Generator[T, None, None]:
    """``make(0), make(1), ...`` by several threads, at most twice as many ahead.

    Examples
    --------
    >>> list(in_order(lambda i: i * i, 5, threads=2))
    [0, 1, 4, 9, 16]
    """
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for index in range(count):
                waiting.append(pool.submit(make, index))
                if len(waiting) >= 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # whoever stops early need not wait for the rest
            for future in waiting:
                future.cancel()


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

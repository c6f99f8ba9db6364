"""Work shared among threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_order"]

T = TypeVar("T")


def in_order(make: Callable[[int], T], count: int, threads: int) -> Iterator[T]:
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

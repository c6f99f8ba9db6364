"""Work in pieces: by threads, by processes, or by the workers of a Dask cluster.

A piece is a small description of work that can be pickled: rows 4,096 to 8,191 of this file, this
photograph. :func:`in_order` is the one map over pieces; who does them is an argument.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from mkdesc._support.cluster import Cluster, Lost, is_client
from mkdesc._support.threads import checked_threads

if TYPE_CHECKING:
    from distributed import Client


T = TypeVar("T")
P = TypeVar("P")

#: Who does the work: so many threads (None: one per core), an executor, or a Dask cluster.
Workers: TypeAlias = "int | Executor | Cluster | Client | None"

#: Pieces that are waited for at a time, per worker. On a cluster one may have to be done again.
AHEAD, AHEAD_ON_CLUSTER = 2, 4


class _Pool(NamedTuple):
    submit: Callable[..., Any]
    ahead: int


def in_order(
    work: Callable[[P], T],
    pieces: Iterable[P],
    workers: Workers = None,
    lost: Callable[[P, str], T] | None = None,
) -> Generator[T, None, None]:
    """``work(piece)`` for each piece, in their order, with a bounded number of them under way.

    Parameters
    ----------
    work
        What to do with a piece; for processes and clusters a function of a module.
    pieces
        Those to do.
    workers
        A number of threads (None: one per core), a :class:`concurrent.futures.Executor`, a
        ``distributed.Client``, or a :class:`~mkdesc._support.cluster.Cluster`.
    lost
        What becomes of a piece that killed every worker that tried it, given the piece and the
        reason; None: that ends the work.

    Examples
    --------
    >>> list(in_order(lambda n: n * n, range(5), workers=2))
    [0, 1, 4, 9, 16]
    """
    with _pool(workers) as pool:
        waiting: deque[tuple[P, Any]] = deque()

        def first() -> T:
            piece, future = waiting.popleft()
            try:
                return future.result()
            except Lost as reason:
                if lost is None:
                    raise
                return lost(piece, str(reason))

        try:
            for piece in pieces:
                waiting.append((piece, pool.submit(work, piece)))
                if len(waiting) >= pool.ahead:
                    yield first()
            while waiting:
                yield first()
        finally:  # whoever stops early need not wait for the rest
            for _, future in waiting:
                future.cancel()


def share_memory(workers: Workers) -> bool:
    """Whether what they make need not travel: threads of this process.

    >>> share_memory(None), share_memory(4)
    (True, True)
    """
    return workers is None or isinstance(workers, (int, ThreadPoolExecutor))


@contextmanager
def _pool(workers: Workers) -> Iterator[_Pool]:
    if workers is None or isinstance(workers, int):
        threads = checked_threads(workers, "workers")
        with ThreadPoolExecutor(threads) as pool:
            yield _Pool(pool.submit, AHEAD * threads)
    elif isinstance(workers, Executor):
        count = getattr(workers, "_max_workers", None) or checked_threads(None)
        yield _Pool(workers.submit, AHEAD * count)
    elif isinstance(workers, Cluster) or is_client(workers):
        cluster = workers if isinstance(workers, Cluster) else Cluster(workers)
        yield _Pool(cluster.submit, AHEAD_ON_CLUSTER * cluster.threads())
    else:
        raise ValueError(
            "workers: expected a number of threads, None, an executor or a Dask client, got "
            f"{workers!r}"
        )

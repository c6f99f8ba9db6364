"""A Dask cluster as a place where pieces of work are done; the only module that knows Dask."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mkdesc._support.files import read_json
from mkdesc._support.optional import needed
from mkdesc._support.version import __version__

if TYPE_CHECKING:
    from distributed import Client


#: How long a scheduler may take to answer, and may be without any worker, in seconds.
ANSWER_TIMEOUT, NO_WORKER_TIMEOUT = 10.0, 120.0


class Lost(ValueError):
    """A piece of work that killed every worker that tried it."""


class Done(NamedTuple):
    """What came of a piece, who did it, and how long it took."""

    value: Any
    worker: str
    seconds: float


def is_client(workers: object) -> bool:
    """Whether these are the workers of a Dask client, which is not imported for the question.

    >>> is_client(3)
    False
    """
    return type(workers).__module__.partition(".")[0] == "distributed"


def _do(work: Callable[[Any], Any], piece: Any, version: str) -> Done:
    """Run on a worker."""
    from distributed import get_worker

    if version != __version__:  # it may have come since the others were asked
        raise ValueError(_unlike(str(get_worker().address), __version__, version))
    _keep_memory()
    start = time.perf_counter()
    value = work(piece)
    return Done(value, str(get_worker().address), time.perf_counter() - start)


@cache
def _keep_memory() -> None:
    """Let this worker keep memory that it frees for the next piece.

    Dask has workers give back every page at once, and they ask for it again image by image: half
    as much time again for OpenCV's SIFT. This is for glibc; others have no such function.
    """
    trim_threshold, mmap_threshold = -1, -3
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(trim_threshold, 2**30)
        mallopt(mmap_threshold, 2**25)  # the most there can be


def _unlike(worker: str, found: str, expected: str) -> str:
    return f"the worker {worker} has mkdesc {found}, expected {expected}, as here"


class Cluster:
    """The workers of a Dask client, and what each of them has done.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    own
        How many workers it has, if it was started here: those that are gone are started again.

    Attributes
    ----------
    address
        Of the scheduler.
    pieces, seconds
        By worker, how many pieces it has done, and how long it took.
    """

    def __init__(self, client: Client, own: int | None = None) -> None:
        if client.scheduler is None:
            raise ValueError("workers: the Dask client is closed")
        self.client = client
        self._own = own
        self.address = str(client.scheduler.address)  # a client forgets it when it is lost
        self._seen = time.monotonic()  # any worker
        self._asked: set[_Future] = set()
        self.pieces: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def threads(self) -> int:
        """How many pieces can be done at a time now; at least 1, as workers may yet come."""
        return max(1, sum(self.client.nthreads().values()))

    def submit(self, work: Callable[[Any], Any], piece: Any) -> _Future:
        """Have a piece done."""
        future = _Future(self, work, piece)
        self._asked.add(future)
        return future

    def forget(self, future: _Future) -> None:
        """Its piece is done, or need not be."""
        self._asked.discard(future)

    def asked_but(self, future: _Future) -> list[_Future]:
        """All that are under way but this one."""
        return [other for other in self._asked if other is not future]

    def check(self) -> None:
        """Refuse a cluster without workers, or of other versions than this one's."""
        found = self.client.run(_version, on_error="return")
        if not found:
            raise ValueError(f"{self.address}: this cluster has no workers")
        for worker, version in found.items():
            if version != __version__:
                known = version if isinstance(version, str) else f"not ({version})"
                raise ValueError(f"{self.address}: {_unlike(worker, known, __version__)}")

    def look_after(self) -> None:
        """Start workers again that are gone for good; do not wait forever for those of others.

        Dask starts a worker again that dies, but not one that dies while it starts.
        """
        if self.client.status in ("closing", "closed"):  # by somebody else: it answers nothing
            raise CancelledError
        now = time.monotonic()
        if self._own is not None:
            self.client.cluster.scale(self._own)
        if self.client.nthreads():
            self._seen = now
        elif now - self._seen > NO_WORKER_TIMEOUT:
            raise ConnectionError(
                f"{self.address}: all workers are gone; finished work is kept, run the same "
                "command again to resume"
            )

    def lines(self, seconds: float) -> list[str]:
        """What each worker has done in so many seconds, for reading."""
        return [
            f"{worker}: {count:,} pieces, {count / seconds:,.1f} a second, busy for "
            f"{100 * self.seconds[worker] / seconds:.0f}% of the time"
            for worker, count in sorted(self.pieces.items())
        ]


class _Future:
    """A piece that is being done somewhere."""

    def __init__(self, cluster: Cluster, work: Callable[[Any], Any], piece: Any) -> None:
        self._cluster = cluster
        self._work = work
        self._piece = piece
        self._begin()

    def _begin(self) -> None:
        submit = self._cluster.client.submit
        self._future: Any = submit(_do, self._work, self._piece, __version__, pure=False)
        self._answer: Future[Done] = Future()
        self._cluster.client.loop.add_callback(_bring, self._answer, self._future)

    def result(self) -> Any:
        """Wait for it."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        cluster = self._cluster
        try:
            try:
                done: Done = self._wait()
            except KilledWorker:
                done = self._alone()
        except KilledWorker as error:
            died = error.allowed_failures + 1
            raise Lost(f"it crashed {died} worker{'s' * (died > 1)}") from None
        except (CancelledError, CommClosedError):
            raise ConnectionError(
                f"{cluster.address}: the scheduler is gone; finished work is kept, run the same "
                "command again to resume"
            ) from None
        finally:
            cluster.forget(self)
        cluster.pieces[done.worker] += 1
        cluster.seconds[done.worker] += done.seconds
        return done.value

    def _alone(self) -> Done:
        """Do it again when nothing else is being done.

        A scheduler suspects all pieces that a dead worker had, those that waited and those whose
        end it has not heard of as well as the one that killed it.
        """
        for other in self._cluster.asked_but(self):
            with suppress(Exception):
                other._wait()
        self._begin()
        return self._wait()

    def _wait(self) -> Done:
        while True:
            try:
                return self._answer.result(timeout=ANSWER_TIMEOUT)
            except TimeoutError:
                if self._answer.done():  # meanwhile; or the work itself has raised this
                    return self._answer.result()
                self._cluster.look_after()

    def cancel(self) -> None:
        """Do not begin it, if it has not begun.

        This asks nobody: the client may be closed already, and then nobody would answer.
        """
        self._cluster.forget(self)
        self._future.release()


async def _bring(answer: Future[Done], future: Any) -> None:
    """Bring what a worker has found: in the client's own loop, and without a time limit.

    Answers travel together in Dask: whose time ends takes those of the others with it. Dask's
    callbacks have one thread in all of a process, and one that asks for an answer while its client
    is being closed keeps it forever; whoever has another cluster then waits in vain.
    """
    try:
        answer.set_result(await future)
    except asyncio.CancelledError:  # the loop ends
        answer.set_exception(CancelledError())
    except Exception as error:  # of the work or of the cluster: whoever waits is told
        answer.set_exception(error)


def _version() -> str:
    """Run on a worker."""
    return __version__


@contextmanager
def connect(address: str) -> Iterator[Cluster]:
    """A cluster by its address.

    Parameters
    ----------
    address
        ``local:N``: N processes on this machine, which end with the context. A scheduler's
        ``tcp://host:port``, or the JSON file that ``dask scheduler --scheduler-file`` writes.
    """
    with needed("a cluster needs Dask", "cluster"):
        from distributed import Client, LocalCluster
        from distributed.utils import silence_logging_cmgr
    count = _local(address)
    if count is not None:
        with ExitStack() as running:
            with _interrupts_later():  # a cluster that is half started does not end in silence
                here = LocalCluster(
                    n_workers=count,
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )
                running.enter_context(here)
                client = running.enter_context(Client(here))
            yield Cluster(client, own=count)
        return
    scheduler = _written_in(address) if address.endswith(".json") else address
    with silence_logging_cmgr(logging.CRITICAL):  # what is lost is told by us, in one line
        try:
            client = Client(scheduler, timeout=ANSWER_TIMEOUT)
        except (OSError, TimeoutError, ValueError) as error:
            raise ConnectionError(
                f"cluster: no scheduler answers at {scheduler} ({error})"
            ) from None
        with client:
            cluster = Cluster(client)
            cluster.check()
            yield cluster


def _written_in(path: str) -> str:
    """The address in a file that a scheduler wrote."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"cluster: the scheduler file {path} does not exist")
    about = read_json(path)
    if not isinstance(about, dict) or not isinstance(about.get("address"), str):
        raise ValueError(f"cluster: {path} is not a Dask scheduler file: it has no address")
    return str(about["address"])


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Let Ctrl-C wait until the end of the context, and never reach the workers."""
    if threading.current_thread() is not threading.main_thread():  # it does not get there
        yield
        return
    asked = []
    before = signal.signal(signal.SIGINT, lambda *_: asked.append(True))
    can_mask = hasattr(signal, "pthread_sigmask")  # Windows cannot
    if can_mask:  # for the threads and processes that start here
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # which would take the mask off when it starts
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if can_mask:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


def _local(address: str) -> int | None:
    """The number of processes of ``local:N``; None for other addresses.

    >>> _local("local:3"), _local("tcp://host:8786")
    (3, None)
    """
    kind, _, count = address.partition(":")
    if kind != "local":
        return None
    if not count.isdecimal() or not 1 <= int(count) <= 1024:
        raise ValueError(f"cluster: expected local:N with N from 1 to 1024, got {address!r}")
    return int(count)

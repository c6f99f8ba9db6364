"""Pieces of work by threads, by processes and by Dask: one map, one order."""

import asyncio
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

from mkdesc._support.cluster import Cluster, Done, Lost, connect
from mkdesc._support.work import in_order, share_memory


def _square(number):
    return number * number


def _fail_at_three(number):
    if number == 3:
        raise ValueError("three")
    return number


def _die_once(marker):
    """Kills the worker that tries it first."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def _die(number):
    if number == 2:
        time.sleep(0.5)  # until others are waiting behind it
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("kind", [None, 3, "threads", "processes", "dask"])
def test_results_come_in_the_order_of_the_pieces(kind, request):
    if kind == "dask":
        cluster = request.getfixturevalue("cluster")
        assert list(in_order(_square, range(30), cluster)) == [n * n for n in range(30)]
        assert list(in_order(_square, range(3), cluster.client)) == [0, 1, 4]
        assert sum(cluster.pieces.values()) >= 30
    elif kind in ("threads", "processes"):
        executor = ThreadPoolExecutor(2) if kind == "threads" else ProcessPoolExecutor(2)
        with executor:
            assert list(in_order(_square, range(30), executor)) == [n * n for n in range(30)]
    else:
        assert list(in_order(_square, range(30), kind)) == [n * n for n in range(30)]


def test_pieces_are_taken_as_they_are_needed():
    taken, busy = [], threading.Semaphore(0)

    def pieces():
        for number in range(100):
            taken.append(number)
            yield number

    found = in_order(lambda number: (busy.release(), number)[1], pieces(), 2)
    assert next(found) == 0
    assert len(taken) <= 4
    found.close()


def test_errors_of_the_work_arrive_as_they_are(cluster):
    for workers in (2, cluster):
        found = in_order(_fail_at_three, range(6), workers)
        assert [next(found) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ValueError, match="three"):
            next(found)


def test_a_killed_worker_loses_nothing(cluster, tmp_path):
    pieces = [tmp_path / str(number) for number in range(2)]
    assert list(in_order(_die_once, pieces, cluster)) == ["done", "done"]


def test_a_piece_that_kills_its_workers_is_given_up_and_no_other():
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")  # its settings would go with ours at the end
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), connect("local:1") as one:
        found = list(in_order(_die, [2, 0, 1], one, lost=lambda piece, why: f"{piece}: {why}"))
        assert found == ["2: it crashed 1 worker", 0, 1]
        with pytest.raises(Lost, match="it crashed"):
            list(in_order(_die, [2], one))


class _Answer:
    """What a scheduler will have found after some time."""

    def __init__(self, find, after=0.0):
        self._find = find
        self._after = after

    def __await__(self):
        return self._later().__await__()

    async def _later(self):
        await asyncio.sleep(self._after)
        return self._find()


class _Clients:
    """A client whose scheduler suspects the first piece that it is given, once."""

    status = "running"

    def __init__(self):
        self.scheduler = SimpleNamespace(address="here")
        self.loop = SimpleNamespace(add_callback=self.run)
        self.events = []

    def run(self, function, *arguments):
        threading.Thread(target=lambda: asyncio.run(function(*arguments))).start()

    def nthreads(self):
        return {"worker": 1}

    def submit(self, do, work, piece, version, pure):
        self.events.append(f"begin {piece}")
        return _Answer(lambda: self.end(piece), 0.0 if piece == "suspect" else 0.2)

    def end(self, piece):
        if piece == "suspect" and self.events.count("begin suspect") == 1:
            raise pytest.importorskip("distributed").KilledWorker("suspect", None, 0)
        self.events.append(f"end {piece}")
        return Done(piece, "worker", 1.0)


def test_an_innocent_piece_is_waited_for():
    """A piece that is suspected is done again alone: what else is under way ends first."""
    pytest.importorskip("distributed")
    client = _Clients()
    assert list(in_order(str, ["suspect", "innocent"], Cluster(client))) == ["suspect", "innocent"]
    assert client.events == [
        *("begin suspect", "begin innocent", "end innocent"),
        *("begin suspect", "end suspect"),
    ]


def test_an_answer_that_travels_as_a_wait_ends_is_taken(monkeypatch):
    """Dask would lose it, and those of others: so it is fetched without a time limit."""
    pytest.importorskip("distributed")
    monkeypatch.setattr("mkdesc._support.cluster.ANSWER_TIMEOUT", 0.01)
    client = _Clients()
    client.submit = lambda *_, **__: _Answer(lambda: Done(9, "worker", 1.0), 0.05)
    assert list(in_order(_square, [3], Cluster(client))) == [9]


@contextmanager
def _here():
    """A client of a cluster in this process."""
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "dashboard_address": None}
    with (
        distributed.LocalCluster(1, threads_per_worker=4, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _wait_a_little(number):
    time.sleep(number % 5 / 2000)
    return number


def test_work_that_is_given_up_asks_no_client_that_is_closed():
    with _here() as client:
        found = in_order(_wait_a_little, range(50), client)
        next(found)
    found.close()


def test_a_client_that_is_closed_meanwhile_takes_nothing_from_the_next():
    """Answers that travel then were waited for by the one thread of all clients: forever."""
    for _ in range(12):
        with _here() as client:
            found = in_order(_wait_a_little, range(200), client)
            next(found)
            client.close()
            with suppress(Exception):  # what matters is the next one
                found.close()
    answers = []
    with _here() as client:
        ask = threading.Thread(
            target=lambda: answers.extend(in_order(_square, range(5), client)), daemon=True
        )
        ask.start()
        ask.join(20)
        assert answers == [0, 1, 4, 9, 16]


def test_a_client_that_is_closed_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("mkdesc._support.cluster.ANSWER_TIMEOUT", 0.1)
    with _here() as client:
        found = in_order(time.sleep, [0, 1], client)
        next(found)
        client.close()
        with pytest.raises(ConnectionError, match="the scheduler is gone"):
            next(found)


def test_workers_that_are_gone_are_not_waited_for(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("mkdesc._support.cluster.ANSWER_TIMEOUT", 0.1)
    monkeypatch.setattr("mkdesc._support.cluster.NO_WORKER_TIMEOUT", 0.1)
    with connect("local:1") as cluster:
        cluster.client.cluster.scale(0)
        while cluster.client.nthreads():
            time.sleep(0.05)
        with pytest.raises(ConnectionError, match="all workers are gone"):
            list(in_order(_square, [1], Cluster(cluster.client)))  # as if it were of others


def test_workers_of_our_own_that_die_while_they_start_are_started_again(monkeypatch):
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")  # its settings would go with ours at the end
    monkeypatch.setattr("mkdesc._support.cluster.ANSWER_TIMEOUT", 0.5)
    soon = {"distributed.deploy.lost-worker-timeout": "1s"}
    with dask.config.set(soon), connect("local:1") as cluster:
        (nanny,) = cluster.client.cluster.workers.values()
        while nanny.status.name == "running":  # until the nanny gives up
            if nanny.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(nanny.pid, signal.SIGKILL)
            time.sleep(0.02)
        assert list(in_order(_square, [3], cluster)) == [9]


def test_a_scheduler_that_ends_is_said_in_one_line():
    pytest.importorskip("distributed")
    with connect("local:1") as cluster:
        found = in_order(time.sleep, [0, 60], cluster)
        next(found)
        cluster.client.cluster.close()
        with pytest.raises(ConnectionError, match="the scheduler is gone"):
            next(found)


@pytest.mark.parametrize(
    ("address", "error", "match"),
    [
        ("local:0", ValueError, "local:N"),
        ("local:", ValueError, "local:N"),
        ("no-such-file.json", FileNotFoundError, "does not exist"),
        ("tcp://127.0.0.1:9", ConnectionError, "no scheduler answers"),
    ],
)
def test_addresses_that_lead_nowhere(address, error, match, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("mkdesc._support.cluster.ANSWER_TIMEOUT", 0.5)
    with pytest.raises(error, match=match), connect(address):
        pass


def test_who_shares_memory(cluster):
    with ThreadPoolExecutor(1) as threads:
        assert share_memory(threads)
    assert share_memory(None)
    assert not share_memory(cluster)


def test_odd_workers_are_refused():
    with pytest.raises(ValueError, match="workers: expected"):
        list(in_order(_square, [1], "two"))
    with pytest.raises(ValueError, match="workers: expected an integer"):
        list(in_order(_square, [1], 0))


@pytest.mark.parametrize("text", ["[1", '{"a": 1}', "[]", '{"address": 5}'])
def test_a_file_that_is_no_scheduler_file(tmp_path, text):
    pytest.importorskip("distributed")
    file = tmp_path / "p.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"p\.json"), connect(str(file)):
        pass


def test_a_client_that_is_closed():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(1, processes=False, dashboard_address=None) as cluster:
        client = distributed.Client(cluster)
        client.close()
    with pytest.raises(ValueError, match="workers: the Dask client is closed"):
        list(in_order(_square, [1], client))


def _is_old():
    from mkdesc._support import cluster

    cluster.__version__ = "0.0.9"


def _is_not_there():
    import sys

    sys.modules["mkdesc"] = None
    sys.modules["mkdesc._support.cluster"] = None


def test_workers_of_other_versions_are_refused_when_they_come_late_too():
    pytest.importorskip("distributed")
    with connect("local:1") as cluster:
        cluster.client.run(_is_old)
        with pytest.raises(ValueError, match=r"tcp.* has mkdesc 0\.0\.9, expected"):
            list(in_order(_square, [1], cluster))
        with pytest.raises(ValueError, match=r"tcp.* has mkdesc 0\.0\.9, expected"):
            cluster.check()
        cluster.client.run(_is_not_there)
        with pytest.raises(ValueError, match=r"tcp.* has mkdesc not \(.*, expected"):
            cluster.check()

"""Work on a cluster, as the command line shows it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mkdesc._support.cluster import connect
from mkdesc._support.work import Workers
from mkdesc.cli.progress import console, progress_bar, resumable, say


@contextmanager
def long_work(
    cluster: str | None, unit: str, *, keep: bool = False, alone: Workers = None
) -> Iterator[dict[str, Any]]:
    """What long work that can be resumed takes: ``workers``, and ``progress``, a bar of units."""
    with (
        resumable(),
        workers_at(cluster, alone) as workers,
        progress_bar(unit, keep=keep) as progress,
    ):
        yield {"workers": workers, "progress": progress}


@contextmanager
def workers_at(address: str | None, alone: Workers = None) -> Iterator[Workers]:
    """The workers of a cluster; says where to watch it, and in the end what each has done.

    Parameters
    ----------
    address
        As for :func:`mkdesc._support.cluster.connect`; None: no cluster.
    alone
        Who works if there is none.
    """
    if address is None:
        yield alone
        return
    if not re.match(r"(?s)local:|\w+://|.*\.json$", address):
        raise ValueError(
            "--cluster: expected tcp://host:port, a scheduler file (.json) or local:N, got "
            f"{address!r}"
        )
    with console.status(f"connecting to {address}"):
        context = connect(address)
        cluster = context.__enter__()
    try:
        say(f"{cluster.threads()} at a time on {cluster.address}")
        say(f"dashboard: {cluster.client.dashboard_link}")
        start = time.perf_counter()
        yield cluster
        for line in cluster.lines(time.perf_counter() - start):
            say(line)
    finally:
        context.__exit__(None, None, None)

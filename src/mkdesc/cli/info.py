"""``mkdesc info``: versions, threads, backends."""

from __future__ import annotations

from importlib.util import find_spec

from mkdesc._support.installed import versions
from mkdesc._support.threads import available_threads
from mkdesc.compute.backends import BACKENDS


def command() -> None:
    """Print versions, threads and backends, for bug reports."""
    found = versions()
    width = max(map(len, found))
    for package, number in found.items():
        print(f"{package:<{width}} {number or 'not installed'}")
    print(f"{'threads':<{width}} {available_threads()}")
    there = [name for name in BACKENDS if name != "torch" or find_spec("torch") is not None]
    print(f"{'backends':<{width}} {', '.join(there)}")

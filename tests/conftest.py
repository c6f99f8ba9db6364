"""Fixtures that many tests share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings

from mkdesc import MKD, cli
from mkdesc._support.cluster import connect
from mkdesc.heads.head import L2, Affine, Head, Power, Relu
from mkdesc.kernels.parametrization import as_parametrization

REPOSITORY = Path(__file__).resolve().parents[1]

settings.register_profile("any machine", deadline=None)  # speed is measured in benchmarks/
settings.load_profile("any machine")

if find_spec("torch") is None:  # PyTorch is large: the tests of all else run without it
    collect_ignore_glob = [
        "compute/torch/*",
        "images/test_cutting_points.py",
        "images/test_cutting_torch.py",
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first: of what is left a worker that is done takes half."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the repository (or where MKDESC_SHARED says)."""
    folder = Path(os.environ.get("MKDESC_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data in {folder} (set MKDESC_SHARED to where it is)")
    return folder


@pytest.fixture(scope="session")
def look_at() -> Callable[..., MKD]:
    """Makes descriptors of patches of 24 px with a head, by the sides of their squares."""

    def make(*sides: float, **more: Any) -> MKD:
        rng = np.random.default_rng(len(sides))
        dims_in = len(sides) * as_parametrization("extended-24").dims
        wide = Affine(rng.normal(size=(dims_in, 40)), rng.normal(size=dims_in) / 30)
        down = Affine(rng.normal(size=(40, 16)))
        head = Head((Power(0.75), L2(), wide, Relu(16), down, L2()))
        return MKD("extended-24", 24, **{"head": head, "side": sides} | more)

    return make


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def replace_file() -> Callable[[Path, Path, str], None]:
    """Puts another file in the place of one, as ``mv``, ``cp -p``, ``rsync -t`` or unzip do."""

    def replace(file: Path, other: Path, how: str) -> None:
        before = file.stat()
        shutil.copyfile(other, file.with_name("in-between"))
        if how == "same size and time":
            assert other.stat().st_size == before.st_size
        shift = {"newer": 10**9, "older": -(10**12), "same size and time": 0}[how]
        times = (before.st_atime_ns, before.st_mtime_ns + shift)
        os.utime(file.with_name("in-between"), ns=times)
        file.with_name("in-between").replace(file)
        assert file.stat().st_mtime_ns == times[1]

    return replace


class Ended(NamedTuple):
    """A command that has ended, with what it printed; as :class:`subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch, capsys, colmap_here) -> Callable[..., Ended]:
    """Runs ``mkdesc`` with these arguments, in this process: starting another takes longer."""
    monkeypatch.setattr("mkdesc._support.compiling.PATIENCE", 1000)  # whatever must be compiled

    def call(*arguments: object, cwd: Path | None = None) -> Ended:
        capsys.readouterr()
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("default")  # as it is outside of tests
            patch.setattr(sys, "argv", ["mkdesc", *map(str, arguments)])
            if cwd is not None:
                patch.chdir(cwd)
            with pytest.raises(SystemExit) as ended:
                cli.main()
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return call


@pytest.fixture
def colmap_here(request, monkeypatch) -> None:
    """Lets COLMAP work in this process, but where a test is ``isolated``: starting takes longer.

    It has a process of its own because it may end it, where there is no room on the disk.
    """
    if request.node.get_closest_marker("isolated") is None:
        for module in ("mkdesc.sfm.mapping", "mkdesc.features.stores.colmap_database"):
            monkeypatch.setattr(f"{module}.run_isolated", lambda call, *given: call(*given))


@pytest.fixture(scope="module")  # not of the session: idle workers look around all the time
def _two_workers():
    pytest.importorskip("distributed")
    with connect("local:2") as cluster:
        yield cluster


@pytest.fixture
def cluster(_two_workers):
    """A Dask cluster, the same for all tests of a file, of two workers that have started."""
    client, running = _two_workers.client, list[object]()
    while len(running) < 2 or not all(isinstance(pid, int) for pid in running):
        client.cluster.scale(2)  # Dask does not start one again that dies while it starts
        time.sleep(0.02)
        running = [*client.run(os.getpid, on_error="return").values()]
    return _two_workers


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[Any]]]:
    """Starts Python with these arguments, for Ctrl-C: which whoever runs tests may ignore.

    What still runs at the end of the test is killed.
    """
    started = []

    def popen(*arguments: object, **options: Any) -> subprocess.Popen[Any]:
        child = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_heed_ctrl_c,
            **options,
        )
        started.append(child)
        return child

    yield popen
    for child in started:
        with child:
            child.kill()

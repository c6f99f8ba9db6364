"""``mkdesc info``: versions, threads, backends."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import mkdesc
from mkdesc.descriptor import BACKENDS, available_threads

__all__ = ["command"]

_PACKAGES = ("numpy", "scipy", "numba", "safetensors", "opencv-python-headless", "scikit-learn")


def command() -> None:
    """Versions, threads and backends, for bug reports and benchmarks."""
    print(f"mkdesc      {mkdesc.__version__}")
    print(f"python      {platform.python_version()}, {platform.system()} {platform.machine()}")
    for package in _PACKAGES:
        try:
            print(f"{package:<11} {version(package)}")
        except PackageNotFoundError:
            print(f"{package:<11} not installed")
    print(f"threads     {available_threads()}")
    print(f"backends    {', '.join(BACKENDS)}")

"""Fixtures that many tests share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

if find_spec("torch") is None:  # PyTorch is large: the tests of all else run without it
    collect_ignore_glob = ["compute/torch/*", "images/test_cutting_torch.py"]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the repository (or where MKDESC_SHARED says)."""
    folder = Path(os.environ.get("MKDESC_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data in {folder} (set MKDESC_SHARED to where it is)")
    return folder


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

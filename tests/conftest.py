"""Fixtures that many tests share."""

from __future__ import annotations

import os
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

"""Whether Triton kernels can do what plain operations of PyTorch do."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec
from typing import Any


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None


def launches(tensor: Any) -> bool:
    """Whether kernels take this tensor: on CUDA, or anywhere in Triton's interpreter."""
    if not _has_triton():
        return False
    return bool(tensor.is_cuda) or os.environ.get("TRITON_INTERPRET") == "1"


def blocks(n: int, size: int) -> int:
    """How many blocks of a size n things fill.

    >>> blocks(9, 4)
    3
    """
    return -(-n // size)

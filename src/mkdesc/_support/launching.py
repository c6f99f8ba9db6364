"""Devices of PyTorch, and whether Triton kernels can do there what plain operations do."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from mkdesc._support.optional import needed


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None


@lru_cache(maxsize=16)
def _is_new_enough(device: Any) -> bool:
    import torch

    return bool(torch.cuda.get_device_capability(device) >= (8, 0))


def launches(tensor: Any) -> bool:
    """Whether kernels take this tensor: on CUDA, or anywhere in Triton's interpreter."""
    if not _has_triton():
        return False
    if tensor.is_cuda:
        return _is_new_enough(tensor.device)
    return os.environ.get("TRITON_INTERPRET") == "1"


def blocks(n: int, size: int) -> int:
    """How many blocks of a size n things fill.

    >>> blocks(9, 4)
    3
    """
    return -(-n // size)


def chosen_device(device: str | None) -> Any:
    """The device of a name; None: the GPU if there is one.

    >>> chosen_device("cpu")
    device(type='cpu')
    """
    with needed("a device needs PyTorch", "torch"):
        import torch

    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device: expected cpu, cuda, cuda:1, ..., got {device!r}") from None
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device: {device} not available to PyTorch")
    return chosen

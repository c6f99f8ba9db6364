"""The module for numpy arrays: the backend ``torch``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import torch
except ImportError as error:
    raise ImportError("the backend 'torch' needs PyTorch: pip install 'mkdesc[torch]'") from error

from mkdesc._support.launching import chosen_device
from mkdesc.compute.torch.module import Descriptor
from mkdesc.heads.head import Head
from mkdesc.kernels.parametrization import Parametrization
from mkdesc.kernels.patches import check_finite, plain_block

#: Patches that are moved to the device at a time: bounds the memory there.
CHUNK = 1 << 15


@lru_cache(maxsize=8)
def _descriptor(
    parametrization: Parametrization,
    size: int,
    head: Head | None,
    squares: int,
    device: torch.device,
) -> Descriptor:
    fused = device.type != "cpu"  # compiled loops for the CPU are a backend of their own
    made = Descriptor(parametrization, size, head, squares=squares, fused=fused)
    return made.to(device).eval()


def describe(
    patches: NDArray[Any],
    parametrization: Parametrization,
    *,
    head: Head | None = None,
    squares: int = 1,
    n_threads: int = 1,
    first: int = 0,
    device: str | None = None,
) -> NDArray[np.float32]:
    """Descriptors (N, D) of checked patches (N, W, W); see :class:`~..backends.Describe`.

    On ``device``, by default the GPU if there is one. ``n_threads`` is accepted for the sake of
    the common call: PyTorch has its own threads.
    """
    where, size = chosen_device(device), patches.shape[-1]
    descriptor = _descriptor(parametrization, size, head, squares, where)
    out = np.empty((len(patches) // squares, descriptor.out_dims), np.float32)
    step = CHUNK - CHUNK % squares
    for start in range(0, len(patches), step):
        block, scale = plain_block(patches[start : start + step], first + start)
        check_finite(block, first + start)
        if block.dtype != np.uint8:
            block = block * np.float32(scale)
        moved = torch.tensor(block).to(where).view(-1, squares, size, size)
        with torch.inference_mode():
            rows = slice(start // squares, (start + step) // squares)
            out[rows] = descriptor(moved).cpu().numpy()
    return out

"""TFeat, the strongest rival of the paper, in plain numpy.

A patch of 32 x 32 is brought to mean 0 and variance 1; then 32 filters of 7 x 7, tanh, the maximum
of 2 x 2, 64 filters of 6 x 6, tanh, 128 linear combinations, tanh. The result is not normalised.

References
----------
V. Balntas, E. Riba, D. Ponsa, K. Mikolajczyk. Learning local feature descriptors with triplets and
shallow convolutional neural networks. BMVC 2016.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mkdesc._support.files import read_safetensors
from mkdesc.kernels.patches import resize_patches

__all__ = ["TFeat"]

#: Side of the patches the network was trained on.
SIZE = 32
#: Patches at a time; their unfolded neighbourhoods take about 300 kB each.
BLOCK = 128

_SHAPES = {
    "features.1.weight": (32, 1, 7, 7),
    "features.1.bias": (32,),
    "features.4.weight": (64, 32, 6, 6),
    "features.4.bias": (64,),
    "descr.0.weight": (128, 4096),
    "descr.0.bias": (128,),
}

Array = NDArray[np.float32]


class TFeat:
    """TFeat with the given weights: a callable from patches (N, W, W) to (N, 128).

    Parameters
    ----------
    weights
        A safetensors file with the tensors ``features.1``, ``features.4`` and ``descr.0``
        (``weight`` and ``bias`` each) of the authors' network.
    """

    def __init__(self, weights: str | Path) -> None:
        tensors, _ = read_safetensors(weights)
        for name, shape in _SHAPES.items():
            if name not in tensors or tensors[name].shape != shape:
                found = tensors[name].shape if name in tensors else "nothing"
                raise ValueError(f"{weights}: {name}: expected the shape {shape}, got {found}")
        self._tensors = {name: tensors[name].astype(np.float32) for name in _SHAPES}

    def __call__(self, patches: NDArray[np.uint8]) -> Array:
        """Describe patches; those of another size are resampled to 32 x 32."""
        blocks = [
            self._block(resize_patches(patches[start : start + BLOCK], SIZE, start))
            for start in range(0, len(patches), BLOCK)
        ]
        return np.concatenate(blocks) if blocks else np.empty((0, 128), np.float32)

    def _block(self, patches: Array) -> Array:
        centred = patches - patches.mean(axis=(1, 2), keepdims=True)
        # The patches come as 0..1; the network's own small constant is meant for 0..255.
        variance = np.square(centred).mean(axis=(1, 2), keepdims=True)
        maps = (centred / np.sqrt(variance + 1e-5 / 255**2))[..., None]
        maps = np.tanh(self._filter(maps, "features.1"))
        rows, columns = maps.shape[1] // 2, maps.shape[2] // 2
        maps = maps.reshape(len(maps), rows, 2, columns, 2, -1).max(axis=(2, 4))
        maps = np.tanh(self._filter(maps, "features.4"))
        # The weights count channels first.
        flat = maps.transpose(0, 3, 1, 2).reshape(len(maps), -1)
        weight, bias = self._tensors["descr.0.weight"], self._tensors["descr.0.bias"]
        described: Array = np.tanh(flat @ weight.T + bias)
        return described

    def _filter(self, maps: Array, name: str) -> Array:
        """Filters over maps (n, H, W, channels), one product of matrices."""
        weight, bias = self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"]
        windows = sliding_window_view(maps, weight.shape[2:], axis=(1, 2))
        unfolded = windows.reshape(*windows.shape[:3], -1)
        filtered: Array = unfolded @ weight.reshape(len(weight), -1).T + bias
        return filtered

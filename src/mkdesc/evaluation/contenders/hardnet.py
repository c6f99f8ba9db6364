"""HardNet with weights of one's own, in plain PyTorch.

A patch of 32 x 32 is brought to mean 0 and standard deviation 1; then six convolutions of 3 x 3
(32, 32, 64, 64, 128, 128 maps; the third and the fifth halve the side) and one of 8 x 8 (128
numbers), each followed by a batch normalisation without parameters and all but the last by a
rectifier; l2.

References
----------
A. Mishchuk, D. Mishkin, F. Radenovic, J. Matas. Working hard to know your neighbor's margins:
Local descriptor learning loss. NIPS 2017.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import read_safetensors
from mkdesc.kernels.patches import resize_patches

__all__ = ["HardNet"]

#: Side of the patches the network was trained on.
SIZE = 32
#: Patches at a time.
BLOCK = 64
#: What is added to standard deviations of gray values 0..255, and to variances of maps.
EPSILON, EPSILON_NORM = 1e-5, 1e-5


class _Layer(NamedTuple):
    """Number of a convolution in ``features`` (its norm follows), its shape, stride and border."""

    number: int
    shape: tuple[int, int, int, int]
    stride: int = 1
    border: int = 1


_LAYERS = (
    _Layer(0, (32, 1, 3, 3)),
    _Layer(3, (32, 32, 3, 3)),
    _Layer(6, (64, 32, 3, 3), stride=2),
    _Layer(9, (64, 64, 3, 3)),
    _Layer(12, (128, 64, 3, 3), stride=2),
    _Layer(15, (128, 128, 3, 3)),
    _Layer(19, (128, 128, 8, 8), border=0),
)


class HardNet:
    """HardNet with the given weights: a callable from patches (N, W, W) to (N, 128).

    Parameters
    ----------
    weights
        A safetensors file in the layout of kornia's HardNet: ``features.K.weight`` of the
        convolutions, ``running_mean`` and ``running_var`` of the norms, float32 or float16.
    """

    def __init__(self, weights: str | Path) -> None:
        try:
            import torch
        except ImportError:
            raise ImportError("hardnet needs PyTorch: pip install 'mkdesc[torch]'") from None
        tensors, _ = read_safetensors(weights)
        self._torch = torch
        self._layers: list[tuple[Any, Any, _Layer]] = []
        for layer in _LAYERS:
            found = []
            number, count = layer.number, layer.shape[0]
            for name, shape in (
                (f"features.{number}.weight", layer.shape),
                (f"features.{number + 1}.running_mean", (count,)),
                (f"features.{number + 1}.running_var", (count,)),
            ):
                if name not in tensors or tensors[name].shape != shape:
                    got = tensors[name].shape if name in tensors else "nothing"
                    raise ValueError(f"{weights}: {name}: expected the shape {shape}, got {got}")
                found.append(tensors[name].astype(np.float32))
            # A norm with fixed numbers is a factor and an offset of the convolution before it.
            factor = 1 / np.sqrt(found[2] + np.float32(EPSILON_NORM))
            weight, offset = found[0] * factor[:, None, None, None], -found[1] * factor
            self._layers.append((torch.from_numpy(weight), torch.from_numpy(offset), layer))

    def __call__(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Describe patches; those of another size are resampled to 32 x 32."""
        with self._torch.inference_mode():
            blocks = [
                self._block(resize_patches(patches[start : start + BLOCK], SIZE, start))
                for start in range(0, len(patches), BLOCK)
            ]
        return np.concatenate(blocks) if blocks else np.empty((0, 128), np.float32)

    def _block(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        functional = self._torch.nn.functional
        maps = self._torch.from_numpy(255 * patches[:, None])
        deviation, mean = self._torch.std_mean(maps, dim=(1, 2, 3), keepdim=True)
        maps = (maps - mean) / (deviation + EPSILON)
        for weight, offset, layer in self._layers:
            maps = functional.conv2d(maps, weight, offset, layer.stride, layer.border)
            if layer is not _LAYERS[-1]:
                maps = maps.relu_()
        described: NDArray[np.float32] = functional.normalize(maps.flatten(1), dim=1).numpy()
        return described

"""kornia's descriptors, where torch and kornia are installed; nothing is ever downloaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import read_safetensors
from mkdesc._support.text import shorten
from mkdesc.kernels.patches import resize_patches

#: Side of the patches that each of kornia's descriptors is given, and the name under which torch
#: keeps its weights, if it has any.
MODULES = {
    "kornia-sift": (64, None),
    "kornia-hardnet": (32, "checkpoint_liberty_with_aug.pth"),
    "kornia-sosnet": (32, "sosnet_32x32_liberty.pth"),
    "kornia-mkd": (64, None),
}
#: Networks whose weights a file gives, in kornia's layout: what kornia calls them.
#: They take patches of 32 x 32 with gray values 0..255, as they were trained.
NETWORKS = {"hardnet": "HardNet", "tfeat": "TFeat"}
_WITH_WEIGHTS = {"kornia-hardnet": "HardNet", "kornia-sosnet": "SOSNet", **NETWORKS}
BLOCK = 256


def torch_and_kornia(name: str) -> tuple[Any, Any]:
    """Both modules, or an ImportError that says what needs them."""
    try:
        import kornia
        import torch
    except ImportError:
        raise ImportError(f"{name} needs torch and kornia: pip install torch kornia") from None
    return torch, kornia


def weights_file(name: str, given: str | None) -> Path | None:
    """The file of weights: the given one, or what torch's cache already holds."""
    if given is not None:
        if not Path(given).is_file():
            raise ValueError(f"{name}: no such file of weights: {given}")
        return Path(given)
    _, cached = MODULES[name]
    if cached is None:
        return None
    torch, _ = torch_and_kornia(name)
    file = Path(torch.hub.get_dir()) / "checkpoints" / cached
    if not file.is_file():
        raise ValueError(
            f"{name} needs its weights: give them as {name}:FILE, or put {cached} into "
            f"{file.parent}; nothing is downloaded"
        )
    return file


def describe_with_kornia(
    name: str, weights: Path | None = None, whitening: tuple[str, str] | None = None
) -> Callable[[NDArray[np.uint8]], NDArray[np.float32]]:
    """One of kornia's descriptors, as a function of patches (N, W, W).

    Parameters
    ----------
    name
        One of :data:`MODULES` or of :data:`NETWORKS`.
    weights
        File of weights, safetensors or what torch loads as weights only. For ``kornia-mkd`` its
        whitening, safetensors in the layout of kornia/mkd; None: raw.
    whitening
        For ``kornia-mkd``: training set and method.
    """
    torch, kornia = torch_and_kornia(name)
    size, scale = (32, 255) if name in NETWORKS else (MODULES[name][0], 1)
    if name == "kornia-sift":
        module = kornia.feature.SIFTDescriptor(size, rootsift=False)
    elif name == "kornia-mkd":
        module = _mkd(torch, kornia, size, weights, whitening)
    else:
        module = getattr(kornia.feature, _WITH_WEIGHTS[name])(pretrained=False)
        state = load_state(torch, weights)
        try:
            module.load_state_dict(state.get("state_dict", state))
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{weights}: {shorten(reason, 400)}") from None
    module = module.eval()

    def describe(patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        if not len(patches):  # some networks cannot be asked
            return describe(np.zeros((1, size, size), np.uint8))[:0]
        rows = []
        with torch.inference_mode():
            for start in range(0, len(patches), BLOCK):
                block = resize_patches(patches[start : start + BLOCK], size, start)
                rows.append(module(torch.from_numpy(scale * block[:, None])).numpy())
        return np.concatenate(rows)

    return describe


def load_state(torch: Any, weights: Path | None) -> dict[str, Any]:
    """Weights by name, of a safetensors file or what torch loads as weights only."""
    if weights is None:
        raise ValueError("weights: expected a file, got None")
    if weights.suffix == ".safetensors":
        tensors, _ = read_safetensors(weights)
        return {key: torch.from_numpy(tensor) for key, tensor in tensors.items()}
    try:
        state: dict[str, Any] = torch.load(weights, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{weights}: torch cannot load it as weights only ({reason})") from None
    return state


def _mkd(
    torch: Any, kornia: Any, size: int, weights: Path | None, whitening: tuple[str, str] | None
) -> Any:
    module = kornia.feature.MKDDescriptor(size, "concat", whitening=None)
    if weights is None:
        return module
    if whitening is None:
        raise ValueError("kornia-mkd: expected kornia-mkd:FILE:SET:METHOD")
    subset, method = whitening
    state = load_state(torch, weights)
    key = "lw" if method == "lw" else "pca"
    parts = ("mean", "eigvecs", "eigvals")
    if any(f"{subset}.{key}.{part}" not in state for part in parts):
        raise ValueError(f"{weights}: it has no whitening {subset}.{key}")
    model = {key: {part: state[f"{subset}.{key}.{part}"] for part in parts}}
    layer = kornia.feature.mkd.Whitening(method, model, in_dims=module.odims, output_dims=128)
    return torch.nn.Sequential(module, layer)

"""Weights of learned detectors: small stacks of convolutions, in safetensors files with a card.

The file has ``convs.I.weight`` (out, in, k, k) and ``convs.I.bias`` (out,) for I = 0, 1, ...: the
first layer takes one channel, the last gives one, the score. How many layers and channels there
are is for the file to say.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path, read_safetensors
from mkdesc._support.targets import check_target
from mkdesc._support.text import shorten

#: What files of weights have in them.
OWN_WEIGHTS = rb"(?s)\A.{8}\{.*\"mkdesc-keypoints\""

Floats = NDArray[np.float32]

_SUFFIX = ".safetensors"
_CARD = "mkdesc-keypoints"
#: Files with more than this are no small detectors.
MOST_LAYERS, MOST_CHANNELS, LARGEST_KERNEL = 16, 256, 5
#: Squares of larger scores, which places are computed by, come near the end of float32.
LARGEST_SCORE = 1e15
_LONGEST_MESSAGE = 400


class Convolution(NamedTuple):
    """A layer: weights (out, in, k, k) and biases (out,), float32."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True, eq=False)
class Weights:
    """A network that gives every pixel a score: convolutions with relu between them.

    Attributes
    ----------
    layers
        The first takes one channel, the last gives one.
    card
        What it was taught on, and how: plain values.

    Examples
    --------
    >>> box = Convolution(np.ones((1, 1, 3, 3), np.float32), np.zeros(1, np.float32))
    >>> Weights((box, box)).margin, Weights((box, box)).count
    (2, 20)
    """

    layers: tuple[Convolution, ...]
    card: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= len(self.layers) <= MOST_LAYERS:
            raise ValueError(f"expected 1 to {MOST_LAYERS} layers, got {len(self.layers)}")
        before, most = 1, 255.0
        for i, (weight, bias) in enumerate(self.layers):
            if weight.dtype != np.float32 or bias.dtype != np.float32:
                raise ValueError(f"convs.{i}: expected float32, got {weight.dtype}, {bias.dtype}")
            shape = weight.shape
            if len(shape) != 4 or shape[1] != before or shape[2] != shape[3]:
                raise ValueError(f"convs.{i}.weight: expected (out, {before}, k, k), got {shape}")
            if shape[2] % 2 == 0 or shape[2] > LARGEST_KERNEL:
                raise ValueError(
                    f"convs.{i}.weight: expected an odd k up to {LARGEST_KERNEL}, got {shape[2]}"
                )
            if not 1 <= shape[0] <= MOST_CHANNELS:
                raise ValueError(
                    f"convs.{i}.weight: expected 1 to {MOST_CHANNELS} channels, got {shape[0]}"
                )
            if bias.shape != shape[:1]:
                raise ValueError(f"convs.{i}.bias: expected {shape[:1]}, got {bias.shape}")
            if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
                raise ValueError(f"convs.{i}: expected finite numbers, got NaN or infinity")
            if not weight.any():
                raise ValueError(f"convs.{i}.weight: expected some that are not zero")
            sums = np.abs(weight).sum((1, 2, 3), np.float64) * most + np.abs(bias)
            most = float(sums.max())
            if most > LARGEST_SCORE:
                raise ValueError(
                    f"convs.{i}: expected sums up to {LARGEST_SCORE:g}, got up to {most:g}"
                )
            before = shape[0]
        if before != 1:
            raise ValueError(f"the last layer gives {before} channels, expected 1")

    @property
    def margin(self) -> int:
        """How many pixels around its own a score depends on."""
        return sum(weight.shape[2] // 2 for weight, _ in self.layers)

    @property
    def count(self) -> int:
        """How many numbers there are in all."""
        return sum(weight.size + bias.size for weight, bias in self.layers)


def bundled_weights() -> list[str]:
    """Names of the weights that come with the package."""
    folder = files("mkdesc.images.detectors") / "weights"
    if not folder.is_dir():
        return []
    names = (item.name for item in folder.iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def load_weights(weights: str | os.PathLike[str]) -> Weights:
    """Read weights.

    Parameters
    ----------
    weights
        Name of bundled ones, or a file.
    """
    if not isinstance(weights, (str, os.PathLike)):
        raise ValueError(f"weights: expected a name or a file, got {weights!r}")
    name, path = os.fspath(weights), weights_file(weights)
    if not path.is_file():
        known = ", ".join(bundled_weights()) or "none are bundled"
        raise FileNotFoundError(f"no weights {name!r}: neither a file nor one of {known}")
    return _read(name, path)


def weights_file(weights: str | os.PathLike[str]) -> Path:
    """The file that weights are read from, by their name or their file."""
    name = os.fspath(weights)
    if name in bundled_weights():
        return Path(str(files("mkdesc.images.detectors") / "weights" / f"{name}{_SUFFIX}"))
    return Path(name)


def _read(name: str, path: Path) -> Weights:
    try:
        tensors, metadata = read_safetensors(path)
        count = sum(key.endswith(".weight") for key in tensors)
        expected = {f"convs.{i}.{part}" for i in range(count) for part in ("weight", "bias")}
        if not count or set(tensors) != expected:
            found = ", ".join(sorted(tensors)) or "nothing"
            raise ValueError(f"expected convs.0.weight, convs.0.bias, ..., got {found}")
        layers = tuple(
            Convolution(tensors[f"convs.{i}.weight"], tensors[f"convs.{i}.bias"])
            for i in range(count)
        )
        card = json.loads(metadata.get(_CARD, "{}"))
        if not isinstance(card, dict):
            raise ValueError(f"its card is not a JSON object but {type(card).__name__}")
        return Weights(layers, card)
    except (ValueError, RecursionError) as error:  # JSON's error is a ValueError
        text = str(error).removeprefix(f"{path}: ")
        raise ValueError(f"{name}: {shorten(text, _LONGEST_MESSAGE)}") from None


def save_weights(
    weights: Weights, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write weights and their card to a safetensors file.

    A file that has no such weights is replaced only if ``overwrite`` says so.
    """
    from safetensors.numpy import save

    check_target(path, own=OWN_WEIGHTS, overwrite=overwrite)
    tensors: dict[str, Floats] = {}
    for i, (weight, bias) in enumerate(weights.layers):
        tensors |= {f"convs.{i}.weight": weight, f"convs.{i}.bias": bias}
    card = json.dumps(weights.card, sort_keys=True, allow_nan=False)
    with atomic_path(path) as partial:
        partial.write_bytes(save(tensors, {_CARD: card}))

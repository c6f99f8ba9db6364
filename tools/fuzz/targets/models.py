"""Models, statistics, kernels."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from targets.target import Change, Target, rng

__all__ = ["MODELS"]


def _models(folder: Path) -> None:
    from mkdesc import MKD, Whitening, save_model
    from mkdesc.heads.head import L2, Affine, Head, Relu
    from mkdesc.heads.whitening import linear_head

    kernels, matrix = "x(1,1)*theta(8,2)", rng().normal(size=(15, 4)).astype(np.float32)
    plain = MKD(kernels)
    head = linear_head(matrix[:, 0].copy(), matrix, square_root=True)
    plain.whitening = Whitening.of_head(head, method="pca", dims=4)
    save_model(plain, folder / "linear.safetensors", {"source": "photographs", "count": 3})
    stages = (Affine(matrix), Relu(2), Affine(matrix[:4].copy(), matrix[3]), L2())
    save_model(MKD(kernels, head=Head(stages)), folder / "hidden.safetensors")


def _read_models(folder: Path) -> None:
    from mkdesc.models import load_model, read_card

    for file in folder.iterdir():
        load_model(file)
        "\n".join(read_card(file).lines())


def _card(name: str, data: bytes, change: Change) -> bytes:
    """A model file whose card alone is damaged, with a true fingerprint where it can have one."""
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    card = change(header["__metadata__"]["mkdesc"].encode()).decode("utf-8", "replace")
    header["__metadata__"]["mkdesc"] = card
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def _kornia(folder: Path) -> None:
    from safetensors.numpy import save_file

    numbers = rng()
    tensors: dict[str, NDArray[Any]] = {}
    for kind in ("lw", "pca"):
        tensors[f"liberty.{kind}.mean"] = numbers.normal(size=63).astype(np.float32)
        tensors[f"liberty.{kind}.eigvecs"] = numbers.normal(size=(63, 63)).astype(np.float32)
        tensors[f"liberty.{kind}.eigvals"] = numbers.random(63).astype(np.float32) + 1
    save_file(tensors, folder / "mkd.safetensors")


def _read_kornia(folder: Path) -> None:
    from mkdesc.models import load_model

    for method in ("lw", "pca"):
        load_model(folder / "mkd.safetensors", "liberty", method, 16)


def _statistics(folder: Path) -> None:
    from mkdesc import Statistics

    labels = np.repeat(np.arange(10), 2)
    Statistics(5).update(rng().normal(size=(20, 5)), labels).save(folder / "s.safetensors")


def _read_statistics(folder: Path) -> None:
    from mkdesc import Statistics

    _ = Statistics.load(folder / "s.safetensors").covariance


def _kernels(folder: Path) -> None:
    texts = (
        "polar+cartesian",
        "x(1,1)*theta(8,3) + rho(4,2)*phi(8,2)",
        "standard: x(8,2)*y(8,2)*theta(8,3) + x(8,2)*y(8,2)*intensity(2) + x(8,2)*shape",
    )
    for number, text in enumerate(texts):
        (folder / str(number)).write_text(text, encoding="utf-8")


def _read_kernels(folder: Path) -> None:
    from mkdesc import as_parametrization

    for file in folder.iterdir():
        str(as_parametrization(file.read_bytes().decode("utf-8", "replace")))


def _weights(folder: Path) -> None:
    from mkdesc.images.detectors.learned_weights import Convolution, Weights, save_weights

    numbers = rng()
    shapes = ((4, 1, 5, 5), (1, 4, 3, 3))
    layers = tuple(
        Convolution(numbers.normal(size=s).astype(np.float32), np.zeros(s[0], np.float32))
        for s in shapes
    )
    save_weights(Weights(layers, {"photos": 3, "kind": "turned"}), folder / "w.safetensors")


def _read_weights(folder: Path) -> None:
    """Read, and used: what is not refused must be able to compute."""
    from mkdesc.images.detectors.learned_reference import maxima
    from mkdesc.images.detectors.learned_weights import load_weights

    image = rng().integers(0, 256, (60, 70), np.uint8)
    maxima(image, load_weights(folder / "w.safetensors"), 2)


#: All of them.
MODELS = (
    Target("weights", _weights, ("w.safetensors",), _read_weights),
    Target("models", _models, ("linear.safetensors", "hidden.safetensors"), _read_models),
    Target("cards", _models, ("linear.safetensors", "hidden.safetensors"), _read_models, _card),
    Target("kornia", _kornia, ("mkd.safetensors",), _read_kornia),
    Target("statistics", _statistics, ("s.safetensors",), _read_statistics),
    Target("kernels", _kernels, ("0", "1", "2"), _read_kernels, named=False),
)

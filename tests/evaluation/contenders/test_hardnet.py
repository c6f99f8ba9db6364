import numpy as np
import pytest
from safetensors.numpy import save_file

from mkdesc.evaluation.contenders import get_descriptor
from mkdesc.evaluation.contenders.hardnet import _LAYERS, HardNet

pytest.importorskip("torch")


def weights(rng):
    tensors = {}
    for number, shape, *_ in _LAYERS:
        scale = np.sqrt(2 / np.prod(shape[1:]))
        tensors[f"features.{number}.weight"] = rng.normal(0, scale, shape)
        tensors[f"features.{number + 1}.running_mean"] = rng.normal(0, 0.2, shape[0])
        tensors[f"features.{number + 1}.running_var"] = rng.uniform(0.5, 2, shape[0])
    return {name: tensor.astype(np.float16) for name, tensor in tensors.items()}


def slow(tensors, patch):
    """The network, written out with loops over pixels."""
    x = patch.astype(np.float64)
    maps = ((x - x.mean()) / (x.std(ddof=1) + 1e-5))[None]
    for number, shape, stride, border in _LAYERS:
        weight = tensors[f"features.{number}.weight"].astype(np.float64)
        padded = np.pad(maps, [(0, 0), (border, border), (border, border)])
        side = (padded.shape[-1] - shape[-1]) // stride + 1
        out = np.empty((shape[0], side, side))
        for i in range(side):
            for j in range(side):
                rows, columns = (
                    slice(i * stride, i * stride + shape[-1]),
                    slice(j * stride, j * stride + shape[-1]),
                )
                out[:, i, j] = (weight * padded[:, rows, columns]).sum(axis=(1, 2, 3))
        mean, variance = (
            tensors[f"features.{number + 1}.running_{name}"].astype(np.float64)[:, None, None]
            for name in ("mean", "var")
        )
        out = (out - mean) / np.sqrt(variance + 1e-5)
        maps = out if number == 19 else np.maximum(out, 0)
    flat = maps.ravel()
    return flat / np.linalg.norm(flat)


def test_against_loops(tmp_path, rng):
    tensors = weights(rng)
    save_file(tensors, tmp_path / "w.safetensors")
    patches = rng.integers(0, 256, (2, 32, 32), np.uint8)
    hardnet = get_descriptor(f"hardnet:{tmp_path / 'w.safetensors'}").describe
    np.testing.assert_allclose(hardnet(patches), [slow(tensors, p) for p in patches], atol=1e-5)
    assert hardnet(patches[:0]).shape == (0, 128)
    assert hardnet(rng.integers(0, 256, (2, 64, 64), np.uint8)).shape == (2, 128)


def test_wrong_weights(tmp_path):
    save_file({"features.0.weight": np.zeros((3, 3), np.float32)}, tmp_path / "w.safetensors")
    with pytest.raises(
        ValueError, match=r"features\.0\.weight: expected the shape \(32, 1, 3, 3\), got \(3, 3\)"
    ):
        HardNet(tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match="expected hardnet:FILE with a file of weights"):
        get_descriptor("hardnet:nowhere")

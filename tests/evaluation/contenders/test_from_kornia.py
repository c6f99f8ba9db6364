"""HardNet and TFeat with weights from a file, against networks that are written out with loops."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from mkdesc.evaluation.contenders.registry import get_descriptor

pytest.importorskip("kornia")

#: Number of a convolution of HardNet, its shape, stride and border; its norm follows.
HARDNET = (
    (0, (32, 1, 3, 3), 1, 1),
    (3, (32, 32, 3, 3), 1, 1),
    (6, (64, 32, 3, 3), 2, 1),
    (9, (64, 64, 3, 3), 1, 1),
    (12, (128, 64, 3, 3), 2, 1),
    (15, (128, 128, 3, 3), 1, 1),
    (19, (128, 128, 8, 8), 1, 0),
)
TFEAT = {
    "features.1.weight": (32, 1, 7, 7),
    "features.1.bias": (32,),
    "features.4.weight": (64, 32, 6, 6),
    "features.4.bias": (64,),
    "descr.0.weight": (128, 4096),
    "descr.0.bias": (128,),
}


def hardnet_weights(rng):
    tensors = {}
    for number, shape, *_ in HARDNET:
        scale = np.sqrt(2 / np.prod(shape[1:]))
        tensors[f"features.{number}.weight"] = rng.normal(0, scale, shape)
        tensors[f"features.{number + 1}.running_mean"] = rng.normal(0, 0.2, shape[0])
        tensors[f"features.{number + 1}.running_var"] = rng.uniform(0.5, 2, shape[0])
    return {name: tensor.astype(np.float16) for name, tensor in tensors.items()}


def tfeat_weights(rng):
    return {name: rng.normal(0, 0.05, shape).astype(np.float32) for name, shape in TFEAT.items()}


def convolved(maps, weight, stride=1):
    side = (maps.shape[-1] - weight.shape[-1]) // stride + 1
    out = np.empty((len(weight), side, side))
    for i in range(side):
        for j in range(side):
            top, left = i * stride, j * stride
            window = maps[:, top : top + weight.shape[-1], left : left + weight.shape[-1]]
            out[:, i, j] = (weight * window).sum(axis=(1, 2, 3))
    return out


def slow_hardnet(tensors, patch):
    x = patch.astype(np.float64)
    maps = ((x - x.mean()) / x.std(ddof=1))[None]
    for number, _, stride, border in HARDNET:
        weight = tensors[f"features.{number}.weight"].astype(np.float64)
        out = convolved(np.pad(maps, [(0, 0), (border, border), (border, border)]), weight, stride)
        mean, variance = (
            tensors[f"features.{number + 1}.running_{name}"].astype(np.float64)[:, None, None]
            for name in ("mean", "var")
        )
        out = (out - mean) / np.sqrt(variance + 1e-5)
        maps = out if number == 19 else np.maximum(out, 0)
    flat = maps.ravel()
    return flat / np.linalg.norm(flat)


def slow_tfeat(tensors, patch):
    x = patch.astype(np.float64)
    maps = ((x - x.mean()) / np.sqrt(x.var() + 1e-5))[None]
    for layer in ("features.1", "features.4"):
        bias = tensors[f"{layer}.bias"][:, None, None]
        maps = np.tanh(convolved(maps, tensors[f"{layer}.weight"]) + bias)
        if layer == "features.1":
            maps = maps.reshape(32, 13, 2, 13, 2).max(axis=(2, 4))
    return np.tanh(tensors["descr.0.weight"] @ maps.ravel() + tensors["descr.0.bias"])


@pytest.mark.parametrize(
    ("name", "weights", "slow"),
    [("hardnet", hardnet_weights, slow_hardnet), ("tfeat", tfeat_weights, slow_tfeat)],
)
def test_networks_against_loops(tmp_path, rng, name, weights, slow):
    tensors = weights(rng)
    save_file(tensors, tmp_path / "w.safetensors")
    # The second patch has little contrast: what is added to variances is meant for 0..255.
    patches = rng.integers(0, 256, (2, 32, 32), np.uint8)
    patches[1] = 100 + patches[1] % 4
    describe = get_descriptor(f"{name}:{tmp_path / 'w.safetensors'}").describe
    np.testing.assert_allclose(describe(patches), [slow(tensors, p) for p in patches], atol=1e-5)
    assert describe(patches[:0]).shape == (0, 128)
    assert describe(rng.integers(0, 256, (2, 64, 64), np.uint8)).shape == (2, 128)


@pytest.mark.parametrize(
    ("name", "tensor"), [("hardnet", "features.0.weight"), ("tfeat", "features.1.weight")]
)
def test_wrong_weights(tmp_path, name, tensor):
    file = tmp_path / "w.safetensors"
    save_file({tensor: np.zeros((3, 3), np.float32)}, file)
    with pytest.raises(ValueError, match=r"size mismatch|Missing key") as error:
        get_descriptor(f"{name}:{file}")
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=f"expected {name}:FILE with a file of weights"):
        get_descriptor(f"{name}:nowhere")

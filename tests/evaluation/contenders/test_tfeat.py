import numpy as np
import pytest
from safetensors.numpy import save_file

from mkdesc.evaluation.contenders.tfeat import _SHAPES, TFeat


def slow(tensors, patch):
    """The network, written out with loops."""
    x = patch.astype(np.float64)
    x = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    maps = x[None]
    for layer in ("features.1", "features.4"):
        weight, bias = tensors[f"{layer}.weight"], tensors[f"{layer}.bias"]
        side, n = weight.shape[-1], maps.shape[-1]
        out = np.empty((len(weight), n - side + 1, n - side + 1))
        for i in range(n - side + 1):
            for j in range(n - side + 1):
                window = maps[:, i : i + side, j : j + side]
                out[:, i, j] = (weight * window).sum(axis=(1, 2, 3)) + bias
        maps = np.tanh(out)
        if layer == "features.1":
            maps = maps.reshape(32, 13, 2, 13, 2).max(axis=(2, 4))
    return np.tanh(tensors["descr.0.weight"] @ maps.ravel() + tensors["descr.0.bias"])


def test_against_loops(tmp_path, rng):
    tensors = {
        name: rng.normal(0, 0.05, shape).astype(np.float32) for name, shape in _SHAPES.items()
    }
    save_file(tensors, tmp_path / "w.safetensors")
    patches = rng.integers(0, 256, (2, 32, 32), np.uint8)
    got = TFeat(tmp_path / "w.safetensors")(patches)
    expected = [slow(tensors, patch) for patch in patches]
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert TFeat(tmp_path / "w.safetensors")(patches[:0]).shape == (0, 128)


def test_wrong_weights(tmp_path):
    save_file({"features.1.weight": np.zeros((3, 3), np.float32)}, tmp_path / "w.safetensors")
    with pytest.raises(
        ValueError, match=r"features\.1\.weight: expected the shape \(32, 1, 7, 7\)"
    ):
        TFeat(tmp_path / "w.safetensors")

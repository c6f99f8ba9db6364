"""Several squares of a keypoint as a module, with the fused kernels, and as an ONNX file."""

import numpy as np
import pytest
import torch

from mkdesc import MKD
from mkdesc.heads.head import L2, Affine, Head
from mkdesc.torch import MKDescriptor, export_onnx


@pytest.fixture(scope="module")
def patches():
    return np.random.default_rng(1).integers(0, 256, (60, 2, 24, 24), np.uint8)


@pytest.fixture(scope="module")
def mkd(look_at):
    return look_at(14, 40)


def test_the_module_agrees_and_goes_back(mkd, patches):
    descriptor = MKDescriptor(mkd)
    assert "squares=2" in repr(descriptor)
    found = descriptor(torch.from_numpy(patches))  # in more than one chunk
    np.testing.assert_allclose(found.numpy(), mkd.transform(patches), atol=2e-4)
    back = descriptor.to_mkd()
    assert back.side == (14, 40)
    np.testing.assert_allclose(back.transform(patches), mkd.transform(patches), atol=1e-6)
    same = MKDescriptor(parametrization="extended-24", patch_size=24, head=mkd.head, side=(14, 40))
    np.testing.assert_array_equal(same(torch.from_numpy(patches)).numpy(), found.numpy())
    with pytest.raises(ValueError, match=r"expected \(N, 2, 24, 24\), got \(60, 24, 24\)"):
        descriptor(torch.from_numpy(patches[:, 0]))
    with pytest.raises(ValueError, match="side: need a parametrization"):
        MKDescriptor(mkd, side=(14, 40))


def test_gradients_reach_every_square(mkd, patches):
    floats = torch.from_numpy(patches[:2] / np.float32(255)).requires_grad_()
    MKDescriptor(mkd)(floats)[:, 0].sum().backward()
    assert (floats.grad.abs().amax(dim=(2, 3)) > 0).all()


def test_onnx_takes_stacks(tmp_path, rng, patches):
    """Of kernels that are soon written."""
    onnxruntime = pytest.importorskip("onnxruntime")
    head = Head((Affine(rng.normal(size=(2 * 7, 5))), L2()))
    mkd, file = MKD("theta(8,3)", 24, head=head, side=(14, 40)), tmp_path / "two.onnx"
    export_onnx(MKDescriptor(mkd), file, "uint8")
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    for n in (1, 5):
        (found,) = session.run(["descriptors"], {"patches": patches[:n]})
        np.testing.assert_allclose(found, mkd.transform(patches[:n]), atol=2e-4)

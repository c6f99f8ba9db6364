"""The PyTorch module against the numpy definition and the compiled backend."""

import pickle

import numpy as np
import pytest
import torch
from torch import nn

import mkdesc
from mkdesc import MKD, bundled_models, load_model
from mkdesc.compute.backends import load_backend
from mkdesc.compute.torch import module
from mkdesc.evaluation.speed import textured_patches
from mkdesc.heads.head import L2, Affine, Head, Power, Relu
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.torch import MKDescriptor

SPECS = [
    "polar+cartesian",
    "theta(3,2)*relative_theta(2,1)*x(1,1)",
    "x(2,3)*y(3,2)*rho(1,1)*phi(4,1)",
    "x(2,3)*theta(8,2)+y(1,1)",
]
BEYOND = [
    "extended",
    "standard: shape*intensity(2)*rho(2,2)+relative_theta(8,3)*x(1,1)+shape",
    "standard-24: x(8,2)*y(8,2)*theta(8,3)",
]


def photographs(shared, size):
    """Real patches; the last three of the file are a ramp, noise and a flat patch."""
    if size == 24:
        return np.ascontiguousarray(photographs(shared, 64)[:, 8:56:2, 8:56:2])
    return np.load(shared / f"golden/mkd_pytorch_{size}px.npz")["patches"][:-3]


def describe(descriptor, patches):
    """By plain operations: compiled loops are those of test_compiled.py."""
    descriptor.fused = False
    with torch.inference_mode():
        return descriptor(torch.as_tensor(patches)).numpy()


@pytest.mark.parametrize("name", bundled_models())
def test_bundled_models_describe_as_on_the_cpu(shared, name):
    mkd = load_model(name)
    descriptor = MKDescriptor(name)
    photos = photographs(shared, mkd.patch_size)
    if mkd.squares > 1:
        photos = np.stack([np.roll(photos, k, axis=0) for k in range(mkd.squares)], axis=1)
    for patches in (photos, photos[:5].astype(np.float32) / 300):
        np.testing.assert_allclose(
            describe(descriptor, patches), mkd.transform(patches), atol=1e-5, rtol=0
        )


def test_floats_from_0_to_255_are_refused():
    wide = 255 * torch.rand(3, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    descriptor = MKDescriptor(parametrization="cartesian", patch_size=32)
    wide[:2] /= 255
    with pytest.raises(ValueError, match=r"patches\[2\] has values from .* divide by 255"):
        descriptor(wide)
    descriptor(wide / 255 * 1.2 - 0.1)  # interpolation overshoots


def test_the_definition_through_a_head_with_a_hidden_layer(rng):
    both, down = rng.normal(size=(63, 24)), rng.normal(size=(24, 6))
    head = Head(
        (Power(0.75), L2(), Affine(both, rng.normal(size=63)), Relu(4), Affine(down), L2())
    )
    patches = rng.integers(0, 256, (7, 16, 16), np.uint8)
    raw = MKD("cartesian", 16, backend="reference").transform(patches)
    descriptor = MKDescriptor(parametrization="cartesian", patch_size=16, head=head)
    np.testing.assert_allclose(describe(descriptor, patches), head.apply(raw), atol=2e-6)
    assert descriptor.to_mkd().head.stages[3] == Relu(4)
    np.testing.assert_allclose(descriptor.to_mkd().transform(patches), head.apply(raw), atol=2e-6)


@pytest.mark.parametrize("size", [8, 9, 31])
@pytest.mark.parametrize("spec", SPECS)
def test_any_kernels_and_size(rng, size, spec):
    patches = rng.integers(0, 256, (6, size, size), np.uint8)
    patches[0, : size // 2] = 9  # flat above, and a symmetric middle
    patches[1] = np.minimum(patches[1], patches[1, ::-1])
    expected = MKD(spec, size, backend="reference").transform(patches)
    descriptor = MKDescriptor(parametrization=spec, patch_size=size)
    np.testing.assert_allclose(describe(descriptor, patches), expected, atol=1e-6)


@pytest.mark.parametrize("spec", BEYOND)
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_beyond_the_paper_at_any_multiple_of_the_side(rng, spec, factor):
    parametrization = as_parametrization(spec)
    size = parametrization.preparation.reduced_size * factor
    patches = rng.integers(0, 256, (4, size, size), np.uint8)
    patches[1] = 7  # flat
    patches[2, : size // 2], patches[2, size // 2 :] = 100, 101  # a faint step
    expected = MKD(spec, size, backend="reference").transform(patches)
    descriptor = MKDescriptor(
        parametrization=spec, patch_size=parametrization.preparation.reduced_size
    )
    np.testing.assert_allclose(describe(descriptor, patches), expected, atol=1e-4)


def test_features_of_ones_own(rng):
    mkdesc.register_feature("doubled", lambda image: np.stack([image, 2 * image], axis=-1), 2)
    spec = "standard: x(2,1)*doubled(2)+theta(8,1)"
    patches = rng.integers(0, 256, (3, 32, 32), np.uint8)
    expected = MKD(spec, 32, backend="reference").transform(patches)
    descriptor = MKDescriptor(parametrization=spec, patch_size=32)
    np.testing.assert_allclose(describe(descriptor, patches), expected, atol=1e-5)


@pytest.mark.parametrize("gain", [1e-30, 1e-12, 1, 255, 1e9, 1e37])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_gain(rng, gain, dtype):
    patches = (rng.random((4, 16, 16)) * gain).astype(dtype)
    parametrization = as_parametrization("polar+cartesian")
    expected = load_backend("reference")(patches, parametrization)
    descriptor = module.Descriptor(parametrization, 16)
    np.testing.assert_allclose(describe(descriptor, patches), expected, atol=1e-5)


def test_channels_integers_and_chunks_do_not_matter(rng):
    descriptor = MKDescriptor(parametrization="polar+cartesian", patch_size=32)
    patches = rng.integers(0, 256, (module.CPU_CHUNK * 2 + 5, 32, 32), np.uint8)
    whole = describe(descriptor, patches)
    one_by_one = np.concatenate([describe(descriptor, patches[i : i + 1]) for i in range(9)])
    np.testing.assert_allclose(one_by_one, whole[:9], atol=1e-6)
    np.testing.assert_array_equal(describe(descriptor, patches[:, None]), whole)
    wide = patches.astype(np.uint16) * 257
    np.testing.assert_allclose(describe(descriptor, wide), whole, atol=1e-6)
    assert describe(descriptor, patches[:0]).shape == (0, 238)


@pytest.mark.parametrize("model", ["paper-32px", "extended"])
def test_half_precision_and_autocast(shared, model):
    patches = torch.from_numpy(photographs(shared, 32))
    with torch.inference_mode():
        full = MKDescriptor(model)(patches)
        with torch.autocast("cpu", torch.float16):
            cast = MKDescriptor(model)(patches)
        half = MKDescriptor(model).half()(patches.half() / 255)
    assert half.dtype == torch.float16
    assert torch.cosine_similarity(full, cast).min() > 0.9999
    assert torch.cosine_similarity(full, half.float()).min() > 0.999  # its input is rounded too


def test_double_precision_is_that_of_the_definition(rng):
    patches = rng.random((3, 16, 16))
    descriptor = MKDescriptor(parametrization="polar", patch_size=16).double()
    found = describe(descriptor, patches)
    assert found.dtype == np.float64
    # The reference is double until its very end.
    expected = MKD("polar", 16, backend="reference").transform(patches)
    np.testing.assert_allclose(found, expected, atol=6e-8)


def test_modules_are_kept_moved_and_pickled(rng, tmp_path):
    patches = torch.from_numpy(rng.integers(0, 256, (3, 32, 32), np.uint8))
    descriptor = MKDescriptor("paper-32px")
    expected = descriptor(patches)
    assert set(descriptor.state_dict()) == {f"head.2.{n}" for n in ("weight", "bias", "centres")}
    other = MKDescriptor("paper-32px")
    nn.init.zeros_(other.head[2].weight)
    other.load_state_dict(descriptor.state_dict())
    for same in (other, pickle.loads(pickle.dumps(descriptor))):
        assert torch.equal(same(patches), expected)


@pytest.mark.parametrize("model", ["paper-32px", "extended"])
def test_exported_and_compiled(model):
    patches = torch.from_numpy(textured_patches(3, 32))
    descriptor = MKDescriptor(model).eval()
    expected = descriptor(patches)
    batch = torch.export.Dim("batch", min=1)
    exported = torch.export.export(descriptor, (patches,), dynamic_shapes=({0: batch},)).module()
    more = torch.cat([patches, patches])
    torch.testing.assert_close(exported(more)[3:], expected, atol=1e-5, rtol=0)
    compiled = torch.compile(descriptor, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(patches), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "patches",
    [torch.zeros(2, 32, 31), torch.zeros(2, 3, 32, 32), torch.zeros(2, 40, 40), torch.zeros(32)],
)
def test_other_shapes_are_refused(patches):
    with pytest.raises(ValueError, match=r"patches: expected \(N, 32, 32\).*got \("):
        MKDescriptor("paper-32px")(patches)


def test_other_types_and_contradictions_are_refused():
    with pytest.raises(ValueError, match=r"got torch\.int32"):
        MKDescriptor("paper-32px")(torch.zeros(2, 32, 32, dtype=torch.int32))
    with pytest.raises(ValueError, match="expected one of them"):
        MKDescriptor("paper", parametrization="polar")
    with pytest.raises(ValueError, match="need a parametrization"):
        MKDescriptor("paper", patch_size=32)
    with pytest.raises(ValueError, match="patch_size"):
        MKDescriptor(parametrization="polar", patch_size=4)

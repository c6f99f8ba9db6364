"""Gradients: right, and finite everywhere."""

import numpy as np
import pytest
import torch

from mkdesc import MKD
from mkdesc.torch import MKDescriptor


def make(spec, size, **options):
    return MKDescriptor(parametrization=spec, patch_size=size, **options)


@pytest.mark.parametrize("spec", ["phi(8,1)*relative_theta(8,1)", "x(1,1)*theta(8,1)+rho(2,1)"])
def test_gradients_of_patches_are_those_of_differences(rng, spec):
    descriptor = make(spec, 8).double()
    patches = torch.from_numpy(rng.random((1, 8, 8))).requires_grad_()
    assert torch.autograd.gradcheck(descriptor, patches, atol=1e-6)


def test_gradients_of_the_extended_descriptor(rng):
    descriptor = MKDescriptor("extended").double()
    patches = torch.from_numpy(rng.random((1, 32, 32))).requires_grad_()
    assert torch.autograd.gradcheck(descriptor, patches, atol=1e-5, fast_mode=True)


@pytest.mark.parametrize("model", ["paper", "extended"])
@pytest.mark.parametrize("value", [0.0, 0.3])
def test_gradients_are_finite_in_flat_and_nearly_flat_patches(rng, model, value):
    patches = torch.full((3, 64, 64), value)
    patches[1] += 1e-7 * torch.from_numpy(rng.random((64, 64))).float()
    patches[2, :, 32:] = 1  # a step between flat halves
    patches.requires_grad_()
    descriptor = MKDescriptor(model)
    descriptor.head.requires_grad_()
    descriptor(patches)[:, 0].sum().backward()
    assert torch.isfinite(patches.grad).all()
    assert patches.grad[2].abs().max() > 0
    weights = [p.grad for p in descriptor.head.parameters()]
    assert weights
    assert all(torch.isfinite(grad).all() and grad.abs().max() > 0 for grad in weights)


@pytest.mark.parametrize("spec", ["phi(8,1)*relative_theta(8,1)", "x(1,1)*theta(8,1)+rho(2,1)"])
def test_directions_of_hardly_any_gradient_are_not_followed(rng, spec):
    """The less contrast, the more a direction changes with a pixel; down to where it is noise."""
    descriptor, noise = make(spec, 8).double(), torch.from_numpy(rng.random((1, 8, 8)))

    def steepest(contrast):
        patches = (0.3 + contrast * noise).requires_grad_()
        descriptor(patches)[:, :5].sum().backward()
        return float(patches.grad.abs().max())

    assert steepest(1) < steepest(1e-2) < steepest(1e-5)
    assert steepest(1e-5) > 1000
    assert steepest(1e-8) < 10


def test_weights_are_frozen_until_asked(rng):
    descriptor = MKDescriptor("paper-32px")
    assert not descriptor(torch.from_numpy(rng.random((2, 32, 32))).float()).requires_grad
    assert sum(p.requires_grad for p in descriptor.head.requires_grad_().parameters()) == 2


@pytest.mark.parametrize(
    ("spec", "changed"),
    [
        ("x(1,1)*y(1,1)*theta(8,3)", "x(2,1)*y(0.5,1)*theta(5,3)"),
        ("phi(8,2)*rho(8,2)*relative_theta(8,3)", "phi(3,2)*rho(4,2)*relative_theta(9,3)"),
        (
            "standard: x(8,2)*intensity(2)+shape+y(8,1)*intensity(1)*theta(8,2)",
            "standard: x(6,2)*intensity(2)+shape+y(7,1)*intensity(1)*theta(2,2)",
        ),
    ],
)
def test_other_kappas_make_the_other_descriptor(rng, spec, changed):
    size = 32 if "standard" in spec else 16
    patches = rng.integers(0, 256, (4, size, size), np.uint8)
    descriptor = make(spec, size, learn_kappas=True)
    same = descriptor(torch.from_numpy(patches)).detach().numpy()
    np.testing.assert_allclose(same, MKD(spec, size).transform(patches), atol=1e-6)
    new = kappas_of(changed)
    with torch.no_grad():
        descriptor.kappas.log_kappas.copy_(torch.tensor(new).log())
    found = descriptor(torch.from_numpy(patches)).detach().numpy()
    np.testing.assert_allclose(found, MKD(changed, size).transform(patches), atol=1e-5)


def kappas_of(spec):
    """Kappas in the order of feature maps: gradient attributes first, then positions."""
    found = []
    for product in spec.removeprefix("standard: ").split("+"):
        factors = [f.split("(") for f in product.split("*") if "," in f]
        factors.sort(key=lambda f: "theta" not in f[0])
        found += [float(numbers.split(",")[0]) for _, numbers in factors]
    return found


def test_gradients_of_kappas_are_those_of_differences(rng):
    descriptor = make("x(1,1)*y(2,1)*theta(8,2)", 8, learn_kappas=True).double()
    patches = torch.from_numpy(rng.random((2, 8, 8)))
    start = descriptor.kappas.log_kappas.detach().clone().requires_grad_()

    def described(log_kappas):
        named = {"kappas.log_kappas": log_kappas}
        return torch.func.functional_call(descriptor, named, (patches,))

    assert torch.autograd.gradcheck(described, start)

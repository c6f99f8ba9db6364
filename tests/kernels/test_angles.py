"""A kernel over an angle that is not von Mises is one class: everything else takes it."""

from dataclasses import dataclass

import numpy as np
import pytest

import mkdesc
from mkdesc.kernels import AngleKernel, VonMises
from mkdesc.visual import patch_map


@dataclass(frozen=True)
class CosineSquared(AngleKernel):
    """``((1 + cos delta) / 2) ** 2``, whose series is finite: 3/8, 1/2, 1/8."""

    n: int = 2

    def __str__(self):
        return "cosine2"

    def __call__(self, delta):
        return ((1 + np.cos(delta)) / 2) ** 2

    @property
    def coefficients(self):
        return np.array([3 / 8, 1 / 2, 1 / 8])


@pytest.fixture(params=[{"theta": CosineSquared()}, {"relative_theta": CosineSquared()}])
def kernels(request):
    return mkdesc.product(phi=CosineSquared(), rho=VonMises(8, 2), **request.param)


def test_the_series_is_the_kernel():
    delta = np.linspace(-7, 7, 50)
    kernel = CosineSquared()
    np.testing.assert_allclose(kernel.approximate(delta), kernel(delta), atol=1e-12)
    here, there = kernel.feature_map(delta), kernel.feature_map(0.3)
    np.testing.assert_allclose(here @ there, kernel(delta - 0.3), atol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_backends_compute_with_any_kernel(kernels, rng, backend):
    patches = rng.integers(0, 256, (3, 16, 16), np.uint8)
    found = mkdesc.MKD(kernels, 16, backend=backend).transform(patches)
    expected = mkdesc.MKD(kernels, 16, backend="reference").transform(patches)
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_descriptors_are_the_double_sum(rng):
    """Both series are finite: the exact match kernel is what the descriptors' dot product is."""
    kernels = mkdesc.product(phi=CosineSquared(), theta=CosineSquared())
    p, q = rng.integers(0, 256, (2, 8, 8), np.uint8)
    a, b = mkdesc.MKD(kernels, 8, backend="reference").transform(np.stack([p, q]))
    between, own, other = (
        mkdesc.match_kernel(*pair, kernels) for pair in ((p, q), (p, p), (q, q))
    )
    assert float(a @ b) == pytest.approx(between / np.sqrt(own * other), abs=1e-5)


def test_maps_are_drawn_of_any_kernel(kernels):
    maps = [patch_map((3, 4), kernels, 0.4, patch_size=16, exact=exact) for exact in (True, False)]
    assert np.isfinite(maps).all()

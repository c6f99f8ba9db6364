import itertools

import numpy as np
import pytest

from mkdesc import MKD, match_kernel
from mkdesc.kernels.grid import patch_grid
from mkdesc.kernels.parametrization import NAMED, as_parametrization

SPECS = [
    *(n for n in NAMED if "extended" not in n),
    "polar+cartesian",
    "theta(3,2)*relative_theta(2,1)*x(1,1)",
    "rho(4,2)",
]


@pytest.fixture
def pair(rng):
    return rng.random((2, 8, 8))


def loop_over_pixels(p, q, spec, exact):
    """The definition once more, pixel pair by pixel pair, from the paper's formulas alone."""
    grid = patch_grid(8)

    def pixels(patch):
        u = np.exp(-(np.arange(-2, 3) ** 2) / (2 * (1.4 * 8 / 64) ** 2))
        u /= u.sum()
        padded = np.pad(patch, 2, mode="edge")
        smooth = np.array(
            [[u @ padded[i : i + 5, j : j + 5] @ u for j in range(8)] for i in range(8)]
        )
        padded = np.pad(smooth, 1, mode="edge")
        found = []
        for i, j in itertools.product(range(8), range(8)):
            gx, gy = (
                padded[i + 1, j] - padded[i + 1, j + 2],
                padded[i, j + 1] - padded[i + 2, j + 1],
            )
            m, theta = np.sqrt(gx**2 + gy**2 + 1e-8), np.arctan2(gy, gx)
            x, y = -1 + 2 * j / 7, -1 + 2 * i / 7
            rho, phi = np.hypot(x, y) / np.sqrt(2), np.arctan2(y, x)
            assert rho == pytest.approx(grid.rho[i, j])
            attributes = {
                "x": x * np.pi / 2,
                "y": y * np.pi / 2,
                "rho": rho * np.pi,
                "phi": phi,
                "theta": theta,
                "relative_theta": theta - phi,
            }
            found.append((np.exp(-(rho**2)) * np.sqrt(m + 1e-8), attributes))
        return found

    total = 0.0
    for part in as_parametrization(spec).products:
        for (wp, ap), (wq, aq) in itertools.product(pixels(p), pixels(q)):
            k = wp * wq
            for name, kernel in part.kernels:
                delta = ap[name] - aq[name]
                k *= kernel(delta) if exact else kernel.approximate(delta)
            total += k
    return total


@pytest.mark.parametrize("exact", [True, False])
def test_definition(pair, exact):
    spec = "polar+cartesian"
    expected = loop_over_pixels(*pair, spec, exact)
    assert match_kernel(*pair, spec, exact=exact) == pytest.approx(expected)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_descriptors_reproduce_the_approximate_match_kernel(pair, spec, backend):
    a, b = MKD(spec, patch_size=8, backend=backend).transform(pair)
    expected = match_kernel(*pair, spec, exact=False, normalize=True)
    assert a @ b == pytest.approx(expected, abs=2e-6)


def test_the_extended_kernel_is_a_match_kernel_too(rng):
    p, q = rng.random((2, 32, 32))
    for spec in ("extended", "standard: shape*rho(2,1)+intensity(1)*relative_theta(3,1)"):
        a, b = MKD(spec, patch_size=32).transform(np.stack([p, q]))
        expected = match_kernel(p, q, spec, exact=False, normalize=True)
        assert a @ b == pytest.approx(expected, abs=2e-6)


def test_more_frequencies_come_closer_to_the_exact_kernel(pair):
    exact = match_kernel(*pair, "phi(8,2)*rho(8,2)*theta(8,3)", normalize=True)
    errors = []
    for n in (1, 2, 8, 16):
        a, b = MKD(f"phi(8,{n})*rho(8,{n})*theta(8,{n})", patch_size=8).transform(pair)
        errors.append(abs(a @ b - exact))
    assert errors[-1] < 1e-6
    assert errors[-1] < errors[-2] < errors[0]


def test_symmetric_and_one_with_itself(pair):
    p, q = pair
    assert match_kernel(p, q) == pytest.approx(match_kernel(q, p))
    assert match_kernel(p, p, normalize=True) == pytest.approx(1)


def test_bad_patches_are_refused(pair):
    p, _ = pair
    with pytest.raises(ValueError, match=r"q: expected one patch \(W, W\)"):
        match_kernel(p, pair)
    with pytest.raises(ValueError, match="patches of one size"):
        match_kernel(p, np.zeros((9, 9)))
    with pytest.raises(ValueError, match="NaN or infinity"):
        match_kernel(p, np.full((8, 8), np.nan))

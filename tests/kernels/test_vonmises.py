import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import iv

from mkdesc import VonMises

KAPPAS = st.floats(1e-6, 1e6)


@pytest.mark.parametrize("kappa", [0.01, 1, 8, 14, 16, 60, 300])
def test_coefficients_are_bessel_functions(kappa):
    n = 12
    expected = iv(np.arange(n + 1), kappa) / np.sinh(kappa)
    expected[0] = (iv(0, kappa) - np.exp(-kappa)) / (2 * np.sinh(kappa))
    np.testing.assert_allclose(VonMises(kappa, n).coefficients, expected, atol=1e-12)


@given(KAPPAS)
def test_kernel_is_one_at_zero_and_zero_at_pi(kappa):
    kernel = VonMises(kappa, 1)
    assert kernel(0.0) == pytest.approx(1)
    assert kernel(np.pi) == pytest.approx(0, abs=1e-9)


@given(KAPPAS, st.integers(0, 40))
def test_coefficients_are_finite_and_not_negative(kappa, n):
    coefficients = VonMises(kappa, n).coefficients
    assert coefficients.shape == (n + 1,)
    assert np.all(np.isfinite(coefficients))
    assert np.all(coefficients >= 0)


@pytest.mark.parametrize("kappa", [1e-12, 1e12])
def test_extreme_concentrations_are_finite(kappa):
    assert np.all(np.isfinite(VonMises(kappa, 3).coefficients))


def test_series_converges_to_the_kernel():
    delta = np.linspace(-np.pi, np.pi, 101)
    errors = [
        np.abs(VonMises(8, n).approximate(delta) - VonMises(8, n)(delta)).max()
        for n in (1, 3, 6, 20)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-9


@given(KAPPAS, st.integers(0, 8), st.floats(-10, 10), st.floats(-10, 10))
def test_feature_map_reproduces_the_series(kappa, n, a, b):
    kernel = VonMises(kappa, n)
    features = kernel.feature_map([a, b])
    assert features.shape == (2, kernel.dims)
    assert features[0] @ features[1] == pytest.approx(kernel.approximate(a - b), abs=1e-9)


@pytest.mark.parametrize("kappa", [0, -1, np.nan, np.inf])
def test_bad_kappa_is_refused(kappa):
    with pytest.raises(ValueError, match="kappa: expected a number > 0"):
        VonMises(kappa, 1)


@pytest.mark.parametrize("n", [-1, 1.5, True, 1001, 10**9])
def test_bad_n_is_refused(n):
    with pytest.raises(ValueError, match="n: expected an integer"):
        VonMises(1, n)

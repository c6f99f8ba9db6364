from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkdesc import CARTESIAN, POLAR, Parametrization, VonMises, as_parametrization, product
from mkdesc.kernels.parametrization import EXTENDED, NAMED
from mkdesc.kernels.pixelfeatures import Intensity, Shape
from mkdesc.kernels.pixelvalues import pixel_values
from mkdesc.kernels.preparation import PAPER, STANDARD

NAMES = ("x", "y", "rho", "phi", "theta", "relative_theta")
KERNELS = st.builds(VonMises, st.floats(1e-3, 1e4), st.integers(0, 4))
PRODUCTS = st.dictionaries(st.sampled_from(NAMES), KERNELS, min_size=1, max_size=4).map(
    lambda kernels: product(**kernels)
)


def test_dimensions_of_the_paper():
    assert (POLAR.dims, CARTESIAN.dims, (POLAR + CARTESIAN).dims) == (175, 63, 238)
    assert {name: p.dims for name, p in NAMED.items()} == {
        "polar": 175,
        "cartesian": 63,
        "polar-absolute": 175,
        "cartesian-relative": 63,
        "extended": 575,
        "extended-24": 575,
        "extended-fine": 1127,
    }


@given(st.lists(PRODUCTS, min_size=1, max_size=3))
def test_text_and_object_are_the_same(parts):
    whole = sum(parts[1:], parts[0])
    assert as_parametrization(str(whole)) == whole
    assert whole.dims == sum(part.dims for part in parts)


def test_a_plus_may_belong_to_a_number():
    found = as_parametrization("x(1e+3,1)*theta(8,3) + rho(2.5E+0,2)")
    one = product(x=VonMises(1000, 1), theta=VonMises(8, 3))
    assert found == one + product(rho=VonMises(2.5, 2))


def test_feature_map_order_is_angle_then_first_then_second_position():
    theta, x, y = 0.4, 0.2, -0.7
    part = CARTESIAN.products[0]
    features = part.feature_map({"theta": np.array(theta), "x": np.array(x), "y": np.array(y)})
    kernels = dict(part.kernels)
    expected = np.kron(
        kernels["theta"].feature_map(theta),
        np.kron(kernels["x"].feature_map(x), kernels["y"].feature_map(y)),
    )
    np.testing.assert_allclose(features, expected)


def test_feature_maps_multiply_like_kernels(rng):
    values = pixel_values(rng.random((9, 9)), PAPER)
    part = POLAR.products[0]
    features = part.feature_map(values)
    expected = np.prod(
        [k.approximate(values[name][0, 3] - values[name][7, 2]) for name, k in part.kernels]
    )
    assert features[0, 3] @ features[7, 2] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read"),
        ("polar+", "cannot read"),
        ("cylinder", "cannot read 'cylinder'"),
        ("theta(8)", r"cannot read 'theta\(8\)'"),
        ("z(1,1)", "unknown attribute 'z'"),
        ("x(1,1)*x(2,1)", "attribute 'x' is given twice"),
        ("x(-1,1)", "kappa: expected a number > 0"),
        ("x(one,1)", "could not convert"),
        ("standard: intensity(3)", "expected 1 or 2 features"),
        ("standard: shape(2)", r"cannot read 'shape\(2\)'"),
        ("standard: theta(1,1)*intensity(1)*shape", "at most two of"),
        ("shape*x(1,1)", "use the preparation 'standard'"),
        ("fancy: x(1,1)", "unknown preparation 'fancy'"),
        ("extended+polar", "cannot add parametrizations prepared as"),
        ("x(1,99999999)*y(1,1", "cannot read"),
        # Names have preparations of their own: under another one they would mean something else.
        ("standard: polar", "cannot read 'polar'"),
        ("standard: extended", "cannot read 'extended'"),
    ],
)
def test_bad_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        as_parametrization(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("+" * 1_000_000, "expected at most 5000 characters, got 1000000"),
        ("theta(8,3)" + "+x(1,1)" * 50, "expected at most 50 products, got 51"),
        ("x(1,1)*" * 700 + "y(1,1)", "attribute 'x' is given twice"),
        ("z" * 3000 + "(1,1)", "unknown attribute 'zzz"),
        ("z" * 3000, "cannot read 'zzz"),
        ("z" * 3000 + ":x(1,1)", "unknown preparation 'zzz"),
        (f"x(1,{'9' * 3000})", "n: expected an integer from 0 to 64, got 9"),
        ("x(1,20000)", "n: expected an integer from 0 to 64, got 20000"),
        ("x(1,64)*y(1,64)*theta(1,3)", "116487 numbers per descriptor"),
        ("x\n(1,1)*x(1,1)*z", "cannot read 'z'"),
    ],
)
def test_errors_stay_short(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        as_parametrization(text)
    assert len(str(caught.value)) < 700
    assert "\n" not in str(caught.value)


def test_what_could_not_be_read_again_is_not_built():
    part = product(**{name: VonMises(0.1, 0) for name in NAMES})
    with pytest.raises(ValueError, match="expected at most 5000 characters"):
        sum([part] * 40, part)
    with pytest.raises(ValueError, match="expected at most 50 products, got 51"):
        Parametrization(CARTESIAN.products * 51)


@pytest.mark.parametrize("spec", [None, 3, ["polar"]])
def test_other_types_are_refused(spec):
    with pytest.raises(ValueError, match="parametrization must be text"):
        as_parametrization(spec)


def test_an_empty_sum_is_refused():
    with pytest.raises(ValueError, match="at least one product"):
        Parametrization(())
    with pytest.raises(ValueError, match="at least one kernel"):
        product()


def test_the_extended_one_as_text_and_by_hand():
    assert as_parametrization(str(EXTENDED)) == EXTENDED == as_parametrization("extended")
    xy = VonMises(8, 2)
    part = product(STANDARD, x=xy, y=xy, shape=Shape())
    assert part.products[0] in EXTENDED.products
    assert as_parametrization("standard: x(8,2)*y(8,2)*shape") == part


def test_changed_preparations_are_refused():
    # As text, and so in model files, it would be the one that its name stands for.
    with pytest.raises(ValueError, match="'standard' is the name of another preparation"):
        replace(STANDARD, sigma=2.0)
    renamed = replace(STANDARD, name="mine", sigma=2.0)
    with pytest.raises(ValueError, match="standard-24, fine-24, got 'mine'"):
        product(renamed, theta=VonMises(8, 3))


def test_kernels_must_fit_their_attributes():
    with pytest.raises(ValueError, match="attribute 'shape' cannot have the kernel"):
        product(STANDARD, shape=VonMises(1, 1))
    with pytest.raises(ValueError, match="attribute 'x' cannot have the kernel"):
        product(STANDARD, x=Intensity(1))

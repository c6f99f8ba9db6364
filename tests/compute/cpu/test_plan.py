import numpy as np
import pytest

from mkdesc import POLAR, as_parametrization
from mkdesc.compute.cpu.plan import make_plan
from mkdesc.kernels.parametrization import EXTENDED


def test_the_polar_functions_are_reduced_to_a_basis():
    plan = make_plan(POLAR, 64)
    # Harmonic h of theta meets cos and sin of |h-2| .. h+2 times phi, each with 5 maps of rho:
    # 25, 35, 45 and 50 functions for h = 0 .. 3, where the products of maps number 25 and 50.
    functions = np.count_nonzero(np.abs(plan.functions).max(axis=1) > 0)
    assert functions == 25 + 35 + 45 + 50


@pytest.mark.parametrize("size", [8, 9, 64])
def test_functions_fill_whole_vectors(size):
    plan = make_plan(as_parametrization("polar+cartesian"), size)
    assert plan.functions.shape[1] % 16 == 0
    quarter = ((size + 1) // 2) ** 2
    assert not plan.functions[:, quarter:].any()


def test_a_kernel_without_an_angle_needs_one_plane():
    plan = make_plan(as_parametrization("rho(4,2)"), 16)
    assert plan.counts.tolist() == [1, 0, 0, 0]
    assert plan.planes.tolist() == [0]
    assert len(plan.products) == 0


def test_planes_that_meet_the_same_functions_share_them():
    plan = make_plan(as_parametrization("standard: rho(8,2)*shape+rho(8,2)*intensity(2)"), 32)
    assert plan.counts.tolist() == [0, 2, 9, 0]
    assert len(plan.planes) == 11
    assert np.count_nonzero(np.abs(plan.functions).max(axis=1)) == 5


def test_the_extended_descriptor_has_23_planes():
    plan = make_plan(EXTENDED, 32)
    assert plan.counts.tolist() == [7, 2, 9, 0]
    assert len(plan.planes) == len(set(plan.planes.tolist())) == 7 + 2 + 9 + 5


@pytest.mark.parametrize("spec", ["extended", "cartesian", "x(2,3)*theta(8,2)+y(1,1)"])
def test_products_of_x_and_y_are_summed_one_after_the_other(spec):
    plan = make_plan(as_parametrization(spec), 32)
    assert plan.separable
    assert len(plan.functions) == len(plan.tiles) == 0
    assert len(plan.across) % 5 == len(plan.down) % 5 == 0


@pytest.mark.parametrize("spec", ["polar", "cartesian-relative", "x(2,3)*rho(1,1)"])
def test_other_functions_are_not_taken_apart(spec):
    plan = make_plan(as_parametrization(spec), 32)
    assert not plan.separable
    assert len(plan.functions) > 0

import numpy as np
import pytest

from mkdesc import POLAR, as_parametrization
from mkdesc.compute.cpu.layout import make_layout
from mkdesc.compute.cpu.unrolling import LANES, LINE_FUNCTIONS
from mkdesc.kernels.parametrization import EXTENDED


def test_the_polar_functions_are_reduced_to_a_basis():
    layout = make_layout(POLAR, 64)
    # Harmonic h of theta meets cos and sin of |h-2| .. h+2 times phi, each with 5 maps of rho:
    # 25, 35, 45 and 50 functions for h = 0 .. 3, where the products of maps number 25 and 50.
    functions = np.count_nonzero(np.abs(layout.functions.quarter).max(axis=1) > 0)
    assert functions == 25 + 35 + 45 + 50


@pytest.mark.parametrize("size", [8, 9, 64])
def test_functions_fill_whole_vectors(size):
    layout = make_layout(as_parametrization("polar+cartesian"), size)
    assert layout.functions.quarter.shape[1] % LANES == 0
    quarter = ((size + 1) // 2) ** 2
    assert not layout.functions.quarter[:, quarter:].any()


def test_a_kernel_without_an_angle_needs_one_plane():
    layout = make_layout(as_parametrization("rho(4,2)"), 16)
    assert layout.quantities[:4] == (1, 0, 0, 0)
    assert layout.quantities.planes.tolist() == [0]
    assert len(layout.quantities.products) == 0


def test_planes_that_meet_the_same_functions_share_them():
    layout = make_layout(as_parametrization("standard: rho(8,2)*shape+rho(8,2)*intensity(2)"), 32)
    assert layout.quantities[:4] == (0, 2, 9, 0)
    assert len(layout.quantities.planes) == 11
    assert np.count_nonzero(np.abs(layout.functions.quarter).max(axis=1)) == 5


def test_the_extended_descriptor_has_23_planes():
    layout = make_layout(EXTENDED, 32)
    assert layout.quantities[:4] == (7, 2, 9, 0)
    assert (
        len(layout.quantities.planes)
        == len(set(layout.quantities.planes.tolist()))
        == 7 + 2 + 9 + 5
    )


@pytest.mark.parametrize("spec", ["extended", "cartesian", "x(2,3)*theta(8,2)+y(1,1)"])
def test_products_of_x_and_y_are_summed_one_after_the_other(spec):
    layout = make_layout(as_parametrization(spec), 32)
    assert layout.separable
    assert len(layout.functions.quarter) == len(layout.functions.tiles) == 0
    assert len(layout.functions.across) % LINE_FUNCTIONS == 0
    assert len(layout.functions.down) % LINE_FUNCTIONS == 0


@pytest.mark.parametrize("spec", ["polar", "cartesian-relative", "x(2,3)*rho(1,1)"])
def test_other_functions_are_not_taken_apart(spec):
    layout = make_layout(as_parametrization(spec), 32)
    assert not layout.separable
    assert len(layout.functions.quarter) > 0

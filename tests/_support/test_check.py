"""Numbers are numbers whoever makes them, and only those within bounds."""

import warnings

import numpy as np
import pytest

from mkdesc._support.check import check_integer, check_number, checked_sides

KINDS = (np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint8, np.int64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("error")
def test_numbers_of_numpy_are_numbers(kind):
    check_number("n", kind(3), above=0, most=1e300)
    check_number("n", kind(3), least=-1e300, below=4)
    assert checked_sides((kind(3), 4)) == (3.0, 4.0)
    with pytest.raises(ValueError, match="n: expected a number > 3, got"):
        check_number("n", kind(3), above=3)


@pytest.mark.parametrize(
    "value", [kind(word) for kind in KINDS[:4] for word in ("inf", "-inf", "nan")]
)
def test_what_is_not_finite_is_refused(value):
    with warnings.catch_warnings(action="error"), pytest.raises(ValueError, match="n: expected a"):
        check_number("n", value)


@pytest.mark.parametrize("value", [10**400, -(10**400), True, np.True_, "3", None, 1j, [3]])
def test_what_is_no_number_that_can_be_used_is_refused(value):
    with pytest.raises(ValueError, match="n: expected a number, got"):
        check_number("n", value)


def test_integers_may_be_of_any_kind():
    for kind in KINDS[4:]:
        check_integer("n", kind(3), least=-1000, most=1000)
    with pytest.raises(ValueError, match="n: expected an integer >= 1, got"):
        check_integer("n", np.float32(3))

import numpy as np
import pytest

from mkdesc.measures.descriptors import BLOCK, as_descriptors


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_are_not_copied_unless_need_be(rng, kind):
    values = rng.normal(size=(6, 5)).astype(kind)
    assert as_descriptors(values, keep_float=True) is values
    whole = as_descriptors(values)
    assert whole.dtype == np.float32
    assert (whole is values) == (kind == np.float32)
    np.testing.assert_array_equal(whole, values.astype(np.float32))


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int64, np.bool_])
def test_whole_numbers_become_floats(kind):
    values = np.array([[0, 1, 1], [1, 0, 1]], kind)
    for keep_float, expected in ((False, np.float32), (True, np.float64)):
        got = as_descriptors(values, keep_float=keep_float)
        assert got.dtype == expected
        np.testing.assert_array_equal(got, [[0, 1, 1], [1, 0, 1]])


def test_columns_of_something_wider_become_contiguous(rng):
    wide = rng.normal(size=(4, 6)).astype(np.float32)
    assert as_descriptors(wide[:, ::2]).flags.c_contiguous
    assert as_descriptors(wide[:, ::2], keep_float=True).base is wide


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 3}, r"^descriptors: expected shape \(3, D\), got \(2, 4\)$"),
        ({"dims": 5}, r"^descriptors: expected shape \(N, 5\), got \(2, 4\)$"),
        ({"count": 2, "dims": 3, "name": "X"}, r"^X: expected shape \(2, 3\), got \(2, 4\)$"),
    ],
)
def test_other_shapes_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        as_descriptors(np.zeros((2, 4)), **options)
    assert as_descriptors(np.zeros((2, 4)), 2, dims=4).shape == (2, 4)


@pytest.mark.parametrize("shape", [(), (4,), (2, 3, 4)])
def test_descriptors_have_two_axes(shape):
    with pytest.raises(ValueError, match=r"expected shape \(N, D\)"):
        as_descriptors(np.zeros(shape))


@pytest.mark.parametrize("values", [np.array([["a"]]), np.zeros((2, 2), complex)])
def test_only_real_numbers(values):
    with pytest.raises(ValueError, match=f"real numbers, got {values.dtype}"):
        as_descriptors(values)


@pytest.mark.parametrize("keep_float", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_bad_row_is_named(bad, keep_float):
    values = np.zeros((BLOCK + 500, 2))
    values[BLOCK + 7 :, 1] = bad
    values[BLOCK + 9, 1] = -bad  # infinities that cancel to NaN in a sum
    with pytest.raises(ValueError, match=rf"^mine\[{BLOCK + 7}\] has NaN or infinity$"):
        as_descriptors(values, name="mine", keep_float=keep_float)


def test_huge_numbers_are_finite_where_their_type_holds_them():
    values = np.full((3, 2), 1e308)  # the sum overflows, no number does
    np.testing.assert_array_equal(as_descriptors(values, keep_float=True), values)
    with pytest.raises(ValueError, match=r"\[0\] has numbers beyond float32"):
        as_descriptors(values)

"""Vectors of compiled loops, against numpy."""

import numpy as np
import pytest
from numba import njit

from mkdesc._support.vectors_numba import (
    LANES,
    choose,
    inverse_root,
    load,
    reverse,
    spread,
    store,
)


@njit
def arithmetic(first, second, number, out):
    a, b = load(first, 3), load(second, 5)
    store(out, 0, a + b)
    store(out, LANES, a - b)
    store(out, 2 * LANES, a * b)
    store(out, 3 * LANES, reverse(a))
    store(out, 4 * LANES, choose(a, b, a, spread(number)))


@njit
def inverse_roots(numbers, out):
    for i in range(0, len(numbers), LANES):
        store(out, i, inverse_root(load(numbers, i)))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_they_count_as_numpy_does(rng, dtype):
    first, second = (rng.integers(0, 256, LANES + 5).astype(dtype) for _ in range(2))
    second[5] = first[3]  # neither is larger
    out = np.empty(5 * LANES, np.float32)
    arithmetic(first, second, np.float32(-1.5), out)
    a, b = np.float32(first[3 : 3 + LANES]), np.float32(second[5 : 5 + LANES])
    expected = [a + b, a - b, a * b, a[::-1], np.where(a > b, a, np.float32(-1.5))]
    np.testing.assert_array_equal(out, np.concatenate(expected))


def test_inverse_roots_of_all_normal_numbers(rng):
    numbers = (10.0 ** rng.uniform(-37.9, 38.5, 100 * LANES)).astype(np.float32)
    out = np.empty_like(numbers)
    inverse_roots(numbers, out)
    np.testing.assert_allclose(out, 1 / np.sqrt(np.float64(numbers)), rtol=3e-7)

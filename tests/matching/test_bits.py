"""Binary descriptors: against OpenCV's Hamming matcher and numpy's count of bits."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkdesc import match_descriptors
from mkdesc.matching import bits


def random_bits(rng, *shape):
    return rng.integers(0, 256, shape, np.uint8)


def noisy(rng, packed, share):
    flips = np.packbits(rng.random((len(packed), packed.shape[1] * 8)) < share, axis=1)
    return packed ^ flips


@pytest.mark.parametrize("n_bytes", [1, 8, 32, 33, 64])
def test_the_same_pairs_as_opencv(rng, n_bytes):
    b = random_bits(rng, 700, n_bytes)
    a = noisy(rng, b[rng.permutation(700)[:523]], 0.2)
    found = match_descriptors(a, b, bits=True)
    theirs = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True).match(a, b)
    assert found.distances.dtype == np.float32
    assert [(m.queryIdx, m.trainIdx, m.distance) for m in theirs] == [
        (i, j, distance)
        for (i, j), distance in zip(found.pairs.tolist(), found.distances.tolist(), strict=True)
    ]


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 40),
    m=st.integers(1, 40),
    n_bytes=st.integers(1, 70),
    few=st.booleans(),  # few different ones: many are equally near
    seed=st.integers(0, 99),
)
def test_nearest_are_what_numpy_counts(n, m, n_bytes, few, seed):
    rng = np.random.default_rng(seed)
    a, b = random_bits(rng, n, n_bytes), random_bits(rng, m, n_bytes)
    if few:
        a, b = a & 1, b & 1
    differ = np.bitwise_count(a[:, None] ^ b).sum(axis=2, dtype=np.int64)
    found = bits.nearest_bits(a, b)
    np.testing.assert_array_equal(found.nearest, differ.argmin(axis=1))  # of equal ones the first
    np.testing.assert_array_equal(found.distance, differ.min(axis=1))
    np.testing.assert_array_equal(found.back, differ.argmin(axis=0))
    second = np.sort(differ, axis=1)[:, 1] if m > 1 else np.full(n, np.inf)
    np.testing.assert_array_equal(found.second, second)


def test_any_blocks_and_threads_are_the_same(monkeypatch, rng):
    a, b = random_bits(rng, 300, 4), random_bits(rng, 200, 4)
    whole = bits.nearest_bits(a, b)
    monkeypatch.setattr(bits, "COLUMNS", 16)
    monkeypatch.setattr(bits, "ROWS", 7)
    for one, other in zip(whole, bits.nearest_bits(a, b), strict=True):
        np.testing.assert_array_equal(one, other)


def test_limits(rng):
    b = random_bits(rng, 60, 32)
    a = noisy(rng, b, 0.1)
    a[:20] = random_bits(rng, 20, 32)
    differ = np.bitwise_count(a[:, None] ^ b).sum(axis=2, dtype=np.int64)
    nearest, second = np.sort(differ, axis=1)[:, :2].T
    every = match_descriptors(a, b, mutual=False, bits=True)
    np.testing.assert_array_equal(every.pairs[:, 1], differ.argmin(axis=1))
    tested = match_descriptors(a, b, mutual=False, ratio=0.8, bits=True)
    np.testing.assert_array_equal(tested.pairs[:, 0], np.flatnonzero(nearest < 0.8 * second))
    near = match_descriptors(a, b, mutual=False, max_distance=30, bits=True)
    np.testing.assert_array_equal(near.pairs[:, 0], np.flatnonzero(nearest <= 30))


def test_bits_are_bits_only_when_asked(rng):
    """Nothing about an array of bytes says what it is: by default bytes are numbers."""
    a, b = random_bits(rng, 50, 32), random_bits(rng, 50, 32)
    numbers = match_descriptors(a, b, mutual=False).pairs
    far = np.linalg.norm(a[:, None].astype(float) - b, axis=2)
    np.testing.assert_array_equal(numbers[:, 1], far.argmin(axis=1))
    assert len(match_descriptors(a[:0], b, bits=True).pairs) == 0


@pytest.mark.parametrize(
    ("a", "message"),
    [
        (
            np.zeros((3, 32), np.float32),
            r"a: expected packed bits, uint8 .*, got float32 \(3, 32\)",
        ),
        (np.zeros(32, np.uint8), r"a: expected packed bits, .*got uint8 \(32,\)"),
        (np.zeros((3, 0), np.uint8), "a: expected at least one dimension"),
        (np.zeros((3, 9000), np.uint8), "a: expected at most 8160 bytes each"),
        (np.zeros((3, 16), np.uint8), "a and b: expected the same dimensions, got 16 and 32"),
    ],
)
def test_what_are_no_bits_is_refused(a, message):
    with pytest.raises(ValueError, match=message):
        match_descriptors(a, np.zeros((3, 32), np.uint8), bits=True)

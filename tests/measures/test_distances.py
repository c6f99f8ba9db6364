import numpy as np

from mkdesc.measures.descriptors import as_descriptors
from mkdesc.measures.distances import pair_distances


def test_distances_of_many_pairs(rng):
    values = rng.normal(size=(300, 37)).astype(np.float32)
    first, second = rng.integers(0, 300, (2, 20_000))
    expected = ((values[first].astype(float) - values[second]) ** 2).sum(axis=1)
    np.testing.assert_allclose(pair_distances(values, first, second), expected, rtol=1e-5)
    others = values[::-1].copy()
    np.testing.assert_array_equal(
        pair_distances(values, first, 299 - second, others), pair_distances(values, first, second)
    )
    assert pair_distances(values, first[:0], second[:0]).shape == (0,)


def test_equal_pairs_have_equal_distances(rng):
    values = np.repeat(rng.normal(size=(2, 129)).astype(np.float32), 5000, axis=0)
    distances = pair_distances(values, np.arange(5000), np.arange(5000, 10_000))
    assert len(np.unique(distances)) == 1


def test_bits_give_hamming_distances():
    packed = np.array([[0b1010], [0b0110]], np.uint8)
    bits = as_descriptors(np.unpackbits(packed, axis=1))
    assert pair_distances(bits, np.array([0]), np.array([1])).tolist() == [2.0]

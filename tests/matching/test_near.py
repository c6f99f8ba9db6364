"""Places near each other, with and without a tree."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mkdesc.matching import near


@pytest.fixture(params=[0, 1000], ids=["by a tree", "by all distances"])
def few(request, monkeypatch):
    monkeypatch.setattr(near, "FEW", request.param)


@pytest.mark.parametrize("count", [1, 4, 60])
def test_the_nearest(few, count):
    rng = np.random.default_rng(0)
    known, asked = rng.random((60, 2)), rng.random((50, 2))
    found = near.nearest(known, asked, count)
    expected = np.argsort(cdist(asked, known), axis=1)[:, :count]
    assert np.array_equal(np.sort(found, axis=1), np.sort(expected, axis=1))


def test_the_first_of_each_place(few):
    """What is near a place that was left out is not left out for that."""
    rng = np.random.default_rng(0)
    here, there = rng.random((200, 2)), rng.random((200, 4))
    close = (cdist(here, here) <= 0.08) | (cdist(there, there) <= 0.2)
    expected = []
    for index in range(200):
        if not close[index, expected].any():
            expected.append(index)
    assert 20 < len(expected) < 180
    assert near.first_of_each((here, 0.08), (there, 0.2)).tolist() == expected


def test_how_far_the_nearest_is(few):
    rng = np.random.default_rng(0)
    known, asked = rng.random((60, 2)), rng.random((50, 2))
    expected = cdist(asked, known).min(axis=1)
    np.testing.assert_allclose(near.distance_to_nearest(known, asked), expected)


def test_none(few):
    assert len(near.first_of_each((np.empty((0, 2)), 1.0))) == 0

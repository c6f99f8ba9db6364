"""Pairs of keypoints, refined: against warps in closed form."""

import numpy as np

from mkdesc.matching.growing.refine import refine_matches

SHAPE = (260, 340)
MATRIX, SHIFT = np.array([[0.93, -0.18], [0.21, 0.97]]), np.array([30.2, -14.6])


def test_keypoints_that_are_off_are_put_right(texture, as_photograph, inner_places, rng):
    one, two = as_photograph(texture(SHAPE)), as_photograph(texture(SHAPE, MATRIX, SHIFT))
    places = inner_places(100, SHAPE, MATRIX, SHIFT)
    there = places @ MATRIX.T + SHIFT
    a = np.column_stack([places, np.full(100, 2.0), np.full(100, 30.0)])
    b = np.column_stack(
        [there + rng.normal(size=(100, 2)), np.full(100, 2.2), rng.normal(42.0, 5.0, 100)]
    )
    rows = np.repeat(np.arange(100)[:, None], 2, axis=1)
    for some in (rows, rows[::-2]):
        found = refine_matches(one, two, a, b, some)
        off = np.linalg.norm(found.points_b - there[some[:, 0]], axis=1)
        assert np.median(off) < 0.03
        assert (off < 0.3).mean() > 0.95
        assert np.median(np.abs(found.maps - MATRIX).max(axis=(1, 2))) < 0.02
        assert (found.correlation > 0.9).mean() > 0.95


def test_what_does_not_fit_stays_as_it_was(texture, as_photograph):
    one, flat = as_photograph(texture(SHAPE)), np.full(SHAPE, 99, np.uint8)
    found = refine_matches(one, flat, [[50.0, 60]], [[70.0, 80]], [[0, 0]], maps=[np.eye(2) / 2])
    assert found.correlation.tolist() == [-1]
    assert found.points_b.tolist() == [[70, 80]]
    assert found.maps.tolist() == (np.eye(2)[None] / 2).tolist()
    nothing = refine_matches(one, flat, np.empty((0, 2)), [[70.0, 80]], [])
    assert nothing.points_b.shape == (0, 2)

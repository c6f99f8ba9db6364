"""One keypoint a place, and an even spread, held against loops over all pairs."""

import numpy as np
import pytest

from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.places import one_per_place, spread_evenly


def scattered(count, seed=0, wide=100.0, high=60.0):
    """With some equal scores and some equal places."""
    rng = np.random.default_rng(seed)
    points = rng.uniform([0, 0, 1, 0], [wide, high, 5, 360], (count, 4))
    points[1::5, :2] = points[::5, :2][: len(points[1::5])]
    return Keypoints(points, rng.integers(0, 50, count) / 50)


def by_all_pairs(found, radii):
    order = found.strongest_first()
    kept = []
    for i in order:
        apart = [np.hypot(*(found.points[i, :2] - found.points[j, :2])) for j in kept]
        if all(d > min(radii[i], radii[j]) for d, j in zip(apart, kept, strict=True)):
            kept.append(i)
    return found.take(np.array(kept, np.int64))


@pytest.mark.parametrize("radius", [0, 2.0, 7.5, 500])
def test_one_a_place(radius):
    found = scattered(400)
    expected = by_all_pairs(found, np.full(400, radius))
    ours = one_per_place(found, radius)
    np.testing.assert_array_equal(ours.points, expected.points)
    np.testing.assert_array_equal(ours.scores, expected.scores)
    assert 0 < len(ours) < 400
    few = one_per_place(found, radius, 10)
    np.testing.assert_array_equal(few.points, expected.points[:10])


def test_of_two_radii_the_smaller_counts():
    found = scattered(400, seed=1)
    radii = 2 * found.points[:, 2]
    expected = by_all_pairs(found, radii)
    np.testing.assert_array_equal(one_per_place(found, radii).points, expected.points)
    assert len(expected) not in (
        len(one_per_place(found, radii.min())),
        len(one_per_place(found, radii.max())),
    )


@pytest.mark.parametrize(("wide", "high"), [(1e6, 1e6), (1e6, 0), (0, 0), (0, 50)])
def test_places_may_lie_in_a_line_or_far_apart(wide, high):
    found = scattered(100, wide=wide, high=high)
    expected = by_all_pairs(found, np.full(100, 2.0))
    np.testing.assert_array_equal(one_per_place(found).points, expected.points)


def test_an_even_spread_leaves_no_two_close_and_no_hole():
    """Strong points in one corner, weak ones everywhere: the strongest alone leave holes."""
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.uniform(0, 20, (500, 2)), rng.uniform(0, 200, (2000, 2))])
    points = np.column_stack([places, np.ones((2500, 2))])
    found = Keypoints(points, np.where(np.arange(2500) < 500, 1, 0.5) + rng.random(2500) / 9)
    spread = spread_evenly(found, 100)
    assert len(spread) == 100

    def apart(some):
        x, y = some.points[:, :2].T
        distances = np.hypot(x[:, None] - x, y[:, None] - y)
        np.fill_diagonal(distances, np.inf)
        return distances.min()

    def cells(some):
        return len({(x // 40, y // 40) for x, y in some.points[:, :2]})

    assert apart(spread) > 8 > apart(found.strongest(100))
    assert cells(spread) == 25 > cells(found.strongest(100))
    # A larger radius would not leave as many.
    assert len(one_per_place(found, apart(spread) * 1.1)) < 100


def test_few_or_none_stay():
    found = scattered(10)
    np.testing.assert_array_equal(spread_evenly(found, 10).points, found.strongest().points)
    for none in (one_per_place(Keypoints.empty()), spread_evenly(Keypoints.empty(), 3)):
        assert len(none) == 0
    same = Keypoints(np.ones((9, 4)), np.arange(9))
    assert len(spread_evenly(same, 3)) == 3
    assert one_per_place(same).scores.tolist() == [8]


def test_what_is_no_radius_is_refused():
    found = scattered(10)
    with pytest.raises(ValueError, match=r"radius: expected a number or one for each of 10"):
        one_per_place(found, np.ones(9))
    for bad in (-1, np.nan, np.inf):
        with pytest.raises(ValueError, match="radius: expected numbers >= 0"):
            one_per_place(found, bad)
    with pytest.raises(ValueError, match="max_keypoints: expected"):
        spread_evenly(found, 0)

"""Growth: what is found between keypoints, how exact it is, and what is refused."""

import numpy as np
import pytest

from mkdesc.images import Keypoints
from mkdesc.matching.growing.dense import grid_places, grow_dense
from mkdesc.matching.growing.grow import GrownMatches, grow_matches
from mkdesc.matching.growing.merging import name_nearest, one_for_each_place
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.rounds import count_support, find_neighbours

SHAPE = (260, 340)
MATRIX, SHIFT = np.array([[0.93, -0.18], [0.21, 0.97]]), np.array([30.2, -14.6])
TURN = np.degrees(np.arctan2(0.21, 0.93))


@pytest.fixture(scope="module")
def scene(texture, as_photograph):
    """Two photographs, and keypoints (N, 4) of either: no two are of the same place."""
    rng = np.random.default_rng(1)
    images = [as_photograph(texture(SHAPE)), as_photograph(texture(SHAPE, MATRIX, SHIFT))]
    keypoints = []
    for turn in (0.0, TURN):
        xy = rng.uniform(5, [SHAPE[1] - 6, SHAPE[0] - 6], (300, 2))
        keypoints.append(np.column_stack([xy, np.full(300, 2.0), np.full(300, turn)]))
    return *images, *keypoints


def truth(points):
    return points @ MATRIX.T + SHIFT


def nearest_pairs(a, b, count, rng, wrong=0):
    """The pairs (K, 2) of keypoints that are nearest to each other, and some at random."""
    off = np.linalg.norm(truth(a[:, :2])[:, None] - b[None, :, :2], axis=2)
    right = np.column_stack([np.arange(len(a)), off.argmin(axis=1)])
    right = right[np.argsort(off.min(axis=1))[:count]]
    random = np.column_stack([rng.integers(0, len(a), wrong), rng.integers(0, len(b), wrong)])
    return np.concatenate([right, random])


def test_a_few_right_pairs_among_many_wrong_ones_grow_over_the_scene(scene, rng):
    one, two, a, b = scene
    found = grow_matches(one, two, a, b, nearest_pairs(a, b, 15, rng, wrong=150))
    off = np.linalg.norm(found.points_b - truth(found.points_a), axis=1)
    there = truth(a[:, :2])
    seen = ((there > 15) & (there < np.array(SHAPE[::-1]) - 16)).all(axis=1)
    assert len(off) > 1.5 * seen.sum()  # keypoints of both, though no two are of one place
    assert (off < 1).mean() > 0.98
    assert np.median(off) < 0.03
    assert np.median(np.abs(found.maps - MATRIX).max(axis=(1, 2))) < 0.02
    assert (found.correlation >= 0.75).all()
    assert (np.diff(found.correlation) <= 0).all()
    assert (found.returned <= 1.5).all()
    assert (found.agree >= 3).all()
    assert (found.texture > 0).all()


def test_photographs_of_different_things_have_no_matches(scene, texture, as_photograph, rng):
    one, _, a, b = scene
    other = as_photograph(texture(SHAPE, MATRIX, (7000.0, -9000)))
    pairs = nearest_pairs(a, b, 200, rng, wrong=300)
    assert len(grow_matches(one, other, a, b, pairs).points_a) == 0


def test_pairs_say_whose_keypoint_a_match_is(scene, rng):
    one, two, a, b = scene
    found = grow_matches(one, two, a, b, nearest_pairs(a, b, 30, rng))
    i, j = found.pairs.T
    assert ((i >= 0) | (j >= 0)).all()
    for column, places, points in ((i, a, found.points_a), (j, b, found.points_b)):
        named = column >= 0
        assert len(set(column[named].tolist())) == named.sum()
        off = np.linalg.norm(places[column[named], :2] - points[named], axis=1)
        assert (off <= 2).all()
        assert (off == 0).sum() > 20
    assert ((i >= 0) & (j >= 0)).any()


def test_no_two_matches_are_of_one_place(scene, rng):
    one, two, a, b = scene
    a = np.concatenate([a, a + np.array([0.5, 0.5, 0, 90])])  # as detectors give several angles
    found = grow_matches(one, two, a, b, nearest_pairs(a, b, 60, rng))
    here, there = (
        np.linalg.norm(points[:, None] - points[None], axis=2)
        for points in (found.points_a, found.points_b)
    )
    near = (here < 2) & (there < 2)
    assert near.sum() == len(near)  # each is near itself alone


def test_the_same_bits_by_any_number_of_threads(scene, rng):
    one, two, a, b = scene
    pairs = nearest_pairs(a, b, 15, rng, wrong=50)
    expected = grow_matches(one, two, a, b, pairs, n_threads=1)
    dense = grow_dense(one, two, expected, 16, n_threads=1)
    for threads in (2, 5):
        found = grow_matches(one, two, a, b, pairs, n_threads=threads)
        assert [x.tobytes() for x in found] == [x.tobytes() for x in expected]
        again = grow_dense(one, two, found, 16, n_threads=threads)
        assert [x.tobytes() for x in again] == [x.tobytes() for x in dense]


def test_maps_that_are_given_are_used(texture, as_photograph, rng):
    """On its side and narrower: positions alone say nothing of it."""
    matrix, shift = np.array([[0.1, -0.7], [1.0, 0.1]]), np.array([220.0, -20.0])
    one, two = as_photograph(texture(SHAPE)), as_photograph(texture(SHAPE, matrix, shift))
    a = rng.uniform(40, [220, 220], (80, 2))
    b = a @ matrix.T + shift + rng.normal(size=a.shape)
    pairs = np.repeat(np.arange(80)[:, None], 2, axis=1)
    given = grow_matches(one, two, a, b, pairs, maps=np.tile(matrix, (80, 1, 1)))
    off = np.linalg.norm(given.points_b - (given.points_a @ matrix.T + shift), axis=1)
    assert len(off) > 70
    assert (off < 0.5).mean() > 0.95
    assert len(grow_matches(one, two, a, b, pairs).points_a) < 5


def test_keypoints_may_be_of_any_kind(scene, rng):
    one, two, a, b = scene
    pairs = nearest_pairs(a, b, 20, rng)
    expected = grow_matches(one, two, a, b, pairs)
    scores = np.zeros(len(a), np.float32)
    found = grow_matches(one, two, Keypoints(a, scores), Keypoints(b, scores), pairs.tolist())
    assert found.points_b.tobytes() == expected.points_b.tobytes()
    plain = grow_matches(one, two, a[:, :2], b[:, :2], pairs)  # and 13 degrees are no obstacle
    assert len(plain.points_a) > 0.9 * len(expected.points_a)


def test_take(scene, rng):
    one, two, a, b = scene
    found = grow_matches(one, two, a, b, nearest_pairs(a, b, 20, rng))
    some = found.take(found.correlation > found.correlation[9])
    assert isinstance(some, GrownMatches)
    assert len(some.points_a) == len(some.pairs) == 9


def test_dense_covers_what_both_photographs_show(scene, rng):
    one, two, a, b = scene
    seeds = grow_matches(one, two, a, b, nearest_pairs(a, b, 15, rng))
    found = grow_dense(one, two, seeds, 8)
    places = grid_places(SHAPE, 8)
    rows = {tuple(xy) for xy in places.tolist()}
    assert all(tuple(xy) in rows for xy in found.points_a.tolist())
    there = truth(places)
    seen = ((there > 15) & (there < np.array(SHAPE[::-1]) - 16)).all(axis=1)
    assert len(found.points_a) > 0.97 * seen.sum()
    off = np.linalg.norm(found.points_b - truth(found.points_a), axis=1)
    assert (off < 1).mean() > 0.98
    assert np.median(off) < 0.03
    assert (found.pairs == -1).all()
    order = np.lexsort((found.points_a[:, 0], found.points_a[:, 1]))
    assert (order == np.arange(len(order))).all()


def test_dense_leaves_out_what_has_no_texture(scene, rng):
    one, two, a, b = scene
    one, two = one.copy(), two.copy()
    one[100:180, 100:200] = 128
    seeds = grow_matches(one, two, a, b, nearest_pairs(a, b, 30, rng))
    found = grow_dense(one, two, seeds, 8)
    x, y = found.points_a.T
    assert len(x) > 200
    assert not ((x > 125) & (x < 175) & (y > 125) & (y < 155)).any()
    assert len(grow_dense(one, two, seeds.take(np.arange(0)), 8).points_a) == 0


@pytest.mark.parametrize("shape", [(1, 1), (1, 200), (200, 1), (5, 5), (64, 64)])
def test_tiny_and_constant_photographs_have_no_matches(rng, shape):
    xy = rng.uniform(0, np.array(shape[::-1]) - 1, (30, 2))
    pairs = np.repeat(np.arange(30)[:, None], 2, axis=1)
    for image in (np.full(shape, 60, np.uint8), rng.integers(0, 256, shape).astype(np.uint8)):
        found = grow_matches(image, 255 - image, xy, xy, pairs)
        assert len(found.points_a) == 0
        assert found.maps.shape == (0, 2, 2)
        assert len(grow_dense(image, image, found, 3).points_a) == 0
        same = grow_matches(image, image, xy, xy, pairs)  # may fit, and must not fail
        assert np.isfinite(same.points_b).all()


def test_nothing_gives_nothing(scene):
    one, two, a, b = scene
    for keypoints in (a, np.empty((0, 4)), np.empty((0, 2))):
        found = grow_matches(one, two, keypoints, b, np.empty((0, 2), np.int64))
        assert [len(values) for values in found] == [0] * 8
        assert found.pairs.dtype == np.int64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keypoints_a": np.zeros((9, 3))}, r"keypoints_a: points: expected \(N, 4\)"),
        ({"keypoints_b": np.full((9, 2), np.nan)}, r"keypoints_b\[0\] has NaN"),
        ({"pairs": [[0, 300]]}, r"pairs\[0\]: expected numbers of 300 and 300 keypoints, got \[0"),
        ({"pairs": [[0, -1]]}, r"pairs\[0\]: expected numbers"),
        ({"pairs": [[0.5, 1]]}, r"pairs: expected integers \(K, 2\), got float64"),
        ({"pairs": [1, 2]}, r"pairs: expected integers \(K, 2\)"),
        ({"maps": np.zeros((3, 2, 2))}, r"maps: expected \(1, 2, 2\), got float64 \(3, 2, 2\)"),
        ({"maps": np.full((1, 2, 2), np.nan)}, r"maps\[0\] has NaN"),
        ({"image_a": np.full((9, 9), np.nan)}, "image: has NaN"),
        ({"n_threads": 0}, "n_threads: expected"),
    ],
)
def test_wrong_arguments_are_named(scene, change, message):
    names = ("image_a", "image_b", "keypoints_a", "keypoints_b")
    arguments = dict(zip(names, scene, strict=True)) | {"pairs": [[0, 0]]} | change
    with pytest.raises(ValueError, match=message):
        grow_matches(**arguments)


def test_wrong_options_are_named(scene):
    with pytest.raises(ValueError, match="tries: expected an integer from 1 to 1000"):
        GrowOptions(tries=0)
    with pytest.raises(ValueError, match="max_return: expected a number >= 0"):
        GrowOptions(max_return=float("nan"))
    with pytest.raises(ValueError, match="grid: expected an integer >= 1"):
        grow_dense(*scene[:2], grow_matches(*scene, []), 0)


def test_neighbours_are_the_nearest_others(rng):
    places = rng.uniform(0, 50, (40, 2))
    places[7] = places[3]  # even of two at one place
    near = find_neighbours(places, 5)
    off = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(off, np.inf)
    for k in range(40):
        assert k not in near[k]
        np.testing.assert_allclose(np.sort(off[k])[:5], off[k, near[k]])
    assert find_neighbours(places[:3], 5).tolist() == [
        [*row, -1, -1, -1] for row in find_neighbours(places[:3], 2).tolist()
    ]
    assert find_neighbours(places[:1], 2).tolist() == [[-1, -1]]


def test_support_counts_neighbours_that_expect_a_match_there():
    places = np.array([[0.0, 0], [10, 0], [20, 0], [30, 0]])
    found = np.column_stack([2 * places, np.tile([2.0, 0, 0, 2], (4, 1))])
    found[2, 1] += 5.0  # beyond 2 px and 15% of 20 px, not of 40
    near = find_neighbours(places, 3)
    correlation = np.array([0.9, 0.9, 0.9, -1])
    options = GrowOptions(tolerance=2.0, tolerance_share=0.15)
    count = count_support(places, near, found, correlation, options)
    assert count.tolist() == [2, 1, 1, 0]


def test_of_matches_of_one_place_the_first_stays():
    points = np.array([[0.0, 0], [1, 0], [50, 0], [51.5, 0], [90, 0]])
    found = np.column_stack([points, np.tile([1.0, 0, 0, 1], (5, 1))])
    found[3, 0] += 20  # near in one photograph, and elsewhere in the other
    found[4, 0] = 0.5  # and the other way round
    assert one_for_each_place(points, found, GrowOptions()).tolist() == [0, 2]
    far = np.column_stack([4 * points[:2], np.tile([4.0, 0, 0, 4], (2, 1))])
    assert one_for_each_place(points[:2], far, GrowOptions()).tolist() == [0, 1]


def test_the_nearest_match_gets_a_keypoint():
    column = np.array([-1, -1, 5, -1])
    places = np.array([[0.0, 0], [10, 0], [20, 0], [30, 0], [40, 0], [50, 0]])
    points = np.array([[10.5, 0], [9.9, 0], [0.1, 0], [49.9, 0]])
    name_nearest(column, places, points, 2.0)
    assert column.tolist() == [-1, 1, 5, -1]

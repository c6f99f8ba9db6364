"""Keypoints as arrays: the strongest, always in the same order, and OpenCV's objects."""

import pickle

import cv2
import numpy as np
import pytest

from mkdesc.images.detectors.keypoints import Keypoints


def many(count=400, seed=0):
    """With many equal scores, places and sigmas, so that ties have to be broken."""
    rng = np.random.default_rng(seed)
    points = rng.integers(1, [5, 5, 3, 4], (count, 4)).astype(float) * [1, 1, 1.6, 30]
    return Keypoints(points, rng.integers(0, 6, count) / 4)


def as_rows(found):
    return [(-score, *point) for score, point in zip(found.scores, found.points, strict=True)]


@pytest.mark.parametrize("n", [None, 1, 7, 100, 399, 400, 1000])
def test_the_strongest_come_in_one_order_however_they_came(n):
    found = many()
    expected = sorted(as_rows(found))[:n]
    shuffled = found.take(np.random.default_rng(1).permutation(len(found)))
    assert as_rows(found.strongest(n)) == as_rows(shuffled.strongest(n)) == expected


def test_upright_ones_are_the_strongest_of_each_place_and_sigma():
    found = many()
    best = {}
    for (*place, _), score in zip(found.points.tolist(), found.scores, strict=True):
        best[tuple(place)] = max(score, best.get(tuple(place), 0))
    upright = found.upright()
    assert set(upright.points[:, 3]) == {0}
    kept = [tuple(place) for place in upright.points[:, :3].tolist()]
    assert dict(zip(kept, upright.scores, strict=True)) == best
    assert len(kept) == len(best)
    assert (np.diff(upright.scores) <= 0).all()


def test_opencv_s_objects_and_back():
    rng = np.random.default_rng(0)
    points = rng.uniform([10, 10, 0.5, 0], [500, 400, 20, 360], (50, 4)).astype(np.float32)
    found = Keypoints(points, rng.random(50))
    again = Keypoints.from_opencv(found.to_opencv())
    np.testing.assert_array_equal(again.points, found.points)
    np.testing.assert_array_equal(again.scores, found.scores)
    (whole,) = Keypoints([[1, 2, 3, -90]], [0]).to_opencv()
    assert whole.angle == 270
    assert Keypoints.from_opencv([cv2.KeyPoint(5, 6, 7)]).points.tolist() == [[5, 6, 3.5, 0]]


def test_opencv_s_sift_describes_them_as_its_own():
    """It finds the image of its pyramid by the octave, not by the size."""
    noise = np.random.default_rng(0).integers(0, 256, (200, 240), np.uint8)
    image = cv2.GaussianBlur(noise, (0, 0), 2)
    sift = cv2.SIFT_create()
    own = sift.detect(image, None)
    ours = Keypoints.from_opencv(own).to_opencv()
    assert [k.octave & 0xFFFF for k in ours] == [k.octave & 0xFFFF for k in own]
    np.testing.assert_array_equal(sift.compute(image, ours)[1], sift.compute(image, own)[1])


def test_there_may_be_none():
    none = Keypoints.empty()
    assert len(none) == len(none.strongest(5)) == len(none.upright()) == 0
    assert none.points.shape == (0, 4)
    assert none.to_opencv() == []
    assert Keypoints.from_opencv(()).points.shape == (0, 4)


def test_they_are_float64_and_float32_and_can_be_pickled():
    found = pickle.loads(pickle.dumps(Keypoints([[1, 2, 3, 4]], [5])))
    assert (found.points.dtype, found.scores.dtype) == (np.float64, np.float32)
    assert repr(found) == "Keypoints(1)"


@pytest.mark.parametrize(
    ("points", "scores", "message"),
    [
        (np.ones((2, 3)), [1, 1], r"points: expected \(N, 4\) .*, got \(2, 3\)"),
        ([[1, 2, 3, 4], [1, 2, 0, 4]], [1, 1], r"points\[1\]: expected .* sigma > 0"),
        ([[1, np.nan, 3, 4]], [1], r"points\[0\]: expected finite"),
        (np.ones((2, 4)), [1], r"scores: expected one for each of 2 keypoints, got \(1,\)"),
        (np.ones((2, 4)), [1, np.inf], "scores: expected finite numbers"),
    ],
)
def test_what_cannot_be_keypoints_is_refused(points, scores, message):
    with pytest.raises(ValueError, match=message):
        Keypoints(points, scores)


@pytest.mark.parametrize("number", [0, -1, 1.5, "3"])
def test_a_number_of_keypoints_is_a_positive_integer(number):
    with pytest.raises(ValueError, match="max_keypoints: expected an integer >= 1 or None"):
        Keypoints.empty().strongest(number)

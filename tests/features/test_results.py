"""Results as people meet them: one line, a length, data frames, OpenCV's objects."""

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.features import ImageFeatures
from mkdesc.geometry.estimators.base import Estimate
from mkdesc.retrieval.agreement import Agreement
from mkdesc.retrieval.index import Found

N = 40


@pytest.fixture
def descriptors(rng):
    return rng.normal(size=(N, 8)).astype(np.float32)


@pytest.fixture
def kept(rng, descriptors):
    points = rng.uniform(5, 90, (N, 4)).astype(np.float32)
    return ImageFeatures(points, np.linspace(1, 0, N), descriptors, np.array([100, 100]))


def test_matches(descriptors):
    order = np.arange(N)[::-1]
    matches = mkdesc.match_descriptors(descriptors, descriptors[order])
    assert len(matches) == N
    assert [(i, j) for i, j, _ in matches] == [(i, N - 1 - i) for i in range(N)]
    assert repr(matches) == "<Matches: 40 pairs>"
    found = matches.to_opencv()
    assert [(m.queryIdx, m.trainIdx) for m in found] == [(i, N - 1 - i) for i in range(N)]
    nothing = mkdesc.match_descriptors(descriptors[:0], descriptors)
    assert (len(nothing), list(nothing)) == (0, [])


def test_one_line_each(kept):
    agreed = np.ones(N, np.bool_)
    results = {
        "<Estimate: 40 of 40 matches agree (homography)>": Estimate(
            np.eye(3), agreed, "homography"
        ),
        "<Estimate: none of 40 matches agree>": Estimate(None, ~agreed),
        "<ImageFeatures: 40 keypoints, 8 x float32 each>": kept,
        "<Found: a.jpg, similarity 0.250>": Found("a.jpg", 0.25),
    }
    assert {repr(result): result for result in results.values()} == results
    assert len(kept) == N
    matrix, inliers = Estimate(None, ~agreed)
    assert matrix is None
    assert not inliers.any()


def test_what_was_found_and_agrees(rng):
    places = rng.uniform(0, 50, (12, 2))
    others = dict.fromkeys(name for name in Agreement._fields if name not in ("here", "there"))
    agreement = Agreement(here=places, there=places, **others)
    assert repr(Found("a.jpg", 0.25, agreement)).endswith("0.250, 12 matches agree>")


def test_data_frames(kept, descriptors):
    pytest.importorskip("pandas")
    matches = mkdesc.match_descriptors(descriptors, descriptors).to_dataframe()
    assert list(matches) == ["a", "b", "distance"]
    assert matches.a.tolist() == matches.b.tolist() == list(range(N))
    frame = kept.to_dataframe()
    assert list(frame) == ["x", "y", "sigma", "angle", "score"]
    np.testing.assert_array_equal(frame[["x", "y", "sigma", "angle"]], kept.keypoints)
    assert kept.to_opencv()[3].pt == pytest.approx(tuple(kept.keypoints[3, :2]))


def test_matches_of_photographs_as_opencv_and_pandas_have_them(rng):
    pytest.importorskip("pandas")
    noise = cv2.GaussianBlur(rng.integers(0, 256, (150, 150), np.uint8), (0, 0), 1.5)
    image = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX)
    found = mkdesc.match_images(image, image, mkdesc.Features(200))
    keypoints_a, keypoints_b, matches = found.to_opencv()
    assert len(matches) == len(found) == len(found.to_dataframe())
    for row, match in zip(found.to_dataframe().itertuples(), matches, strict=True):
        assert keypoints_a[match.queryIdx].pt == pytest.approx((row.x_a, row.y_a), abs=1e-3)
        assert keypoints_b[match.trainIdx].pt == pytest.approx((row.x_b, row.y_b), abs=1e-3)
    assert found.to_dataframe().inlier.sum() == found.inliers.sum()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nfeatures": 500}, "nfeatures: OpenCV's name; use max_keypoints=500"),
        (
            {"contrastThreshold": 0.03},
            r'use make_detector\("sift", contrast=0.03\) as the detector',
        ),
        ({"nOctaveLayers": 4}, r"use cv2.SIFT_create\(nOctaveLayers=4\) as the detector"),
        ({"detector": 0}, "max_keypoints: expected an integer >= 1 or None, got 0"),
        ({"detector": None}, r"detector: expected a name \(learned, sift, .* got None"),
        ({"detector": 500, "max_keypoints": 5}, "the number of keypoints is there already"),
    ],
)
def test_features_say_what_they_take(given, said):
    with pytest.raises(ValueError, match=said):
        mkdesc.Features(**given)


def test_a_number_may_come_before_the_detector():
    features = mkdesc.Features(20, detector="orb")
    assert (features.max_keypoints, features.detector.side) == (20, 2.0)
    assert repr(features) == repr(mkdesc.Features("orb", 20))
    with pytest.raises(ValueError, match="detector: expected one, got 'dog' and 'orb'"):
        mkdesc.Features("dog", detector="orb")


def test_a_name_that_nobody_has_is_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        mkdesc.Features(colour=True)


def test_no_descriptors_where_opencv_found_none():
    rows = np.eye(3, 8, dtype=np.float32)
    with pytest.raises(ValueError, match="b: expected an array, got None"):
        mkdesc.match_descriptors(rows, None)

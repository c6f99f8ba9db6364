"""The strongest keypoints, always in the same order."""

import cv2
import numpy as np
import pytest

from mkdesc.images.keypoints import detect_keypoints, make_detector


@pytest.fixture
def image():
    noise = np.random.default_rng(0).integers(0, 256, (200, 240)).astype(np.float32)
    return cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2), None, 0, 255, 32).astype(np.uint8)


def as_rows(keypoints):
    return [(k.response, k.pt, k.size, k.angle) for k in keypoints]


def test_they_are_opencvs_sorted_by_response(image):
    found = as_rows(detect_keypoints(image))
    plain = as_rows(cv2.SIFT_create().detect(image, None))
    assert sorted(found) == sorted(plain)
    assert [row[0] for row in found] == sorted((row[0] for row in plain), reverse=True)
    assert as_rows(detect_keypoints(image, 20)) == found[:20]


def test_depth_and_colour_do_not_matter(image):
    found = as_rows(detect_keypoints(image))
    for same in (
        image.astype(np.uint16) * 257,
        image.astype(np.float32) / 255,
        np.dstack([image] * 3),
    ):
        assert as_rows(detect_keypoints(same)) == found


def test_a_mask_keeps_keypoints_where_it_is_set(image):
    mask = np.zeros(image.shape, np.uint8)
    mask[:, :100] = 255
    assert all(k.pt[0] < 101 for k in detect_keypoints(image, mask=mask))
    with pytest.raises(ValueError, match="mask: expected the image's shape"):
        detect_keypoints(image, mask=mask[1:])


def test_there_may_be_none():
    for flat in (np.full((100, 100), 7, np.uint8), np.zeros((1, 1), np.uint8)):
        assert detect_keypoints(flat) == []


def test_other_detectors_by_name_and_as_objects(image):
    assert len(detect_keypoints(image, detector="orb")) > 500
    fast = cv2.FastFeatureDetector_create()
    assert len(detect_keypoints(image, 10, fast)) == 10


def test_bad_arguments_are_named(image):
    with pytest.raises(ValueError, match=r"detector: expected one of sift.*'surf'"):
        detect_keypoints(image, detector="surf")
    with pytest.raises(ValueError, match="detector: expected a name"):
        detect_keypoints(image, detector=3)
    with pytest.raises(ValueError, match="max_keypoints: expected"):
        detect_keypoints(image, 0)
    with pytest.raises(ValueError, match=r"within \[0, 1\]"):
        detect_keypoints(image.astype(float))


def test_detectors_that_this_opencv_lacks_are_named(monkeypatch):
    monkeypatch.delattr(cv2, "ORB_create")
    with pytest.raises(
        ValueError, match=r"this OpenCV \(.*\) has no orb \(cv2.ORB_create\); it h"
    ):
        make_detector("orb")

"""OpenCV's detectors find what OpenCV finds, in any thread and process."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.opencv import BLOBS
from mkdesc.images.detectors.registry import as_detector, make_detector

FACTORIES = {
    "sift": "SIFT_create",
    "orb": "ORB_create",
    "akaze": "AKAZE_create",
    "kaze": "KAZE_create",
    "brisk": "BRISK_create",
    "fast": "FastFeatureDetector_create",
    "gftt": "GFTTDetector_create",
    "mser": "MSER_create",
}
OPTIONS = {"sift": {"enable_precise_upscale": True}, "orb": {"nfeatures": 100_000}}


def as_rows(found):
    assert len(found)
    return np.column_stack([found.points, found.scores]).tolist()


@pytest.mark.parametrize("name", FACTORIES)
def test_they_are_opencv_s(image, name):
    factory = getattr(cv2, FACTORIES[name], None)
    if factory is None:
        pytest.skip("not in this build of OpenCV")
    theirs = Keypoints.from_opencv(factory(**OPTIONS.get(name, {})).detect(image, None))
    assert as_rows(make_detector(name).detect(image)) == as_rows(theirs)


@pytest.mark.parametrize(
    ("settings", "theirs"),
    [
        (BLOBS, {"contrastThreshold": 0.01}),
        ({"sensitive": True}, {"contrastThreshold": 0.01}),
        ({"precise": False}, {"enable_precise_upscale": False}),
    ],
)
def test_settings_of_sift(image, settings, theirs):
    sift = cv2.SIFT_create(**{"enable_precise_upscale": True, **theirs})
    found = make_detector("sift", **settings).detect(image)
    assert as_rows(found) == as_rows(Keypoints.from_opencv(sift.detect(image, None)))
    assert as_rows(found) != as_rows(make_detector("sift").detect(image))


def test_a_mask_keeps_keypoints_where_it_is_set(image):
    mask = np.zeros(image.shape, np.uint8)
    mask[:, :100] = 255
    found = make_detector("sift").detect(image, mask)
    assert len(found) > 10
    assert (found.points[:, 0] < 101).all()


def test_there_may_be_none():
    for flat in (np.full((100, 100), 7, np.uint8), np.zeros((1, 1), np.uint8)):
        assert len(make_detector("sift").detect(flat)) == 0


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (2, 90), (90, 2), (3, 3), (3, 90)])
def test_slivers_have_no_keypoints(name, shape, rng):
    if not hasattr(cv2, FACTORIES[name]):
        pytest.skip("not in this build of OpenCV")
    sliver = rng.integers(0, 256, shape, np.uint8)
    assert len(make_detector(name).detect(sliver)) == 0 or min(shape) > 2


def test_many_threads_may_use_one_and_processes_get_it(image):
    for detector in (make_detector("sift"), make_detector("sift", **BLOBS)):
        detector = pickle.loads(pickle.dumps(detector))
        alone = as_rows(detector.detect(image))
        with ThreadPoolExecutor(4) as pool:
            assert all(as_rows(x) == alone for x in pool.map(detector.detect, [image] * 16))


def test_an_object_of_ones_own(image):
    own = cv2.FastFeatureDetector_create(threshold=25)
    detector = as_detector(own, max_keypoints=3)
    assert detector.side is None
    assert as_rows(detector.detect(image)) == as_rows(
        Keypoints.from_opencv(own.detect(image, None))
    )


def test_detectors_that_this_opencv_lacks_are_named(monkeypatch):
    monkeypatch.delattr(cv2, "ORB_create")
    with pytest.raises(ValueError, match=r"this OpenCV \(.*\) has no orb \(cv2.ORB_create\)"):
        make_detector("orb")

"""Matches lie where they should: to a twentieth of a pixel, whichever way the image is turned."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc._support.workfolder import check_settings
from mkdesc.features.folder import Settings
from mkdesc.images.demo import photograph


def quarter(image):
    height, _ = image.shape
    return np.rot90(image, -1), [[0, -1, height - 1], [1, 0, 0], [0, 0, 1]]


def half(image):
    height, width = image.shape
    return np.rot90(image, 2), [[-1, 0, width - 1], [0, -1, height - 1], [0, 0, 1]]


def doubled(image):
    larger = cv2.resize(image, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
    return larger, [[2, 0, 0.5], [0, 2, 0.5], [0, 0, 1]]


@pytest.mark.parametrize("change", [quarter, half, doubled])
def test_matches_lie_where_they_should(change):
    image = photograph()
    other, matrix = change(image)
    matrix = np.array(matrix, float)
    found = mkdesc.match_images(image, other, geometry="homography")
    assert found.inliers.sum() > 500
    here, there = found.points_a[found.inliers], found.points_b[found.inliers]
    expected = cv2.perspectiveTransform(here[None], matrix)[0]
    np.testing.assert_allclose(np.median(there - expected, axis=0), 0, atol=0.05)
    # There by the geometry that was found, and back by the true one.
    around = np.linalg.inv(matrix) @ found.matrix
    back = cv2.perspectiveTransform(here[None], around)[0]
    np.testing.assert_allclose(np.median(back - here, axis=0), 0, atol=0.05)


def test_features_of_other_positions_are_not_mixed():
    """Those of a plain cv2.SIFT_create(), as they were made once, a quarter of a pixel off."""
    ours = json.loads(Settings(max_keypoints=50).to_json())
    theirs = dict(ours)
    check_settings(Path("f"), theirs, ours)
    for before in (None, {**theirs["detector_settings"], "precise": False}):
        theirs["detector_settings"] = before
        with pytest.raises(ValueError, match=r"f: .* other settings \(detector_set"):
            check_settings(Path("f"), theirs, ours)

"""Matches lie where they should: to a twentieth of a pixel, whichever way the image is turned."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc._support.workfolder import check_settings
from mkdesc.features.extraction import extract_to
from mkdesc.features.image_features import load_features
from mkdesc.features.settings import Settings
from mkdesc.features.view_features import features_in_views
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


@pytest.fixture(scope="module", params=[quarter, half, doubled])
def change(request):
    """A photograph, another one of it, and where its places are there."""
    image = np.ascontiguousarray(photograph()[100:420, 80:400])
    other, matrix = request.param(image)
    return image, np.ascontiguousarray(other), np.array(matrix, float)


@pytest.fixture(scope="module")
def features():
    return mkdesc.Features(2000)


def check_places(here, there, matrix, least=300):
    """Matches that are right are so on average to a twentieth of a pixel."""
    off = there - cv2.perspectiveTransform(here[None], matrix)[0]
    near = np.linalg.norm(off, axis=1) < 2
    assert near.sum() > least
    np.testing.assert_allclose(np.median(off[near], axis=0), 0, atol=0.05)


def check_plane(found, here, matrix):
    """There by the geometry that was found, and back by the true one."""
    around = np.linalg.inv(matrix) @ found
    back = cv2.perspectiveTransform(here[None], around)[0]
    np.testing.assert_allclose(np.median(back - here, axis=0), 0, atol=0.05)


def test_match_images(change, features):
    image, other, matrix = change
    found = mkdesc.match_images(image, other, features, geometry="homography")
    here, there = found.points_a[found.inliers], found.points_b[found.inliers]
    check_places(here, there, matrix)
    check_plane(found.matrix, here, matrix)


@pytest.mark.parametrize("detector", ["learned", "dog", "sift"])
def test_features_as_opencv_has_them(change, detector):
    image, other, matrix = change
    features = mkdesc.Features(detector, max_keypoints=2000)
    (first, one), (second, two) = (features.detectAndCompute(x) for x in (image, other))
    pairs = mkdesc.match_descriptors(one, two, ratio=0.95).pairs
    places = [np.array([k.pt for k in keypoints]) for keypoints in (first, second)]
    check_places(places[0][pairs[:, 0]], places[1][pairs[:, 1]], matrix)


@pytest.mark.parametrize("detector", ["learned", "dog", "sift"])
def test_features_in_files(change, detector, tmp_path):
    image, other, matrix = change
    for name, picture in (("a.png", image), ("b.png", other)):
        cv2.imwrite(str(tmp_path / name), picture)
    extract_to(
        [tmp_path / "a.png", tmp_path / "b.png"], tmp_path / "f", settings=Settings(detector)
    )
    a, b = (load_features(tmp_path / "f", name) for name in ("a.png", "b.png"))
    pairs = mkdesc.match_descriptors(a.descriptors, b.descriptors, ratio=0.95).pairs
    places = [x.keypoints[:, :2].astype(float)[i] for x, i in ((a, pairs[:, 0]), (b, pairs[:, 1]))]
    check_places(*places, matrix)


def test_shapes_and_views_from_aside(change, features):
    """Every kind of feature by itself, in the photograph and in views of it."""
    image, other, matrix = change
    one_thread = features.replace(n_threads=1)
    for tilt in (1.0, 3.0):
        a, b = (
            features_in_views(x, tilt, one_thread, 1000, 2, lambda *_: None)
            for x in (image, other)
        )
        # Regions of a view of another size are not quite the same ones.
        turned = np.linalg.det(matrix) < 2
        for kind in a.all_kinds() if turned or tilt == 1 else (0, 1):
            i, j = a.of_kind(kind), b.of_kind(kind)
            pairs = mkdesc.match_descriptors(a.descriptors[i], b.descriptors[j]).pairs
            here, there = a.frames[i[pairs[:, 0]], :, 2], b.frames[j[pairs[:, 1]], :, 2]
            check_places(here, there, matrix, least=50)


def test_a_wide_search(change, features):
    image, other, matrix = change
    found = mkdesc.match_images(image, other, features, wide=True, geometry="homography")
    here, there = found.points_a[found.inliers], found.points_b[found.inliers]
    check_places(here, there, matrix)
    check_plane(found.matrix, here, matrix)


def test_features_of_other_positions_are_not_mixed():
    """Those of a plain cv2.SIFT_create(), as they were made once, a quarter of a pixel off."""
    ours = json.loads(Settings(max_keypoints=50).to_json())
    check_settings(Path("f"), json.dumps(ours), ours)
    for before in (None, {**ours["detector_settings"], "precise": False}):
        theirs = {**ours, "detector_settings": before}
        with pytest.raises(ValueError, match=r"f: made with other settings \(detector_settings"):
            check_settings(Path("f"), json.dumps(theirs), ours)

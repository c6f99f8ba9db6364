"""Matches of a reconstruction, guided by a geometry that is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from mkdesc.features.image_features import ImageFeatures
from mkdesc.sfm.guided import _guided

pytest.importorskip("cv2")  # before pycolmap, see mkdesc.datasets.colmap.pycolmap_module
pycolmap = pytest.importorskip("pycolmap")


def features(descriptors):
    xy = np.column_stack([10 + 50.0 * np.arange(len(descriptors)), np.full(len(descriptors), 40)])
    xy[1] = xy[0] + 1  # two keypoints of one place
    keypoints = np.column_stack([xy, np.ones(len(xy)), np.zeros(len(xy))]).astype(np.float32)
    scores = np.ones(len(xy), np.float32)
    return ImageFeatures(keypoints, scores, descriptors, np.array([640, 480]))


def known(matches, kind="PLANAR"):
    config = getattr(pycolmap.TwoViewGeometryConfiguration, kind)
    sideways = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    return SimpleNamespace(
        inlier_matches=np.array(matches, np.uint32).reshape(-1, 2),
        config=config,
        H=np.eye(3),
        F=sideways,
    )


@pytest.mark.parametrize("kind", ["PLANAR", "CALIBRATED"])
def test_known_matches_stay_and_come_first(kind):
    """Feature 0 is known to match 1: that 0 looks more like it does not count."""
    described = np.eye(5, 8, dtype=np.float32)
    a, b = features(described), features(described)
    found = _guided(known([[4, 4], [0, 1]], kind), a, b, None)
    assert found.dtype == np.uint32
    assert found[:2].tolist() == [[4, 4], [0, 1]]
    assert sorted(found[2:].tolist()) == [[2, 2], [3, 3]]


def test_nothing_known_guides_nothing():
    described = np.eye(5, 8, dtype=np.float32)
    assert _guided(known([]), features(described), features(described), None) is None
    lost = known([[0, 0]], "CALIBRATED")
    lost.F = None
    assert _guided(lost, features(described), features(described), None) is None

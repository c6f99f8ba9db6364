"""Errors of matches against what the estimators themselves take for inliers."""

import numpy as np
import pytest

from mkdesc.geometry import Camera, estimate_geometry
from mkdesc.geometry.estimators.base import MatchedPoints
from mkdesc.geometry.residuals import geometry_errors

SIZES = ((480, 640), (480, 640))


@pytest.fixture(scope="module")
def scene():
    """A deep scene seen twice by one camera, a fifth of it wrong."""
    rng = np.random.default_rng(0)
    points = rng.uniform((-2, -1.5, 4), (2, 1.5, 8), (500, 3))
    angle = 0.1
    turn = np.array(
        [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]
    )
    seen = [points, points @ turn.T + [0.8, 0.1, 0.2]]
    both = [600 * one[:, :2] / one[:, 2:] + [319.5, 239.5] for one in seen]
    both = [one + rng.normal(0, 0.3, one.shape) for one in both]
    both[1][:100] = rng.uniform((0, 0), (640, 480), (100, 2))
    return both


@pytest.mark.parametrize("kind", ["fundamental", "essential", "shared-focal"])
def test_those_of_epipolar_geometries(scene, kind):
    here, there = scene
    cameras = [Camera.from_focal(600, 640, 480)] * 2
    known = cameras if kind == "essential" else None
    found = estimate_geometry(here, there, kind, 1.5, cameras=known, sizes=SIZES)
    assert found.inliers.sum() > 390
    centres = (np.array([319.5, 239.5]),) * 2
    points = MatchedPoints(here, there, known and tuple(cameras), centres)
    off = geometry_errors(found, points)
    assert np.mean((off <= 1.5) == found.inliers) > 0.99
    good = slice(100, None)
    assert 0.15 < np.median(off[good]) < 0.4  # pixels: the noise across the epipolar lines
    assert np.median(off[:100]) > 10


def test_those_of_a_homography(scene):
    here = scene[0]
    matrix = np.array([[1.1, 0.1, 3], [0, 0.9, -5], [1e-4, 0, 1]])
    ends = np.column_stack([here, np.ones(len(here))]) @ matrix.T
    there = ends[:, :2] / ends[:, 2:] + [3, 4] * (np.arange(len(here)) % 2)[:, None]
    found = estimate_geometry(here, there, "homography", 1.0)
    off = geometry_errors(found, MatchedPoints(here, there))
    assert np.array_equal(off <= 1, found.inliers)
    assert np.allclose(np.sort(off)[[0, -1]], [0, 5], atol=1e-3)

"""Estimates of scenes that are known, by both libraries; and what determines nothing."""

import ast
from pathlib import Path

import cv2
import numpy as np
import pytest

from mkdesc.geometry import (
    Camera,
    EstimatorOptions,
    estimate_absolute_pose,
    estimate_geometry,
)
from mkdesc.geometry import options as options_module

LENS = Camera("OPENCV", 640, 480, (600, 610, 330, 235, -0.25, 0.08, 1e-3, -2e-3))
FLAT = Camera.from_matrix([[600, 0, 329.5], [0, 610, 234.5], [0, 0, 1]], 640, 480)
TURN = cv2.Rodrigues(np.array([0.05, -0.2, 0.1]))[0]
SHIFT = np.array([1.0, 0.2, 0.1]) / np.linalg.norm([1.0, 0.2, 0.1])
SIZES = (480, 640), (480, 640)
BOTH = [EstimatorOptions(backend=name) for name in ("poselib", "opencv")]


def scene(rng, count=300, wrong=90, noise=0.2, cameras=(FLAT, FLAT)):
    """Positions in two photographs; the first ones are wrong."""
    points = rng.uniform([-2, -1.5, 5], [2, 1.5, 10], (count, 3))
    moved = points @ TURN.T + SHIFT
    a, b = (
        camera.project(xyz[:, :2] / xyz[:, 2:]) + rng.normal(0, noise, (count, 2))
        for camera, xyz in zip(cameras, (points, moved), strict=True)
    )
    b[:wrong] = rng.uniform([0, 0], [640, 480], (wrong, 2))
    return a, b


def degrees_off(found):
    turn = np.degrees(np.linalg.norm(cv2.Rodrigues(found.rotation.T @ TURN)[0]))
    return turn, np.degrees(np.arccos(min(found.translation @ SHIFT, 1.0)))


@pytest.mark.parametrize("options", BOTH, ids=lambda options: options.backend)
@pytest.mark.parametrize("kind", ["homography", "fundamental", "essential"])
def test_inliers_are_the_right_matches(rng, kind, options):
    a, b = scene(rng)
    if kind == "homography":
        matrix = np.array([[0.9, 0.1, 30], [-0.2, 1.1, 9], [1e-4, 5e-5, 1]])
        b[90:] = cv2.perspectiveTransform(a[90:, None], matrix)[:, 0]
    found = estimate_geometry(a, b, kind, 1.5, cameras=(FLAT, FLAT), options=options)
    assert found.geometry == kind
    assert found.inliers[90:].mean() > 0.97
    assert found.inliers[:90].mean() < 0.1
    if kind == "homography":
        np.testing.assert_allclose(found.matrix, matrix, rtol=1e-3, atol=1e-2)


def test_the_lens_is_undone(rng):
    a, b = scene(rng, cameras=(LENS, LENS))
    turned, moved = degrees_off(estimate_geometry(a, b, "essential", 1.0, cameras=(LENS, LENS)))
    assert turned < 0.1
    assert moved < 0.5
    ignored = estimate_geometry(a, b, "essential", 1.0, cameras=(FLAT, FLAT))
    assert max(degrees_off(ignored)) > 1


def test_a_focal_length_that_is_not_known_is_found(rng):
    camera = Camera.from_focal(600, 640, 480)
    a, b = scene(rng, noise=0.1, cameras=(camera, camera))
    found = estimate_geometry(a, b, "shared-focal", 1.0, sizes=SIZES)
    assert found.focal == pytest.approx(600, rel=0.02)
    assert max(degrees_off(found)) < 1
    with pytest.raises(ValueError, match="sizes: expected"):
        estimate_geometry(a, b, "shared-focal", 1.0)
    with pytest.raises(ValueError, match="shared-focal needs PoseLib"):
        estimate_geometry(a, b, "shared-focal", 1.0, sizes=SIZES, options=BOTH[1])


@pytest.mark.parametrize("options", BOTH, ids=lambda options: options.backend)
def test_absolute_poses_are_found(rng, options):
    points = rng.uniform([-2, -1.5, 5], [2, 1.5, 10], (200, 3))
    seen = points @ TURN.T + SHIFT
    xy = LENS.project(seen[:, :2] / seen[:, 2:]) + rng.normal(0, 0.2, (200, 2))
    xy[:60] = rng.uniform([0, 0], [640, 480], (60, 2))
    found = estimate_absolute_pose(xy, points, LENS, 2.0, options)
    assert found.inliers[60:].mean() > 0.97
    assert found.inliers[:60].mean() < 0.1
    np.testing.assert_allclose(found.rotation, TURN, atol=2e-3)
    np.testing.assert_allclose(found.translation, SHIFT, atol=2e-2)
    assert estimate_absolute_pose(xy[:3], points[:3], LENS) is None
    with pytest.raises(ValueError, match=r"points: expected finite numbers \(200, 3\)"):
        estimate_absolute_pose(xy, points[:5], LENS)


@pytest.mark.parametrize("kind", ["homography", "fundamental", "essential", "shared-focal"])
def test_places_on_one_line_determine_nothing(rng, kind):
    line, one = np.outer(np.arange(40), [3.0, 5.0]), np.ones((40, 2))
    for a in (line, one, line[:0], line[:3]):
        found = estimate_geometry(a, a + 5, kind, cameras=(FLAT, FLAT), sizes=SIZES)
        assert found.matrix is None
        assert found.inliers.tolist() == [False] * len(a)


def test_the_same_input_gives_the_same_bits(rng):
    a, b = scene(rng)
    one, other = (estimate_geometry(a, b, "essential", cameras=(FLAT, FLAT)) for _ in range(2))
    assert one.matrix.tobytes() == other.matrix.tobytes()
    assert one.inliers.tobytes() == other.inliers.tobytes()


def test_the_covariance_is_that_of_many_tries(rng):
    """Standard deviations of rotation and direction over repeated noise, by both."""
    points = rng.uniform([-2, -1.5, 5], [2, 1.5, 10], (150, 3))
    turns, moves, said = [], [], []
    for _ in range(40):
        a, b = (
            FLAT.project(xyz[:, :2] / xyz[:, 2:]) + rng.normal(0, 0.3, (150, 2))
            for xyz in (points, points @ TURN.T + SHIFT)
        )
        found = estimate_geometry(a, b, "essential", 3.0, cameras=(FLAT, FLAT))
        turns.append(np.degrees(cv2.Rodrigues(found.rotation @ TURN.T)[0].ravel()))
        moves.append(np.degrees(found.translation - SHIFT))
        said.append(np.sqrt(found.pose_covariance.diagonal()))
    seen = np.concatenate([np.std(turns, axis=0), np.std(moves, axis=0)])
    np.testing.assert_allclose(np.mean(said, axis=0), seen, rtol=0.35, atol=0.003)


def test_without_poselib_opencv_estimates(rng, monkeypatch):
    monkeypatch.setattr(options_module, "_has_poselib", lambda: False)
    assert EstimatorOptions().library == "opencv"
    monkeypatch.setitem(__import__("sys").modules, "poselib", None)
    a, b = scene(rng)
    assert estimate_geometry(a, b, "fundamental").inliers[90:].mean() > 0.9


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("confidence", [-1, 0, 1, np.nan]),
        ("max_iterations", [0, -5, 1.5, True, 2**31]),
        ("min_iterations", [-1, 0.5]),
        ("seed", [-1, None]),
        ("backend", [None, "ransac"]),
    ],
)
def test_bad_options_are_named(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"{name}: expected"):
            EstimatorOptions(**{name: value})


ESTIMATORS = {
    *("findHomography", "findFundamentalMat", "findEssentialMat", "estimateAffine2D"),
    *("estimateAffinePartial2D", "solvePnPRansac", "recoverPose", "poselib"),
}


def test_no_other_room_calls_a_robust_estimator():
    package = Path(options_module.__file__).parents[1]
    found = []
    for path in package.rglob("*.py"):
        if package / "geometry" in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {getattr(node, "attr", None), getattr(node, "module", None)}
            names |= {alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")}
            if names & ESTIMATORS:
                found.append(f"{path.relative_to(package)}:{node.lineno}")
    assert not found

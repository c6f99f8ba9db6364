"""Which geometry matches speak for, poses, guesses from single frames, and chance."""

import math

import cv2
import numpy as np
import pytest

from mkdesc.matching.affinities import (
    affinities,
    frames_agree,
    frames_follow,
)
from mkdesc.matching.chance import false_alarms
from mkdesc.matching.verification import verify_matches

CAMERA = np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]])
PLANE = np.array([[0.5, 0.3, 60], [-0.4, 0.9, 150], [2e-4, 1e-4, 1]])


def two_views(rng, count, depth, wrong=0.3, noise=0.3):
    """Positions in two cameras, and the pose of the second; some matches are random."""
    points = rng.uniform([-2, -1.5, 6], [2, 1.5, 6 + depth], (count, 3))
    rotation = cv2.Rodrigues(np.array([0.05, -0.2, 0.1]))[0]
    translation = np.array([1.0, 0.2, 0.1])
    views = []
    for r, t in ((np.eye(3), np.zeros(3)), (rotation, translation)):
        rays = (points @ r.T + t) @ CAMERA.T
        views.append(rays[:, :2] / rays[:, 2:] + noise * rng.normal(size=(count, 2)))
    bad = rng.random(count) < wrong
    views[1][bad] = rng.uniform([0, 0], [640, 480], (bad.sum(), 2))
    return *views, ~bad, rotation, translation / np.linalg.norm(translation)


def test_the_pose_is_found(rng):
    a, b, right, rotation, translation = two_views(rng, 300, depth=4)
    found = verify_matches(a, b, "essential", cameras=(CAMERA, CAMERA))
    assert found.geometry == "essential"
    assert (found.inliers & right).sum() > 0.9 * right.sum()
    turned = np.linalg.norm(cv2.Rodrigues(found.rotation.T @ rotation)[0])
    assert np.rad2deg(turned) < 0.5
    assert np.rad2deg(np.arccos(min(found.translation @ translation, 1.0))) < 3
    # x2' E x1 = 0 for rays of right matches
    one, two = (
        np.linalg.solve(CAMERA, np.column_stack([xy, np.ones(len(xy))])[right].T) for xy in (a, b)
    )
    matrix = found.matrix / np.linalg.norm(found.matrix)
    assert np.abs((two * (matrix @ one)).sum(axis=0)).max() < 0.01


def test_a_flat_scene_is_a_homography_and_a_deep_one_is_not(rng):
    a, b, *_ = two_views(rng, 400, depth=0)
    assert verify_matches(a, b, "auto").geometry == "homography"
    a, b, right, *_ = two_views(rng, 400, depth=4)
    found = verify_matches(a, b, "auto")
    assert found.geometry == "fundamental"
    assert (found.inliers & right).sum() > 0.9 * right.sum()
    assert verify_matches(a, b, "auto", cameras=(CAMERA, CAMERA)).geometry == "essential"
    few = verify_matches(a[:8], b[:8], "auto")
    assert few.matrix is None
    assert few.geometry is None


def test_matches_that_slide_along_edges_are_no_depth(rng):
    """As under noise and blur: each by as much as it likes. A relief moves with its neighbours."""
    here = rng.uniform(0, 800, (200, 2))
    slides = np.geomspace(12, 150, 40)[rng.permutation(40)] * rng.choice([-1, 1], 40)
    relief = 12 + 25 * np.hypot(*here[:40].T) / 1200
    for moved, geometry in ((slides, "homography"), (relief, "fundamental")):
        there = here + rng.normal(0, 0.3, here.shape)
        there[:40, 0] += moved
        assert verify_matches(here, there, "auto").geometry == geometry


@pytest.mark.parametrize(
    ("cameras", "message"),
    [
        (None, "cameras: expected two"),
        ((np.eye(2), CAMERA), r"cameras\[0\]: expected"),
        ((CAMERA, np.zeros((3, 3))), r"cameras\[1\]: expected"),
    ],
)
def test_cameras_must_be_known(cameras, message):
    with pytest.raises(ValueError, match=message):
        verify_matches(np.zeros((9, 2)), np.zeros((9, 2)), "essential", cameras=cameras)


def frames_through(rng, matrix, count, spread=0.1):
    """Frames, and what a homography makes of them, with errors of a detector."""
    a = np.zeros((count, 2, 3))
    a[:, :, 2] = rng.uniform(0, 600, (count, 2))
    a[:, :, :2] = rng.normal(size=(count, 2, 2)) * 5 + 20 * np.eye(2)
    step = 1e-3
    b = np.empty_like(a)
    for i, frame in enumerate(a):
        corners = np.column_stack([frame[:, 2], (frame @ [[step, 0], [0, step], [1, 1]])]).T
        mapped = cv2.perspectiveTransform(corners[None], matrix)[0]
        b[i] = np.column_stack([(mapped[1:] - mapped[0]).T / step, mapped[0]])
    b[:, :, :2] = b[:, :, :2] @ (np.eye(2) + spread * rng.normal(size=(count, 2, 2)))
    return a, b


def test_frames_of_a_plane_agree_and_others_do_not(rng):
    a, b = frames_through(rng, PLANE, 500)
    assert frames_agree(PLANE, a, b).mean() > 0.95
    turned = b.copy()
    turned[:, :, :2] = turned[:, :, :2] @ [[0, -1], [1, 0]]
    assert not frames_agree(PLANE, a, turned).any()


def test_frames_follow_the_epipolar_geometry_of_their_plane(rng):
    """A plane's frames do with any fundamental matrix that goes with it; turned ones do not."""
    a, b = frames_through(rng, PLANE, 500, spread=0.05)
    x, y, z = 900.0, 300.0, 1.0  # an epipole
    matrix = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ PLANE
    assert frames_follow(matrix, a, b).mean() > 0.95
    angles = rng.uniform(0, 2 * np.pi, 500)
    turn = np.array([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]])
    b[:, :, :2] = b[:, :, :2] @ turn.transpose(2, 0, 1)
    assert frames_follow(matrix, a, b).mean() < 0.3


def test_affinities_bring_frames_to_frames(rng):
    a, b = rng.normal(size=(2, 7, 2, 3))
    maps = affinities(a, b)
    moved = maps[:, :, :2] @ a
    moved[:, :, 2] += maps[:, :, 2]
    np.testing.assert_allclose(moved, b, atol=1e-9)


def test_the_number_of_false_alarms():
    exact = math.log10((50 - 4) * math.comb(50, 12) * math.comb(12, 4) * 0.01**8)
    assert false_alarms(12, 50, 0.01, 4) == pytest.approx(exact)
    assert false_alarms(4, 50, 0.01, 4) == math.inf


def test_chance_is_not_taken_for_agreement(rng):
    """Counts of random matches near a given place: as many as chance makes, never believed."""
    for _ in range(200):
        count = int((rng.random(1000) < 1e-3).sum())
        assert false_alarms(count, 1000, 1e-3, 0) > -4

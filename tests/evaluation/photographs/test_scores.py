"""Scores of homographies and poses against closed forms and independent computations."""

import cv2
import numpy as np
import pytest

from mkdesc.evaluation.photographs.homography_scores import (
    area_under_errors,
    distinct_positions,
    moved,
    repeatability,
    score_homography,
)
from mkdesc.evaluation.photographs.pose_scores import epipolar_distances, score_pose

SHAPES = ((300, 400), (300, 400))
RNG = np.random.default_rng(0)


@pytest.fixture
def plane():
    here = RNG.uniform(20, 280, (200, 2))
    matrix = np.array([[0.9, 0.1, 10], [-0.1, 0.95, 30], [1e-4, 0, 1]])
    return here, cv2.perspectiveTransform(here[:, None], matrix)[:, 0], matrix


def test_positions_move_as_opencv_moves_them(plane):
    here, there, matrix = plane
    np.testing.assert_allclose(moved(here, matrix), there)


def test_what_is_beyond_the_horizon_goes_nowhere():
    matrix = np.array([[1.0, 0, 0], [0, 1, 0], [-0.01, 0, 1]])
    assert np.isnan(moved(np.array([[150.0, 0]]), matrix)).all()


def test_right_matches_are_those_near_the_truth(plane):
    here, there, matrix = plane
    off = there.copy()
    off[:50] += [2.9, 0]
    off[50:80] += [0, 3.1]
    found = score_homography((here, off), (here, off), matrix, SHAPES)
    assert (found.matches, found.right, found.exact) == (200, 170, 120)
    assert found.accuracy[0] == pytest.approx(120 / 200)
    assert found.accuracy[2] == pytest.approx(170 / 200)
    assert found.accuracy[3] == 1
    assert found.solved


def test_repeated_places_count_once():
    xy = np.array([[10.0, 10], [10, 10], [11, 10], [13, 10], [60, 60]])
    found = score_homography((xy, xy), (xy, xy), np.eye(3), SHAPES)
    assert (found.right, found.distinct, found.cells) == (5, 3, 2)


def test_distinct_positions_agree_with_the_plain_loop():
    xy = RNG.uniform(0, 40, (300, 2))
    kept = []
    for row, one in enumerate(xy):
        if all(np.linalg.norm(one - xy[other]) >= 3 for other in kept):
            kept.append(row)
    assert distinct_positions(xy, 3.0).tolist() == kept


def test_a_wrong_homography_is_not_solved(plane):
    here, there, matrix = plane
    shifted = matrix.copy()
    shifted[0, 2] += 5
    found = score_homography((here, there), (here, there), shifted, SHAPES)
    assert 4 < found.corner_error < 6
    assert not found.solved


def test_no_matches_score_nothing():
    none = np.empty((0, 2))
    found = score_homography((none, none), (none, none), np.eye(3), SHAPES)
    assert found.right == 0
    assert found.corner_error == np.inf
    assert found.repeatability == 0


def test_repeatability_counts_what_both_images_show():
    # Shifted by 200 px, only the right half is seen by both; one of its two points is missing.
    here = np.array([[50.0, 50], [250, 50], [350, 100]])
    there = np.array([[50.0, 50]])
    matrix = np.array([[1.0, 0, -200], [0, 1, 0], [0, 0, 1]])
    assert repeatability((here, there), matrix, SHAPES) == pytest.approx(2 / 3)


@pytest.mark.parametrize("limit", [5.0, 10.0])
def test_area_agrees_with_the_mean_of_what_is_left(limit):
    # The area of the step curve is the mean of (limit - error) / limit; the curve of the field
    # joins its points by lines and lies between that and one step more.
    errors = RNG.uniform(0, 20, 400)
    steps = np.mean(np.clip(limit - errors, 0, None) / limit)
    (area,) = area_under_errors(list(errors), (limit,))
    assert steps - 1 / 400 <= area <= steps + 1 / 400


def scene(rotation, translation, count=300):
    points = RNG.uniform((-2, -2, 4), (2, 2, 8), (count, 3))
    seen = points @ rotation.T + translation
    return points[:, :2] / points[:, 2:], seen[:, :2] / seen[:, 2:]


def test_pose_errors_are_degrees():
    rotation = cv2.Rodrigues(np.array([0.0, 0.2, 0.05]))[0]
    translation = np.array([1.0, 0.1, 0.2])
    rays = scene(rotation, translation)
    assert score_pose(rays, (500, 500), rotation, translation, 1.0).error < 0.01
    turned = cv2.Rodrigues(np.array([0.0, 0, np.radians(3)]))[0] @ rotation
    assert score_pose(rays, (500, 500), turned, translation, 1.0).error == pytest.approx(
        3, abs=0.1
    )
    aside = cv2.Rodrigues(np.array([0.0, 0, np.radians(7)]))[0] @ translation
    error = score_pose(rays, (500, 500), rotation, aside, 1.0).error
    expected = np.degrees(
        np.arccos(aside @ translation / np.linalg.norm(aside) / np.linalg.norm(translation))
    )
    assert error == pytest.approx(expected, abs=0.1)


def test_wrong_matches_are_not_right_and_do_not_agree():
    rotation, translation = np.eye(3), np.array([1.0, 0, 0])
    a, b = scene(rotation, translation)
    b[:100, 1] += 20 / 500  # twenty pixels off the epipolar lines, which are rows
    found = score_pose((a, b), (500.0, 500.0), rotation, translation, 1.0)
    assert found.right == 200
    assert 190 <= found.inliers <= 210
    np.testing.assert_allclose(
        epipolar_distances((a, b), rotation, translation)[:100], 0.04, rtol=1e-6
    )


def test_too_few_matches_give_no_pose():
    few = RNG.uniform(size=(4, 2))
    found = score_pose((few, few), (1.0, 1.0), np.eye(3), np.array([1.0, 0, 0]), 1.0)
    assert (found.inliers, found.error) == (0, np.inf)

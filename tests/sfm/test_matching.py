"""Grown matches at keypoints, and the table that keeps them."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from mkdesc.belief.checks import AMBIGUOUS, VERIFIED
from mkdesc.matching.growing.grow import GrownMatches
from mkdesc.sfm.grown_pairs import (
    PairMatches,
    RefusedPair,
    believed_pairs,
    make_table,
    matched_pairs,
    read_pairs,
    refused_pairs,
    write_pair,
)
from mkdesc.sfm.matching import SNAP, at_keypoints

pytest.importorskip("cv2")  # before pycolmap, see mkdesc.datasets.colmap.pycolmap_module
pycolmap = pytest.importorskip("pycolmap")


def grown(points_a, points_b, local):
    count = len(points_a)
    ones = np.ones(count)
    return GrownMatches(
        np.array(points_a, float), np.array(points_b, float), np.tile(local, (count, 1, 1)),
        ones, ones, ones, np.ones(count, np.int64), np.full((count, 2), -1),
    )  # fmt: skip


def test_matches_are_given_to_the_nearest_keypoints():
    here = np.array([[10.0, 10], [50, 10], [90, 10]])
    there = here + np.array([5, 0])
    near, far = SNAP - 0.1, SNAP + 0.1
    found = grown(
        [[10, 10], [50, 10 + near], [90, 10], [90.5, 10]],
        [[15, 10], [55, 10], [95, 10 + far], [95, 10]],
        np.eye(2),
    )
    pairs, _ = at_keypoints(found, here, there)
    assert sorted(pairs.tolist()) == [[0, 0], [1, 1], [2, 2]]


def test_each_keypoint_has_one_match_the_nearest():
    here, there = np.array([[10.0, 10], [13, 10]]), np.array([[20.0, 20], [60, 60]])
    found = grown([[10.1, 10], [13, 10.2], [10, 10]], [[20, 21], [20, 20], [60, 60]], np.eye(2))
    pairs, _ = at_keypoints(found, here, there)
    assert pairs.tolist() == [[0, 1], [1, 0]]


def test_shifts_say_where_the_second_keypoint_fits(rng):
    """A keypoint of the first image that moves by d is at t + A d from that of the second."""
    local = np.array([[1.5, 0.2], [-0.3, 0.8]])
    here = np.column_stack([np.arange(20) * 20.0, rng.uniform(0, 500, 20)])
    true = here @ local.T + [40, 30]
    there = true + rng.uniform(-1, 1, true.shape)
    off = rng.uniform(-0.7, 0.7, here.shape)
    found = grown(here + off, true + off @ local.T, local)
    pairs, shifts = at_keypoints(found, here, there)
    assert len(pairs) == 20
    for (i, j), shift in zip(pairs, shifts, strict=True):
        moved = rng.normal(0, 1, 2)
        expected = (here[i] + moved) @ local.T + [40, 30]
        fits = there[j] + shift[:2] + shift[2:].reshape(2, 2) @ moved
        np.testing.assert_allclose(fits, expected, atol=1e-4)


@pytest.fixture
def base(tmp_path):
    path = tmp_path / "d.db"
    with pycolmap.Database.open(path) as file:
        camera = file.write_camera(pycolmap.Camera.create_from_model_name(1, "PINHOLE", 9, 80, 60))
        for name in "abc":
            image = file.write_image(pycolmap.Image(name=name, camera_id=camera))
            file.write_keypoints(image, np.zeros((9, 4), np.float32))
    return path


def test_pairs_are_read_by_colmap_and_by_us(base, rng):
    pairs = np.array([[0, 5], [3, 2]], np.uint32)
    shifts = rng.normal(0, 1, (2, 6)).astype(np.float32)
    nothing = PairMatches(pairs[:0], shifts[:0], AMBIGUOUS, "all alike")
    with closing(sqlite3.connect(base)) as file:
        make_table(file)
        write_pair(file, (3, 1), PairMatches(pairs, shifts, VERIFIED, "fine"))
        write_pair(file, (1, 2), nothing)
        (((a, b), found),) = list(read_pairs(file))
        assert len(matched_pairs(file)) == 2
        file.execute("DELETE FROM matches WHERE rows > 0")  # as if somebody had
        assert len(matched_pairs(file)) == 1
        write_pair(file, (3, 1), PairMatches(pairs, shifts, VERIFIED, "fine"))
    assert (a, b) == (1, 3)
    assert found.pairs.tolist() == [[5, 0], [2, 3]]  # as COLMAP has them: the smaller number first
    np.testing.assert_allclose(found.turned().shifts, shifts, atol=1e-4)
    with pycolmap.Database.open(base) as file:
        assert file.read_matches(3, 1).tolist() == pairs.tolist()
    assert refused_pairs(base) == [RefusedPair("a", "b", "all alike")]
    assert believed_pairs(base) == {pycolmap.image_pair_to_pair_id(1, 3)}


def test_databases_of_others_have_no_verdicts(base):
    assert believed_pairs(base) is None
    assert refused_pairs(base) == []

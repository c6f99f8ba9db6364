"""Keypoints of tracks, moved to where their matches agree."""

import numpy as np

from mkdesc.sfm.grown_pairs import PairMatches
from mkdesc.sfm.tracks import MOST, Matches, best_moves


def tracks(rng, count, images, noise=0.0):
    """Points seen in images that affine maps relate, found at places that are off.

    Returns the matches of all pairs of images, how far off each keypoint is, and the maps.
    """
    maps = np.eye(2) + rng.normal(0, 0.15, (images, 2, 2))
    off = rng.normal(0, 0.8, (images, count, 2))
    rows, shifts = [], []
    for a in range(images):
        for b in range(a + 1, images):
            local = maps[b] @ np.linalg.inv(maps[a])
            shift = -off[b] + off[a] @ local.T + rng.normal(0, noise, (count, 2))
            rows.append(np.arange(count)[:, None] + [a * count, b * count])
            shifts.append(np.column_stack([shift, np.tile(local.ravel(), (count, 1))]))
    found = Matches(np.concatenate(rows), np.concatenate(shifts).astype(np.float32))
    return found, off.reshape(-1, 2), maps


def contradictions(matches, moves):
    """What is left of each match, in pixels."""
    i, j = matches.rows.T
    maps = matches.shifts[:, 2:].reshape(-1, 2, 2)
    expected = matches.shifts[:, :2] + np.einsum("nij,nj->ni", maps, moves[i])
    return np.hypot(*(moves[j] - expected).T)


def test_keypoints_move_to_one_place_of_the_scene(rng):
    """Against the truth: what is still off is the same point of the scene in all images."""
    count, images = 40, 6
    matches, off, maps = tracks(rng, count, images)
    moves = best_moves(count * images, matches)
    assert np.median(contradictions(matches, np.zeros_like(moves))) > 0.8
    assert np.median(contradictions(matches, moves)) < 0.02
    still = (off + moves).reshape(images, count, 2)
    in_scene = np.einsum("aij,anj->ani", np.linalg.inv(maps), still)
    spread = np.linalg.norm(in_scene - in_scene.mean(axis=0), axis=2)
    assert np.median(spread) < 0.05


def test_noise_of_many_matches_averages_out(rng):
    count, images = 60, 8
    matches, off, maps = tracks(rng, count, images, noise=0.1)
    moves = best_moves(count * images, matches)
    still = (off + moves).reshape(images, count, 2)
    in_scene = np.einsum("aij,anj->ani", np.linalg.inv(maps), still)
    spread = (in_scene - in_scene.mean(axis=0)).std()
    assert spread < 0.06  # a single match is off by 0.1


def test_a_wrong_match_does_not_move_its_track(rng):
    count, images = 30, 6
    matches, _, _ = tracks(rng, count, images)
    good = best_moves(count * images, matches)
    matches.shifts[3, :2] += 3
    moves = best_moves(count * images, matches)
    assert np.abs(moves - good).max() < 0.15
    with_it = contradictions(matches, moves)
    assert with_it[3] > 2.5


def test_keypoints_that_would_move_far_or_have_no_match_stay():
    shifts = np.array([[20.0, 0, 1, 0, 0, 1], [2.0, 0, 1, 0, 0, 1]], np.float32)
    moves = best_moves(6, Matches(np.array([[0, 1], [2, 3]]), shifts))
    assert (moves[[0, 1, 4, 5]] == 0).all()
    assert 1.8 < moves[3, 0] - moves[2, 0] < 2.1
    assert np.hypot(*moves.T).max() <= MOST
    assert best_moves(2, Matches(np.empty((0, 2), np.int64), shifts[:0])).tolist() == [[0, 0]] * 2


def test_matches_turned_say_the_same(rng):
    shifts = np.column_stack([rng.normal(0, 1, (5, 2)), np.tile([1.2, 0.3, -0.2, 0.8], (5, 1))])
    one = PairMatches(np.array([[0, 9]] * 5, np.uint32), shifts.astype(np.float32), "", "")
    other = one.turned()
    assert other.pairs.tolist() == [[9, 0]] * 5
    moved = rng.normal(0, 1, 2)
    there = shifts[:, :2] + moved @ shifts[0, 2:].reshape(2, 2).T
    for k in range(5):
        back = other.shifts[k, :2] + other.shifts[k, 2:].reshape(2, 2) @ there[k]
        np.testing.assert_allclose(back, moved, atol=1e-5)

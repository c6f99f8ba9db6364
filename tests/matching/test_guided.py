"""Guided matching against the definition in plain numpy."""

import numpy as np
import pytest

from mkdesc.geometry.residuals import transfer_errors
from mkdesc.matching.guided import match_guided

PLANE = np.array([[0.9, 0.1, 5], [-0.05, 1.1, -3], [1e-4, -2e-4, 1]])
#: Of two cameras beside each other, the second one turned a little.
DEPTH = np.array([[1e-6, -4e-5, 0.01], [5e-5, 2e-6, -1.1], [-0.01, 1.0, 3.0]])


def mapped(matrix, xy):
    places = np.column_stack([xy, np.ones(len(xy))]) @ matrix.T
    return places[:, :2] / places[:, 2:]


def errors(kind, matrix, at_a, at_b):
    """(N, M): how far every one is off every other, in the image where it is less."""
    if kind == "homography":
        forth = np.linalg.norm(mapped(matrix, at_a)[:, None] - at_b, axis=2)
        back = np.linalg.norm(mapped(np.linalg.inv(matrix), at_b)[None] - at_a[:, None], axis=2)
        return np.minimum(forth, back)
    one, two = (np.column_stack([xy, np.ones(len(xy))]) for xy in (at_a, at_b))
    lines_b, lines_a = one @ matrix.T, two @ matrix
    value = np.abs(one @ matrix.T @ two.T)
    return np.minimum(
        value / np.linalg.norm(lines_b[:, :2], axis=1)[:, None],
        value / np.linalg.norm(lines_a[:, :2], axis=1),
    )


def by_definition(a, b, at_a, at_b, matrix, kind, within, ratio, apart):
    distances = np.linalg.norm(a[:, None].astype(float) - b[None], axis=2)
    distances[errors(kind, matrix, at_a, at_b) > within] = np.inf
    pairs = []
    for i, row in enumerate(distances):
        j = int(row.argmin())
        if not np.isfinite(row[j]) or distances[:, j].argmin() != i:
            continue
        elsewhere = np.linalg.norm(at_b - at_b[j], axis=1) > apart
        second = row[elsewhere].min(initial=np.inf)
        if ratio is None or row[j] < ratio * second:
            pairs.append([i, j])
    return pairs


@pytest.mark.parametrize("kind", ["homography", "fundamental"])
@pytest.mark.parametrize(("ratio", "within"), [(None, 4.0), (0.8, 10.0), (0.95, 60.0)])
def test_as_defined(rng, kind, ratio, within):
    a, b = (rng.normal(size=(n, 12)).astype(np.float32) for n in (120, 140))
    at_a, at_b = rng.uniform(0, 300, (120, 2)), rng.uniform(0, 300, (140, 2))
    b[:60] = a[:60] + 0.5 * rng.normal(size=(60, 12))
    at_b[:60] = mapped(PLANE, at_a[:60]) + rng.normal(size=(60, 2))
    matrix = PLANE if kind == "homography" else DEPTH
    found = match_guided(a, b, at_a, at_b, matrix, kind, within=within, ratio=ratio)
    expected = by_definition(a, b, at_a, at_b, matrix, kind, within, ratio, 10.0)
    assert found.pairs.tolist() == expected
    assert len(expected) > 10
    np.testing.assert_allclose(
        found.distances, np.linalg.norm(a[found.pairs[:, 0]] - b[found.pairs[:, 1]], axis=1), 1e-4
    )


def test_what_others_are_nearer_to_is_found_where_it_must_be(rng):
    """Two of a kind: only the geometry tells them apart."""
    a = np.repeat(rng.normal(size=(20, 8)), 2, axis=0).astype(np.float32)
    places = rng.uniform(0, 1000, (40, 2))
    found = match_guided(a, a, places, places, np.eye(3), "homography")
    assert found.pairs.tolist() == [[i, i] for i in range(40)]


def test_limits_and_nonsense(rng):
    a, places = np.eye(4, dtype=np.float32), rng.uniform(0, 50, (4, 2))
    assert len(match_guided(a, a, places, places, np.eye(3), "homography").pairs) == 4
    near = match_guided(a, 2 * a, places, places, np.eye(3), "homography", max_distance=0.5)
    assert len(near.pairs) == 0
    assert len(match_guided(a[:0], a, places[:0], places, np.eye(3)).pairs) == 0
    for matrix, options, message in (
        (np.eye(2), {}, "matrix: expected"),
        (np.full((3, 3), np.nan), {}, "matrix: expected"),
        (np.eye(3), {"geometry": "essential"}, "geometry: expected"),
        (np.eye(3), {"within": -1}, "within: expected"),
    ):
        with pytest.raises(ValueError, match=message):
            match_guided(a, a, places, places, matrix, **options)


#: A plane that goes away upwards: its horizon is the line y = 100 of the first image.
AWAY = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0.01, -1]])


def test_beyond_the_horizon_nothing_is_on_the_plane(rng):
    """A camera has no picture of what is behind it, though the numbers give it a place."""
    below = rng.uniform([0, 150], [200, 300], (20, 2))
    above = rng.uniform([0, 0], [200, 60], (6, 2))
    here = np.concatenate([below, above])
    there = mapped(AWAY, here)
    off = transfer_errors(AWAY, here, there)
    np.testing.assert_allclose(off[:20], 0, atol=1e-9)
    assert np.isinf(off[20:]).all()
    # The same from the other side: matrices have no sign.
    np.testing.assert_array_equal(transfer_errors(-AWAY, here, there), off)
    described = np.eye(26, dtype=np.float32)
    for matrix in (AWAY, -AWAY):
        found = match_guided(described, described, here, there, matrix, "homography")
        assert found.pairs.tolist() == [[i, i] for i in range(20)]

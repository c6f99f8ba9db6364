"""Keypoints of both views, against the detector itself; partners, against loops."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mkdesc.images.demo import photograph  # noqa: E402
from mkdesc.images.detectors.learned import SIGMA, Learned  # noqa: E402
from mkdesc.images.detectors.learned_weights import load_weights  # noqa: E402
from mkdesc.images.gray import as_gray  # noqa: E402
from mkdesc.learn.keypoint_pairs import (  # noqa: E402
    OCTAVES,
    PARTNER,
    Found,
    Moved,
    count_matches,
    find_points,
    move,
    mutual_nearest,
    near,
    partners,
    table_of,
)


@pytest.fixture(scope="module")
def weights():
    return load_weights("keypoints")


@pytest.fixture(scope="module")
def picture():
    return np.ascontiguousarray(as_gray(photograph())[:200, :260])


def test_the_same_as_the_detector(picture, weights):
    image = torch.from_numpy(picture).float()[None] / 255
    found = find_points(weights, image, torch.ones_like(image, dtype=bool), 80)
    expected = Learned(80).detect(picture).points
    assert found.used.all()
    apart = np.linalg.norm(found.places[0].numpy()[:, None] - expected[None, :, :2], axis=2)
    nearest, same = apart.argmin(1), apart.min(1) < 0.1
    assert same.mean() > 0.98
    there = expected[nearest[same]]
    np.testing.assert_allclose(SIGMA * found.scales[0][same], there[:, 2], rtol=1e-4)
    turned = (found.angles[0][same].numpy() - there[:, 3] + 180) % 360 - 180
    assert abs(turned).max() < 1


def test_only_what_a_view_shows(picture, weights):
    image = torch.from_numpy(picture).float()[None] / 255
    inside = torch.zeros_like(image, dtype=bool)
    inside[:, :, :100] = True
    found = find_points(weights, image, inside, 500)
    assert not found.used.all()
    assert found.used.sum() > 20
    assert (found.places[found.used][:, 0] < 101).all()


def test_moved_by_a_homography():
    """Scales grow by the square root of the area, here by differences."""
    homography = torch.tensor([[[1.2, 0.3, 5.0], [-0.2, 0.9, 7.0], [1e-3, -5e-4, 1.0]]]).double()
    places = torch.tensor([[[10.0, 20.0], [50.0, 5.0]]]).double().repeat(2, 1, 1)
    some = Found(places, torch.full((2, 2), 3.0), torch.zeros(2, 2), torch.ones(2, 2, dtype=bool))
    moved = move(some, homography)
    assert moved.known.all()

    def through(point):
        x, y, w = homography[0].numpy() @ [*point, 1]
        return np.array([x / w, y / w])

    for k, point in enumerate(places[0].numpy()):
        np.testing.assert_allclose(moved.places[0, k], through(point))
        right, down = (through(point + step) for step in 1e-4 * np.eye(2))
        area = np.linalg.det(np.stack([right - through(point), down - through(point)])) / 1e-8
        np.testing.assert_allclose(moved.scales[0, k], 3 * np.sqrt(area), rtol=1e-3)


def test_partners_by_loops(rng):
    n = 60
    places = torch.from_numpy(rng.uniform(0, 60, (2, n, 2)))
    scales = torch.from_numpy(2 ** (rng.integers(0, 4, (2, n)) / 2))
    used = torch.from_numpy(rng.random((2, n)) < 0.9)
    found = Found(places, scales, torch.zeros(2, n), used)
    moved = Moved(
        places[:1] + torch.from_numpy(rng.normal(0, 0.5, (1, n, 2))),
        scales[:1] * 1.3,
        torch.from_numpy(rng.random((1, n)) < 0.9),
    )
    # Second keypoints near the moved first ones, in another order.
    order = rng.permutation(n)
    found.places[1] = moved.places[0, order] + torch.from_numpy(rng.normal(0, 0.7, (n, 2)))
    cost = np.full((n, n), np.inf)
    close = np.zeros((n, n), bool)
    for i in range(n):
        for j in range(n):
            apart = np.linalg.norm(moved.places[0, i] - found.places[1, j])
            one, two = float(moved.scales[0, i]), float(scales[1, j])
            close[i, j] = apart < 4 * np.clip(one, 1, 2)
            unit, octaves = np.clip(np.sqrt(one * two), 1, 2), abs(np.log2(one / two))
            there = used[0, i] and used[1, j] and moved.known[0, i]
            if there and apart / unit < PARTNER and octaves < OCTAVES:
                cost[i, j] = apart / unit + octaves
    expected = [
        j if np.isfinite(cost[i, j]) and cost[:, j].argmin() == i else -1
        for i, j in enumerate(cost.argmin(1))
    ]
    assert sum(j >= 0 for j in expected) > 10
    assert partners(found, moved)[0].tolist() == expected
    np.testing.assert_array_equal(near(moved, found.places[1:])[0], close)


def test_mutual_nearest_neighbours_and_right_ones_by_loops(rng):
    half, n = 2, 25
    vectors = rng.normal(size=(2 * half, n, 5))
    # Half of the second keypoints are like first ones, so that there are matches.
    vectors[half:, :12] = vectors[:half, 5:17] + rng.normal(0, 0.2, (half, 12, 5))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    used, close = rng.random((2 * half, n)) < 0.8, rng.random((half, n, n)) < 0.3
    close[:, np.arange(5, 17), np.arange(12)] = rng.random((half, 12)) < 0.7
    expected, right = np.zeros((2 * half, n), bool), 0
    nearest = np.zeros((2 * half, n), int)
    for view in range(2 * half):
        other = (view + half) % (2 * half)
        for i in np.flatnonzero(used[view]):
            there, back = np.flatnonzero(used[other]), np.flatnonzero(used[view])
            j = there[(vectors[other, there] @ vectors[view, i]).argmax()]
            nearest[view, i] = j
            expected[view, i] = back[(vectors[view, back] @ vectors[other, j]).argmax()] == i
            right += view < half and expected[view, i] and close[view, i, j]
    tensors = torch.from_numpy(vectors), torch.from_numpy(used)
    found, mutual = mutual_nearest(*tensors)
    np.testing.assert_array_equal(mutual, expected)
    np.testing.assert_array_equal(found.numpy()[used], nearest[used])
    counts = count_matches(*tensors, torch.from_numpy(close)).tolist()
    assert counts == [right, expected[:half].sum(), used[:half].sum()]
    assert 0 < right < expected[:half].sum()


def test_vectors_in_their_places():
    used = torch.tensor([[True, False, True], [False, True, True]])
    table = table_of(torch.arange(8.0).reshape(4, 2).half(), used)
    assert table.dtype == torch.float32
    assert table.tolist() == [[[0, 1], [0, 0], [2, 3]], [[0, 0], [4, 5], [6, 7]]]

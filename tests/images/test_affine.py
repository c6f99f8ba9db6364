"""Shapes of blobs and regions against what they were drawn as."""

import numpy as np
import pytest

from mkdesc.images.affine import REACH, adapted_frames, dominant_directions, region_frames


def slanted(shape, centre, matrix):
    """A round hill seen through a matrix (2, 2): brightness by distance in its own units."""
    rows, columns = np.indices(shape)
    away = np.stack([columns - centre[0], rows - centre[1]], axis=-1) @ np.linalg.inv(matrix).T
    return np.linalg.norm(away, axis=-1)


def shape_of(frame):
    """Longer over shorter axis of a frame, and the direction of the longer one in degrees."""
    left, values, _ = np.linalg.svd(frame[:, :2])
    return values[0] / values[1], np.rad2deg(np.arctan2(left[1, 0], left[0, 0])) % 180


@pytest.mark.parametrize(("ratio", "turn"), [(1.5, 0), (2, 30), (3, 120)])
def test_a_slanted_blob_becomes_round(ratio, turn):
    c, s = np.cos(np.deg2rad(turn)), np.sin(np.deg2rad(turn))
    matrix = np.array([[c, -s], [s, c]]) @ np.diag([ratio**0.5, ratio**-0.5])
    away = slanted((160, 160), (80, 80), matrix)
    image = (200 * np.exp(-(away**2) / (2 * 9**2)) + 20).astype(np.uint8)
    found = adapted_frames(image, np.array([[80.0, 80, 9, 0]]), 20)
    assert len(found) >= 1
    longer, direction = shape_of(found[0])
    assert longer == pytest.approx(ratio, rel=0.15)
    assert abs((direction - turn + 90) % 180 - 90) < 5
    area = abs(np.linalg.det(found[0, :, :2]))
    assert area == pytest.approx((10 * 9) ** 2, rel=0.01)  # half of 20 sigma, either way


def test_an_edge_has_no_shape():
    image = np.zeros((100, 100), np.uint8)
    image[:, 50:] = 200
    assert len(adapted_frames(image, np.array([[50.0, 50, 5, 0]]), 20)) == 0


def test_a_region_is_its_ellipse():
    matrix = np.diag([2.0, 1.0])
    image = np.clip(300 - 5 * slanted((150, 200), (100, 75), matrix), 20, 220).astype(np.uint8)
    frame = region_frames(image)[0]
    np.testing.assert_allclose(frame[:, 2], [100, 75], atol=0.5)
    longer, direction = shape_of(frame)
    assert longer == pytest.approx(2, rel=0.05)
    assert min(direction, 180 - direction) < 3
    # Of an ellipse, the variance along an axis is a quarter of its square.
    half = np.linalg.svd(frame[:, :2], compute_uv=False) / REACH * 2
    assert 15 < half[1] < 60  # a level set of the slope, from 16 to 56
    assert half[0] / half[1] == pytest.approx(2, rel=0.05)


def test_nothing_has_no_regions():
    for shape in ((2, 2), (50, 50)):
        assert region_frames(np.zeros(shape, np.uint8)).shape == (0, 2, 3)


@pytest.mark.parametrize("degrees", [0, 33, 90, 181, 300])
def test_the_direction_of_a_ramp(degrees):
    angle = np.deg2rad(degrees)
    rows, columns = np.indices((20, 20))
    which, found = dominant_directions((columns * np.cos(angle) + rows * np.sin(angle))[None])
    assert which.tolist() == [0]
    assert np.rad2deg(found[0]) % 360 == pytest.approx(degrees, abs=5)

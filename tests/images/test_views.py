"""Views of a photograph: where things go, and that nothing aliases."""

import cv2
import numpy as np
import pytest

from mkdesc.images.views import back_to_photograph, seen_through, slopes, synthesise, turns_for


def blob(shape, x, y, sigma=6.0):
    rows, columns = np.indices(shape)
    return (200 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * sigma**2))).astype(
        np.float32
    )


def centre(image):
    rows, columns = np.indices(image.shape)
    weight = image.astype(np.float64)
    return np.array([(columns * weight).sum(), (rows * weight).sum()]) / weight.sum()


@pytest.mark.parametrize(("tilt", "turn"), [(1, 30), (2, 0), (2, 36), (4.5, 100), (8, 171)])
def test_a_blob_is_where_the_matrix_says(tilt, turn):
    place = np.array([133.3, 71.6])
    view = synthesise(blob((160, 220), *place), tilt, turn)
    expected = view.matrix[:, :2] @ place + view.matrix[:, 2]
    np.testing.assert_allclose(centre(view.image), expected, atol=0.05)


@pytest.mark.parametrize(("tilt", "turn"), [(2, 0), (3, 40), (8, 90)])
def test_a_view_is_shorter_by_its_tilt_along_its_turn(tilt, turn):
    view = synthesise(np.zeros((200, 300), np.uint8), tilt, turn)
    along = np.array([np.cos(np.deg2rad(turn)), np.sin(np.deg2rad(turn))])
    across = np.array([-along[1], along[0]])
    linear = view.matrix[:, :2]
    assert np.linalg.norm(linear @ along) == pytest.approx(1 / tilt)
    assert np.linalg.norm(linear @ across) == pytest.approx(1)
    assert np.linalg.det(linear) == pytest.approx(1 / tilt)  # not mirrored
    corners = np.array([[0, 299, 299, 0], [0, 0, 199, 199]])
    seen = linear @ corners + view.matrix[:, 2:]
    assert seen.min() >= -0.5
    assert (seen.max(axis=1) <= np.array(view.image.shape[::-1]) - 0.5).all()


def test_what_would_alias_is_gone_and_what_fits_stays():
    x = np.arange(256)
    for period, least, most in ((5, 0, 2), (64, 60, 100)):
        wave = np.tile(128 + 100 * np.sin(2 * np.pi * x / period), (64, 1)).astype(np.float32)
        middle = synthesise(wave, 4, 0).image[:, 10:-10]
        assert least <= np.abs(middle - 128).max() <= most


def test_half_a_turn_has_all_directions():
    for tilt in (2, 4, 8):
        turns = np.array(turns_for(tilt))
        assert np.diff([*turns, 180]).max() <= 72 / tilt + 1e-9
    assert turns_for(1) == [0.0]


def test_frames_of_a_view_are_frames_of_the_photograph(rng):
    view = synthesise(np.zeros((120, 160), np.uint8), 3, 50)
    frames = rng.normal(size=(5, 2, 3)) + np.array([[3, 0, 40], [0, 3, 40]])
    back = back_to_photograph(frames, view.matrix)
    corners = np.array([[1, -1, 0.3], [0.2, 1, -1], [1, 1, 1]])
    again = view.matrix[:, :2] @ (back @ corners) + view.matrix[:, 2:]
    np.testing.assert_allclose(again, frames @ corners, atol=1e-9)


def test_a_homography_is_undone_to_first_order(rng):
    matrix = np.array([[0.8, 0.2, 5], [-0.1, 0.9, 8], [1e-4, 3e-4, 1]])
    place, step = np.array([40.0, 70.0]), 1e-4

    def mapped(xy):
        return cv2.perspectiveTransform(xy.reshape(1, 1, 2), matrix).ravel()

    numeric = np.column_stack(
        [(mapped(place + d) - mapped(place - d)) / (2 * step) for d in np.eye(2) * step]
    )
    np.testing.assert_allclose(slopes(matrix, place[None])[0], numeric, atol=1e-8)
    frame = np.column_stack([3 * np.eye(2), place])[None]
    forth = np.concatenate([numeric @ frame[0, :, :2], mapped(place)[:, None]], axis=1)[None]
    np.testing.assert_allclose(back_to_photograph(forth, matrix), frame, atol=1e-6)


def test_seen_through_blurs_along_what_is_compressed():
    matrix = np.diag([0.2, 1, 1])
    x = np.arange(400)
    wave = np.tile(128 + 100 * np.sin(2 * np.pi * x / 6), (50, 1)).astype(np.float32)
    assert np.abs(seen_through(wave, matrix, (50, 80), (200, 25)).image - 128)[:, 5:-5].max() < 2
    upright = np.ascontiguousarray(wave[:50, :50].T)
    kept = seen_through(upright, matrix, (50, 10), (25, 25)).image
    assert np.abs(kept - 128).max() > 80


@pytest.mark.parametrize(("tilt", "turn"), [(0.5, 0), (np.nan, 0), (2, np.inf)])
def test_impossible_views_are_refused(tilt, turn):
    with pytest.raises(ValueError, match="tilt and turn: expected"):
        synthesise(np.zeros((9, 9), np.uint8), tilt, turn)

"""Random changes stay within their bounds, follow the seed, and do what they say."""

import numpy as np
import pytest

from mkdesc.images.frames import affine_frames, frames_from_points
from mkdesc.images.jitter import (
    COLUMNS,
    LEVELS,
    Jitter,
    Photometric,
    as_jitter,
    change_image,
    draw_jitter,
    jitter_frames,
    jitter_homographies,
)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("level", ["easy", "hard", "tough", "stronger"])
def test_draws_fill_their_bounds(level):
    drawn = dict(zip(COLUMNS, np.abs(draw_jitter(4000, level, rng(), True)).max(0), strict=True))
    j = LEVELS[level]
    for column, bound in {
        "rotation": j.rotation,
        "shift_x": j.shift,
        "shift_y": j.shift,
        "log2_scale": j.scale,
        "log2_anisotropy": j.anisotropy,
        "direction": 90,
        "perspective_x": j.perspective,
        "perspective_y": j.perspective,
    }.items():
        assert 0.98 * bound < drawn[column] <= bound, column
    assert not draw_jitter(10, level, rng())[:, 6:].any()


def test_a_change_moves_the_frame_by_what_it_says():
    point = np.array([[100, 80, 2, 30]])
    drawn = np.array([[15, 1.5, -1, 0.5, 0.4, 70, 0, 0]])
    frame = frames_from_points(point, side=10)
    whole = np.concatenate([frame, [[[0, 0, 1]]]], axis=1)
    moved = (whole @ jitter_homographies(drawn, 10))[0]
    # The rotation nearest to a stretched and turned matrix is that of its singular vectors.
    left, _, right = np.linalg.svd(moved[:2, :2])
    turn = left @ right
    angle = np.rad2deg(np.arctan2(turn[1, 0], turn[0, 0]))
    sigma = np.sqrt(np.linalg.det(moved[:2, :2])) / 5  # half a side is 5 sigma
    # A shift is in units of sigma along the axes of the frame, here turned by 30 degrees.
    c, s = np.cos(np.deg2rad(30)), np.sin(np.deg2rad(30))
    np.testing.assert_allclose(moved[:2, 2], [100 + 2 * (1.5 * c + s), 80 + 2 * (1.5 * s - c)])
    np.testing.assert_allclose([sigma, angle], [2 * 2**0.5, 45])


def test_anisotropy_stretches_along_its_direction_and_keeps_the_area():
    drawn = np.array([[0, 0, 0, 0, 0.6, 25, 0, 0]])
    matrix = affine_frames(jitter_homographies(drawn))[0, :, :2]
    along = np.array([np.cos(np.deg2rad(25)), np.sin(np.deg2rad(25))])
    np.testing.assert_allclose(matrix @ along, along * 2**0.3)
    np.testing.assert_allclose(np.linalg.det(matrix), 1)


def test_plain_is_no_change_and_seeds_decide():
    frames = frames_from_points([[100, 80, 2, 30], [50, 40, 3, 10]])
    np.testing.assert_allclose(jitter_frames(frames, "plain", rng())[:, :2], frames)
    one, same, other = (jitter_frames(frames, "hard", rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.1


def test_easy_and_hard_regions_overlap_as_hpatches_says():
    """The regions' overlap is 0.85 and 0.72 in the median, say the authors of HPatches."""
    grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 81)] * 2), axis=-1).reshape(-1, 2)
    disc = np.hypot(*grid.T) <= 1
    for level, published in {"easy": 0.85, "hard": 0.72}.items():
        # In units of the scale the detected region, a disc of radius 1, is 2 wide.
        moved = jitter_homographies(draw_jitter(200, level, rng()), scales_per_side=2)
        back = np.linalg.inv(moved)
        points = np.einsum("nij,pj->npi", back[:, :2, :2], grid) + back[:, None, :2, 2]
        other = np.hypot(points[..., 0], points[..., 1]) <= 1
        overlap = (disc & other).sum(1) / (disc | other).sum(1)
        assert abs(np.median(overlap) - published) < 0.04


def test_bad_levels_are_refused():
    with pytest.raises(ValueError, match="level: expected one of plain, easy"):
        as_jitter("brutal")
    with pytest.raises(ValueError, match="shift: expected a number >= 0"):
        Jitter(1, -1, 0, 0)
    with pytest.raises(ValueError, match="perspective: expected less than"):
        Jitter(1, 1, 0, 0, 0.5)
    with pytest.raises(ValueError, match=r"drawn: expected \(N, 8\)"):
        jitter_homographies(np.zeros((3, 7)))


@pytest.fixture
def image():
    return rng(3).integers(0, 256, (60, 80), np.uint8)


def test_no_bounds_no_change(image):
    still = Photometric(0, 0, 0, 0, 0, 100)
    changed = change_image(image, still, rng())
    np.testing.assert_array_equal(changed, image)
    assert changed is not image


@pytest.mark.parametrize("kind", ["gamma", "contrast", "brightness", "blur", "noise", "jpeg"])
def test_each_change_changes_something(kind, image):
    bounds = {"gamma": 0, "contrast": 0, "brightness": 0, "blur": 0, "noise": 0, "jpeg": 100}
    full = {"gamma": 1, "contrast": 1, "brightness": 0.3, "blur": 3, "noise": 9, "jpeg": 10}
    bounds[kind] = full[kind]
    changes = [change_image(image, Photometric(**bounds, chance=1), rng(s)) for s in range(5)]
    assert all(c.shape == image.shape and c.dtype == np.uint8 for c in changes)
    assert np.abs(np.array(changes, int) - image).mean() > 2


def test_the_seed_decides_and_the_image_is_left_alone(image):
    before = image.copy()
    one, same, other = (change_image(image, Photometric(), rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    np.testing.assert_array_equal(image, before)


def test_bad_photometric_bounds_and_images_are_refused(image):
    with pytest.raises(ValueError, match="blur: expected"):
        Photometric(blur=-1)
    with pytest.raises(ValueError, match="jpeg: expected"):
        Photometric(jpeg=0)
    with pytest.raises(ValueError, match="chance: expected"):
        Photometric(chance=2)
    with pytest.raises(ValueError, match="image: expected a gray uint8"):
        change_image(image.astype(float), Photometric(), rng())

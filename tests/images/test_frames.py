"""Points, keypoints and frames are the same thing said differently."""

import numpy as np
import pytest

from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.frames import (
    affine_frames,
    as_frames,
    frames_from_points,
    inside,
    to_frames,
)


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.uniform([10, 10, 0.5, 0], [500, 400, 20, 360], (50, 4))


def test_points_keypoints_and_frames_mean_the_same(points):
    keypoints = Keypoints(points, np.ones(50))
    np.testing.assert_array_equal(to_frames(keypoints), to_frames(points))
    np.testing.assert_allclose(to_frames(keypoints.to_opencv()), to_frames(points), atol=1e-4)
    np.testing.assert_array_equal(to_frames(frames_from_points(points)), to_frames(points))


def test_a_square_has_its_side_and_turns_clockwise():
    (frame,) = frames_from_points([[100, 50, 2, 90]], side=12)
    upper_left, upper_right, lower_left = (
        frame @ [x, y, 1] for x, y in ((-1, -1), (1, -1), (-1, 1))
    )
    # Clockwise by 90 degrees: the patch's x axis points down in the image.
    np.testing.assert_allclose(upper_right - upper_left, [0, 24], atol=1e-9)
    np.testing.assert_allclose(lower_left - upper_left, [-24, 0], atol=1e-9)
    np.testing.assert_allclose((upper_right + lower_left) / 2, [100, 50])


def test_the_affine_frame_agrees_at_the_centre_to_first_order():
    frame = np.array([[[9, 1, 40], [-2, 8, 30], [0.1, -0.2, 1]]])
    small = 1e-6
    exact = frame[0] @ [small, -small, 1]
    approximate = affine_frames(frame)[0] @ [small, -small, 1]
    np.testing.assert_allclose(exact[:2] / exact[2], approximate, atol=1e-10)


def test_no_frames_at_all():
    assert to_frames([]).shape == (0, 3, 3)
    assert to_frames(np.empty((0, 4))).shape == (0, 3, 3)
    assert inside(np.empty((0, 2, 3)), (10, 10)).shape == (0,)
    assert to_frames(Keypoints.empty()).shape == (0, 3, 3)


def test_inside_counts_whole_pixels_and_leaves_out_the_horizon():
    whole = [[[20, 0, 19.5], [0, 15, 14.5], [0, 0, 1]]]
    assert inside(whole, (30, 40)).all()
    assert not inside(whole, (30, 39)).any()
    assert not inside([[[1, 0, 20], [0, 1, 15], [0.8, 0.8, 1]]], (30, 40)).any()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("mirror_x", "mirror_y"), [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_inside_of_mirrored_frames(mirror_x, mirror_y, sign):
    """Neither a mirrored square nor one whose matrix is negated lies elsewhere."""
    frame = np.array([[5, 1, 10], [-1, 5, 20], [0.01, 0.02, 1]])
    flip = np.diag([mirror_x, mirror_y, 1])
    corners = [(frame @ [x, y, 1])[:2] / (frame @ [x, y, 1])[2] for x in (-1, 1) for y in (-1, 1)]
    left, top = np.floor(np.min(corners, axis=0))
    width, height = np.ceil(np.max(corners, axis=0) - [left, top]).astype(int) + 1
    for x, y in ((0, 0), (-left, 0), (0, -top), (-left, -top)):
        moved = sign * np.array([[1, 0, x], [0, 1, y], [0, 0, 1]]) @ frame @ flip
        # The image that just holds the square in the corner, and ones too small for it.
        expected = (x, y) == (-left, -top)
        assert inside([moved], (height, width)).tolist() == [expected]
        assert inside([moved], (height - 2, width)).tolist() == [False]
        assert inside([moved], (height, width - 2)).tolist() == [False]


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (np.zeros((2, 4, 4)), r"frames: expected \(N, 2, 3\) or \(N, 3, 3\), got \(2, 4, 4\)"),
        ([[[1, 0, np.nan], [0, 1, 0]]], r"frames\[0\] is not finite"),
        ([[[1, 2, 0], [2, 4, 0]]], r"frames\[0\] has no area"),
        ([[[1, 0, 0], [0, 1, 0], [1, 0, 1]]], r"frames\[0\] reaches the horizon"),
    ],
)
def test_bad_frames_are_refused(frames, message):
    with pytest.raises(ValueError, match=message):
        as_frames(frames)


def test_bad_points_are_refused():
    with pytest.raises(ValueError, match=r"points: expected \(N, 4\)"):
        frames_from_points(np.zeros((3, 5)))
    with pytest.raises(ValueError, match=r"points\[1\]: expected .* sigma > 0"):
        frames_from_points([[1, 2, 3, 4], [1, 2, 0, 4]])
    with pytest.raises(ValueError, match="side: expected"):
        frames_from_points([[1, 2, 3, 4]], side=0)

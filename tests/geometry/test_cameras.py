"""Cameras beside PoseLib's and COLMAP's; what is no camera is named."""

import numpy as np
import poselib
import pytest

from mkdesc.geometry import Camera
from mkdesc.geometry.cameras import as_camera, both_cameras

CAMERAS = [
    Camera("SIMPLE_PINHOLE", 640, 480, (500, 322, 237)),
    Camera("PINHOLE", 640, 480, (500, 520, 322, 237)),
    Camera("SIMPLE_RADIAL", 640, 480, (500, 322, 237, -0.15)),
    Camera("RADIAL", 640, 480, (500, 322, 237, -0.15, 0.08)),
    Camera("OPENCV", 640, 480, (500, 520, 322, 237, -0.2, 0.06, 0.003, -0.002)),
    Camera(
        "FULL_OPENCV", 640, 480, (500, 520, 322, 237, -0.2, 0.06, 3e-3, -2e-3, 0.01, 0.02, 0.01, 0)
    ),
    Camera("SIMPLE_RADIAL_FISHEYE", 640, 480, (300, 322, 237, -0.02)),
    Camera("RADIAL_FISHEYE", 640, 480, (300, 322, 237, -0.02, 0.003)),
    Camera("OPENCV_FISHEYE", 640, 480, (300, 310, 322, 237, -0.02, 0.003, 1e-3, -1e-3)),
]
PLACES = np.stack(np.meshgrid(np.linspace(5, 630, 9), np.linspace(5, 470, 7)), -1).reshape(-1, 2)


@pytest.mark.parametrize("camera", CAMERAS, ids=lambda camera: camera.model)
def test_rays_are_those_of_others(camera):
    """COLMAP's pixels have the centre of the first at one half."""
    rays = camera.rays(PLACES)
    np.testing.assert_allclose(camera.project(rays), PLACES, atol=1e-6)
    pycolmap = pytest.importorskip("pycolmap")
    other = pycolmap.Camera(
        model=camera.model, width=camera.width, height=camera.height, params=camera.params
    )
    theirs = other.cam_from_img(PLACES + 0.5)
    theirs = theirs[:, :2] if theirs.shape[1] == 2 else theirs[:, :2] / theirs[:, 2:]
    np.testing.assert_allclose(rays, theirs, atol=1e-7)
    assert Camera.from_colmap(other) == camera


@pytest.mark.parametrize("camera", CAMERAS[:5], ids=lambda camera: camera.model)
def test_rays_are_those_of_poselib(camera):
    other = poselib.Camera(camera.model, list(camera.params), camera.width, camera.height)
    theirs = np.asarray(other.unproject(PLACES + 0.5))
    theirs = theirs[:, :2] / theirs[:, 2:] if theirs.shape[1] == 3 else theirs
    np.testing.assert_allclose(camera.rays(PLACES), theirs, atol=1e-6)


def test_a_lens_that_turns_back_shows_no_ray_beyond():
    """r - 0.5 r^3 has its maximum 0.544 at r = 0.816."""
    camera = Camera("SIMPLE_RADIAL", 2000, 2000, (1000, 1000, 1000, -0.5))
    rays = camera.rays([[999.5 + 540, 999.5], [999.5 + 550, 999.5]])
    assert 0.7 < rays[0, 0] < 0.8165
    assert np.isnan(rays[1]).all()


def test_undistorted_positions_are_those_of_the_pinhole_camera():
    camera = CAMERAS[4]
    ideal = camera.undistorted(PLACES)
    back = np.column_stack([ideal, np.ones(len(ideal))]) @ np.linalg.inv(camera.matrix).T
    np.testing.assert_allclose(camera.project(back[:, :2]), PLACES, atol=1e-6)


def test_a_smaller_photograph_shows_the_same_rays():
    camera = CAMERAS[4]
    small = camera.resized(320, 240)
    rays = camera.rays(PLACES)
    # Borders coincide: (x + 0.5) scales.
    np.testing.assert_allclose(small.project(rays), (PLACES + 0.5) / 2 - 0.5, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("THIN_PRISM", 640, 480, (1,)),
            "expected a model of SIMPLE_PINHOLE, .* got 'THIN_PRISM'",
        ),
        (("PINHOLE", 0, 480, (1, 1, 1, 1)), "expected a width in pixels > 0, got 0"),
        (("PINHOLE", 640, 4.5, (1, 1, 1, 1)), "expected a height in pixels > 0, got 4.5"),
        (("PINHOLE", 640, 480, (1, 1, 1)), r"expected 4 parameters for PINHOLE \(fx, .* got 3"),
        (("PINHOLE", 640, 480, (1, np.nan, 1, 1)), "expected a number > 0 for fy, got nan"),
        (("PINHOLE", 640, 480, (-5, 1, 1, 1)), "expected a number > 0 for fx, got -5"),
        (("RADIAL", 640, 480, (5, 1, 1, 0, np.inf)), "expected a finite number for k2, got inf"),
        (("PINHOLE", 640, 480, ("5", 1, 1, 1)), "expected a number > 0 for fx, got '5'"),
    ],
)
def test_what_is_no_camera_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Camera(*arguments)


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((3, 3)),
        np.eye(2),
        np.diag([1, np.nan, 1]),
        np.diag([1.0, 1, 2]),
        [[1, 0, 0], [1, 1, 0], [0, 0, 1]],
        "camera",
        [[500, 7, 300], [0, 500, 200], [0, 0, 1]],
    ],
)
def test_what_is_no_matrix_is_named(matrix):
    with pytest.raises(ValueError, match=r"cameras\[1\]: expected"):
        both_cameras([np.eye(3), matrix])


def test_cameras_of_other_photographs_are_refused():
    with pytest.raises(
        ValueError, match="a camera of 640 x 480 pixels, but the photograph has 480"
    ):
        as_camera("cameras[0]", CAMERAS[0], (640, 480))
    with pytest.raises(ValueError, match="cameras: expected two"):
        both_cameras([CAMERAS[0]])

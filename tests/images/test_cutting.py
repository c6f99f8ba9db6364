"""Patches are what a camera at the frame would see: exact, free of aliasing, defined."""

import cv2
import numpy as np
import pytest

from mkdesc.images.cutting import cut_patches
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.frames import as_frames, frames_from_points


def waves(x, y, shortest=12.0):
    """A smooth scene of which the brightness is known everywhere, in 0..1."""
    rng = np.random.default_rng(5)
    total = np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y)))
    for angle, phase, length in rng.uniform([0, 0, 1], [np.pi, 2 * np.pi, 4], (12, 3)):
        along = x * np.cos(angle) + y * np.sin(angle)
        total += np.sin(2 * np.pi * along / (shortest * length) + phase)
    return total / 24 + 0.5


def scene(height, width, homography=None, shortest=12.0):
    """The image of the scene under a homography from scene to image."""
    y, x = np.mgrid[:height, :width].astype(float)
    if homography is not None:
        back = np.linalg.inv(homography) @ np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
        x, y = (back[:2] / back[2]).reshape(2, height, width)
    return waves(x, y, shortest).astype(np.float32)


def exact(frame, size):
    """What an ideal patch of the scene looks like."""
    u = (2 * np.arange(size) + 1) / size - 1
    grid = np.stack(np.broadcast_arrays(u[None, :], u[:, None], 1.0)).reshape(3, -1)
    mapped = as_frames([frame])[0] @ grid
    return waves(*(mapped[:2] / mapped[2])).reshape(size, size)


def some_points(n, seed=0, sigma=(1.0, 6.0)):
    low, high = [60, 60, sigma[0], 0], [240, 190, sigma[1], 360]
    return np.random.default_rng(seed).uniform(low, high, (n, 4))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_the_identity_reproduces_the_pixels(dtype):
    image = np.random.default_rng(0).integers(0, 256, (40, 50)).astype(dtype)
    patch = cut_patches(image, [[[8, 0, 20 + 7.5], [0, 8, 10 + 7.5]]], patch_size=16)
    assert patch.dtype == ("float32" if dtype == "float64" else dtype)
    np.testing.assert_array_equal(patch[0], image[10:26, 20:36])


def test_patches_show_the_scene_at_any_place_angle_and_scale():
    frames = frames_from_points(some_points(200), side=12)
    patches = cut_patches(scene(250, 300), frames, 48)
    ideal = np.stack([exact(frame, 48) for frame in frames])
    assert np.abs(patches - ideal).max() < 0.02
    assert np.abs(patches - ideal).mean() < 0.002


@pytest.mark.parametrize(
    ("angle", "scale", "shift", "slant"),
    [
        (30, 1, (3.3, -2.6), 0),
        (0, 1, (0.25, 0.75), 0),
        (-120, 0.8, (9, 4), 0),
        (75, 1.9, (0, 0), 0),
        (20, 1.1, (5, 5), 4e-4),
    ],
)
def test_a_patch_of_the_warped_image_equals_that_of_the_original(angle, scale, shift, slant):
    c, s = scale * np.cos(np.deg2rad(angle)), scale * np.sin(np.deg2rad(angle))
    warp = np.array([[c, -s, shift[0]], [s, c, shift[1]], [slant, -slant, 1]])
    away = np.eye(3)
    away[:2, 2] = 150, 125
    warp = away * np.array([[1, 1, 1.5], [1, 1, 1.5], [1, 1, 1]]) @ warp @ np.linalg.inv(away)
    frames = as_frames(frames_from_points(some_points(40, sigma=(1.5, 4)), side=12))
    before = cut_patches(scene(250, 300), frames, 32)
    after = cut_patches(scene(500, 500, warp), warp @ frames, 32)
    inner = np.abs(before - after)
    assert np.median(inner) < 0.002
    assert np.quantile(inner, 0.99) < 0.02


def test_orientation_and_registration_are_those_of_opencv():
    image = cv2.GaussianBlur(
        np.random.default_rng(1).integers(0, 256, (200, 200)).astype(np.float32), (0, 0), 3
    )
    x, y, sigma, angle, size = 95.3, 102.8, 3.0, 37.0, 48
    step = 12 * sigma / size
    # OpenCV turns counter-clockwise where y points down, if the matrix maps image to patch.
    matrix = cv2.getRotationMatrix2D((x, y), angle, 1 / step)
    matrix[:, 2] += np.array([(size - 1) / 2 - x, (size - 1) / 2 - y])
    expected = cv2.warpAffine(image, matrix, (size, size), flags=cv2.INTER_CUBIC)
    keypoint = Keypoints([[x, y, sigma, angle]], [1]).to_opencv()
    patch = cut_patches(image, keypoint, size)[0]
    assert np.abs(patch - expected).max() < 0.02 * np.ptp(image)


def test_the_patch_follows_the_orientation_that_sift_finds():
    y, x = np.mgrid[:200, :200]
    blob = np.exp(-((x - 90) ** 2 + (y - 110) ** 2) / 200) + np.exp(
        -((x - 104) ** 2 + (y - 118) ** 2) / 30
    )
    image = (blob / blob.max() * 255).astype(np.uint8)
    turned = np.ascontiguousarray(np.rot90(image))
    detector = cv2.SIFT_create(enable_precise_upscale=True)
    found = [max(detector.detect(i, None), key=lambda k: k.size) for i in (image, turned)]
    a, b = (cut_patches(i, [k], 32)[0] for i, k in zip((image, turned), found, strict=True))
    assert np.corrcoef(a.ravel(), b.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("factor", [1.8, 2.0, 2.7, 3.0, 5.0, 11.0])
def test_nothing_is_aliased(factor):
    # Stripes finer than the patch can show must turn gray, not into coarser stripes.
    x = np.arange(900)
    length = 1.2 * factor
    image = np.tile(0.5 + 0.5 * np.sin(2 * np.pi * x / length), (900, 1)).astype(np.float32)
    frame = [[[16 * factor, 0, 450], [0, 16 * factor, 450]]]
    patch = cut_patches(image, frame, 32)[0]
    assert patch.std() < 0.25 * image.std()
    assert abs(patch.mean() - 0.5) < 0.02


def test_a_slanted_frame_keeps_what_its_short_axis_can_show():
    y = np.arange(400)[:, None]
    image = np.tile(0.5 + 0.5 * np.sin(2 * np.pi * y / 6.0), (1, 400)).astype(np.float32)
    frame = [[[16 * 4.0, 0, 200], [0, 16 * 1.0, 200]]]
    assert cut_patches(image, frame, 32)[0].std() > 0.7 * image.std()


def test_levels_of_the_pyramid_are_in_register():
    image = scene(600, 600, shortest=120.0)
    for factor in (0.7, 1.3, 2.6, 5.1, 9.0):
        frame = [[16 * factor, 0, 300.2], [0, 16 * factor, 299.4]]
        u = ((2 * np.arange(32) + 1) / 32 - 1) * 16 * factor
        ideal = waves(u[None, :] + 300.2, u[:, None] + 299.4, 120.0)
        patch = cut_patches(image, [frame], 32)[0]
        assert np.abs(patch - ideal).max() < 0.01, factor


def test_the_border_goes_on_beyond_the_image():
    image = np.random.default_rng(0).integers(0, 256, (20, 30), np.uint8)
    patch = cut_patches(image, [[[8, 0, 0 - 0.5], [0, 8, 0 - 0.5]]], 16)[0]
    np.testing.assert_array_equal(patch, np.pad(image, 8, mode="edge")[:16, :16])
    far = cut_patches(image, [[[8, 0, 1e7], [0, 8, -1e7]]], 16)[0]
    assert (far == image[0, -1]).all()
    whole = cut_patches(image[:1, :1], [[[800, 0, 0], [0, 900, 0]]], 16)[0]
    assert (whole == image[0, 0]).all()


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
@pytest.mark.parametrize(
    ("x", "y"), [(-2.3, 12.4), (31.6, 11.2), (13.7, -1.8), (14.2, 21.3), (30.4, 20.7)]
)
def test_every_border_is_as_opencv_replicates_it(interpolation, x, y):
    image = np.random.default_rng(0).random((20, 30)).astype(np.float32)
    size, step = 16, 0.6
    found = cut_patches(
        image,
        [[[size / 2 * step, 0, x], [0, size / 2 * step, y]]],
        size,
        interpolation=interpolation,
    )[0]
    at = (np.arange(size) - (size - 1) / 2) * step
    # Cubic: the nearest point of the border goes on, so positions are clipped, not pixels.
    columns, rows = np.clip(at + x, 0, 29), np.clip(at + y, 0, 19)
    padded = np.pad(image.astype(np.float64), 2, mode="edge")
    weights = [list(_weights(places, interpolation)) for places in (rows, columns)]
    expected = sum(
        np.outer(row, column) * padded[np.ix_(top, left)]
        for top, row in weights[0]
        for left, column in weights[1]
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)
    grid = np.meshgrid((at + x).astype(np.float32), (at + y).astype(np.float32))
    if interpolation == "linear":  # OpenCV rounds to 1/32 of a pixel, and has another cubic
        theirs = cv2.remap(image, *grid, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        np.testing.assert_allclose(found, theirs, atol=1 / 16)


def _weights(places, interpolation):
    """Pixels of an image padded by 2, and their weights, for positions along an axis."""
    first = np.floor(places).astype(int)
    for k in (0, 1) if interpolation == "linear" else (-1, 0, 1, 2):
        away = np.abs(places - first - k)
        if interpolation == "linear":
            weight = 1 - away
        else:  # Keys' kernel of a = -1/2 is the Catmull-Rom spline
            near = 1.5 * away**3 - 2.5 * away**2 + 1
            far = -0.5 * away**3 + 2.5 * away**2 - 4 * away + 2
            weight = np.where(away <= 1, near, far)
        yield first + k + 2, weight


def test_colours_become_gray_in_either_order():
    image = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    frames = [[[8, 0, 20], [0, 8, 20]]]
    gray = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    expected = cut_patches(gray, frames, 16)
    np.testing.assert_array_equal(cut_patches(image, frames, 16), expected)
    np.testing.assert_array_equal(cut_patches(image[..., ::-1], frames, 16, rgb=True), expected)
    transparent = np.dstack([image, np.full((40, 50), 9, np.uint8)])
    np.testing.assert_array_equal(cut_patches(transparent, frames, 16), expected)


def test_types_agree_with_each_other():
    image = np.random.default_rng(0).integers(0, 256, (100, 100), np.uint8)
    points = some_points(20) * [0.3, 0.3, 1, 1]
    exactly = cut_patches(image.astype(np.float32), points, 32)
    clipped = np.clip(exactly, 0, 255)
    assert np.abs(cut_patches(image, points, 32) - clipped).max() <= 0.501
    deep = cut_patches(image.astype(np.uint16) * 257, points, 32)
    assert np.abs(deep / 257.0 - clipped).max() < 0.01


def test_threads_change_nothing_and_inputs_may_be_read_only():
    image = np.random.default_rng(0).integers(0, 256, (250, 300), np.uint8)
    image.setflags(write=False)
    points = some_points(300)
    one, three = (cut_patches(image, points, 32, n_threads=n) for n in (1, 3))
    np.testing.assert_array_equal(one, three)
    np.testing.assert_array_equal(one[17], cut_patches(image[:, ::1], points[17:18], 32)[0])


def test_no_frames_give_no_patches():
    image = np.zeros((9, 9), np.uint8)
    assert cut_patches(image, [], 24).shape == (0, 24, 24)
    assert cut_patches(image, np.empty((0, 2, 3))).shape == (0, 64, 64)


@pytest.mark.parametrize(
    ("image", "keywords", "message"),
    [
        (np.zeros((9, 9), np.int32), {}, "image: expected uint8.*got int32"),
        (np.zeros((9, 9, 2), np.uint8), {}, r"image: expected \(H, W\)"),
        (np.zeros((0, 9), np.uint8), {}, "image: expected at least one pixel"),
        (np.full((9, 9), np.nan), {}, "image: has NaN"),
        (np.zeros((9, 9), np.uint8), {"patch_size": 0}, "patch_size: expected"),
        (np.zeros((9, 9), np.uint8), {"n_threads": 0}, "n_threads: expected"),
    ],
)
def test_bad_input_is_named(image, keywords, message):
    with pytest.raises(ValueError, match=message):
        cut_patches(image, [[4, 4, 1, 0]], **keywords)


@pytest.mark.parametrize("interpolation", ["cubic", "linear"])
def test_interpolation_between_pixels(rng, interpolation):
    """On a ramp both are exact; on noise half-way between two pixels linear is their mean."""
    ramp = np.add.outer(2.0 * np.arange(40), np.arange(40)).astype(np.float32)
    frame = [[[4, 0, 15.3], [0, 4, 18.7]]]
    found = cut_patches(ramp, frame, 16, interpolation=interpolation)[0]
    at = (np.arange(16) + 0.5) / 16 * 8 - 4
    np.testing.assert_allclose(found, np.add.outer(2 * (at + 18.7), at + 15.3), atol=1e-4)
    noise = rng.random((20, 20)).astype(np.float32)
    middle = cut_patches(noise, [[[0.5, 0, 7.5], [0, 0.5, 9]]], 1, interpolation=interpolation)
    assert (abs(middle.item() - noise[9, 7:9].mean()) < 1e-6) == (interpolation == "linear")


def test_unknown_interpolation_is_refused():
    with pytest.raises(ValueError, match="interpolation: expected one of cubic, linear, got 3"):
        cut_patches(np.zeros((9, 9)), [[4, 4, 1, 0]], interpolation=3)


def test_the_order_of_bytes_of_an_image_does_not_matter(rng):
    image = rng.integers(0, 65536, (40, 40), np.uint16)
    found = cut_patches(image.astype(">u2"), [[20, 20, 1, 30]], 16)
    np.testing.assert_array_equal(found, cut_patches(image, [[20, 20, 1, 30]], 16))
    assert found.dtype == np.uint16


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_several_squares_in_one_pass_are_those_of_one_pass_each(dtype):
    image = (scene(250, 300) * (1 if dtype == np.float32 else 255)).astype(dtype)
    points, sides = some_points(70), (6, 20, 47.5)
    found = cut_patches(image, points, 24, sides)
    assert found.shape == (70, 3, 24, 24)
    for k, side in enumerate(sides):
        np.testing.assert_array_equal(found[:, k], cut_patches(image, points, 24, side))
    assert cut_patches(image, points, 24, (20,)).shape == (70, 1, 24, 24)
    assert cut_patches(image, [], 24, sides).shape == (0, 3, 24, 24)


def test_the_squares_of_a_frame_have_its_centre_and_shape():
    """The first is the frame itself, the others are as much larger as their sides are."""
    image, slant = scene(250, 300), np.array([[9, 4, 150], [2, 7, 120]], float)
    tilted = np.vstack([slant, [0.02, 0.01, 1]])
    for frame in (slant, tilted):
        larger = frame * [2.5, 2.5, 1]
        found = cut_patches(image, [frame], 24, (14, 35))[0]
        np.testing.assert_array_equal(found[0], cut_patches(image, [frame], 24)[0])
        np.testing.assert_allclose(found[1], cut_patches(image, [larger], 24)[0], atol=1e-5)
        np.testing.assert_allclose(found[1], exact(larger, 24), atol=0.02)
    with pytest.raises(ValueError, match=r"frames\[1\] reaches the horizon"):
        cut_patches(image, [tilted, tilted * [10, 10, 1]], 24, (14, 60))

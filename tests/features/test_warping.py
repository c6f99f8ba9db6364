"""Photographs resampled, beside OpenCV."""

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.features.warping import is_flat, resample, seen_by_field, seen_by_homography


@pytest.fixture(scope="module")
def smooth(texture):
    return cv2.GaussianBlur(texture(3, (120, 160)), (0, 0), 2)


def test_by_a_homography_as_opencv_warps(smooth):
    image = smooth
    matrix = np.array([[0.9, 0.1, 5], [-0.05, 1.05, -4], [2e-4, -1e-4, 1]])
    found, seen = resample(image, (100, 140), seen_by_homography(matrix, 140))
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    expected = cv2.warpPerspective(image, matrix, (140, 100), flags=flags)
    inside = cv2.erode(seen.astype(np.uint8), np.ones((9, 9))) > 0
    assert inside.mean() > 0.5
    assert np.abs(found.astype(int) - expected)[inside].max() <= 2
    mask = cv2.warpPerspective(np.full_like(image, 255), matrix, (140, 100), flags=flags)
    assert np.mean(seen == (mask > 127)) > 0.99
    assert not found[~seen].any()


def test_what_is_beyond_the_horizon_is_not_seen(smooth):
    matrix = np.array([[1.0, 0, 0], [0, 1, 0], [0, -0.02, 1]])  # the horizon is row 50
    _, seen = resample(smooth, (120, 160), seen_by_homography(matrix, 160))
    assert not seen[50:].any()
    assert seen[:20, :20].all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [(), (1,), (3,), (4,)])
def test_types_and_channels_stay_and_each_is_warped_alone(texture, dtype, channels):
    full = 1 if dtype == np.float32 else np.iinfo(dtype).max
    layers = np.stack([texture(k, (60, 80)) for k in range(4)], axis=-1) / 255 * full
    image = layers[..., : channels[0]] if channels else layers[..., 0]
    field = np.full((60, 80, 2), [2.0, 1], np.float32)
    found, seen = resample(image.astype(dtype), (60, 80), seen_by_field(field))
    assert found.dtype == dtype
    assert found.shape == image.shape
    assert np.allclose(found[:59, :78], image.astype(dtype)[1:, 2:], atol=full * 1e-5)
    assert seen[:59, :78].all()
    assert not seen[:, 79:].any()


def test_values_stay_within_those_of_the_photograph():
    """Splines swing over at edges."""
    image = np.kron([[100, 65000], [65000, 100]], np.ones((20, 20))).astype(np.uint16)
    field = np.full((40, 40, 2), 0.5, np.float32)
    found, seen = resample(image, (40, 40), seen_by_field(field))
    assert found[seen].min() == 100
    assert found[seen].max() == 65000


def test_what_becomes_smaller_has_no_patterns():
    stripes = np.tile([0, 255], (200, 100)).astype(np.uint8)
    places = seen_by_homography(np.diag([2.9, 2.9, 1]), 68)
    aliased, _ = resample(stripes, (68, 68), places)
    found, _ = resample(stripes, (68, 68), places, 2.9)
    assert np.ptp(aliased[5:-5, 5:-5].astype(int)) > 200
    assert np.ptp(found[5:-5, 5:-5].astype(int)) < 20


def test_a_bent_plane_is_not_flat_and_noise_does_not_bend():
    rng = np.random.default_rng(0)
    here = rng.uniform(0, 400, (4000, 2))
    noisy = here + rng.normal(0, 1.5, here.shape)
    assert is_flat(np.eye(3), here, noisy, (400, 400))
    assert not is_flat(np.eye(3), here, here + 2 * np.sin(here / 60), (400, 400))


@pytest.fixture(scope="module")
def matched(bent):
    return mkdesc.match_images(bent.first, bent.second, geometry="homography", grid=8)


def test_the_second_photograph_looks_like_the_first_one(bent, matched):
    found, seen, by = matched.warp()
    assert by == "flow"
    assert seen[bent.shown].mean() > 0.97
    off = np.abs(found * 0.8 + 20 - bent.first)
    assert np.percentile(off[seen & bent.shown], 95) <= 6  # noise has deviation 2
    plain, also_seen, by = matched.warp(by="homography")
    assert by == "homography"
    worse = np.abs(plain * 0.8 + 20 - bent.first)[also_seen & bent.shown]
    assert worse.mean() > 2 * off[seen & bent.shown].mean()


def test_a_scene_that_is_flat_is_warped_by_its_homography(texture):
    second = texture(0)
    matrix = np.array([[0.95, 0.1, 12], [-0.1, 1, 30], [1e-4, 0, 1]])
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    first = cv2.warpPerspective(second, matrix, (400, 300), flags=flags)
    matches = mkdesc.match_images(first, second, grid=8)
    found, seen, by = matches.warp()
    assert by == "homography"
    inside = cv2.erode(seen.astype(np.uint8), np.ones((5, 5))) > 0
    assert inside.mean() > 0.7
    assert np.abs(found.astype(int) - first)[inside].mean() < 1
    fielded = matches.warp(by="flow")
    assert fielded.by == "flow"
    assert np.abs(fielded.image.astype(int) - first)[fielded.seen & inside].mean() < 1.5


def test_any_photograph_of_that_size_can_be_warped(bent, matched):
    second = bent.second
    colours = np.stack([second, 255 - second, second // 2], axis=-1)
    found, gray = matched.warp(colours, "flow"), matched.warp(by="flow")
    assert np.array_equal(found.image[..., 0], gray.image)
    assert np.abs(255 - found.image[..., 1].astype(int) - gray.image)[gray.seen].max() <= 1
    with pytest.raises(ValueError, match=r"image: expected one of \(300, 400\) pixels, got"):
        matched.warp(colours[:-1])


def test_opacity_is_where_the_photograph_is_opaque(bent, matched):
    second = bent.second
    opaque = np.where(np.arange(400) < 200, 255, 0).astype(np.uint8) * np.ones_like(second)
    found = matched.warp(np.dstack([second, second, second, opaque]), "flow")
    whole = matched.warp(by="flow").seen
    assert np.array_equal(found.seen[:, :180], whole[:, :180])
    assert not found.seen[:, 210:].any()


def test_without_a_verdict_or_a_homography_it_is_said(bent, texture):
    with pytest.raises(ValueError, match="nothing to warp by: "):
        mkdesc.match_images(bent.first, texture(9)).warp()
    deep = mkdesc.match_images(bent.first, bent.second, geometry="fundamental")
    with pytest.raises(ValueError, match="by: there is no homography"):
        deep.warp(by="homography")
    with pytest.raises(ValueError, match=r"by: .*got 'x'"):
        deep.warp(by="x")

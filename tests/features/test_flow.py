"""Fields of displacements against warps in closed form."""

import numpy as np
import pytest

import mkdesc
from mkdesc.features.flow import LocalMaps, hanging_together, interpolate


@pytest.fixture(scope="module")
def matched(bent):
    return mkdesc.match_images(
        bent.first, bent.second, mkdesc.Features(800), geometry="homography", grid=8
    )


def test_a_smooth_warp_is_found_nearly_everywhere_to_a_tenth_of_a_pixel(bent, matched):
    flow = matched.flow()
    assert flow.field.shape == (300, 400, 2)
    known = np.isfinite(flow.field).all(axis=2)
    assert known[bent.shown].mean() > 0.97
    off = np.linalg.norm(flow.field - bent.field, axis=2)[known]
    assert np.median(off) < 0.1
    assert np.mean(off < 1) > 0.99


def test_nothing_is_known_where_the_second_photograph_ends(bent, matched):
    x, y = np.moveaxis(bent.places, -1, 0)
    beyond = (x < -2) | (x > 401) | (y < -2) | (y > 301)
    assert beyond.sum() > 500
    flow = matched.flow()
    assert np.isnan(flow.field[beyond]).all()
    assert not flow.confidence[beyond].any()


def test_confidence_is_where_something_is_known_and_tells_errors_apart(bent, matched):
    flow = matched.flow()
    known = np.isfinite(flow.field[..., 0])
    assert np.array_equal(known, flow.confidence > 0)
    assert flow.confidence.max() <= 1
    off = np.linalg.norm(flow.field - bent.field, axis=2)[known]
    order = np.argsort(flow.confidence[known])
    least, most = np.array_split(off[order], 4)[::3]
    assert np.percentile(most, 95) < 0.7 * np.percentile(least, 95)


def test_other_shapes_show_the_same_field(matched):
    whole, third = matched.flow().field, matched.flow((100, 101)).field
    assert third.shape == (100, 101, 2)
    assert np.nanmax(np.abs(third[:, 50] - whole[1::3, 200 - 1])) < 0.2
    with pytest.raises(ValueError, match="shape: expected an integer >= 1, got 0"):
        matched.flow((0, 10))
    for shape in (5, (5,), (5, 6, 2)):
        with pytest.raises(ValueError, match="shape: expected rows and columns, got"):
            matched.flow(shape)


def test_matches_on_the_grid_are_of_no_keypoint_and_have_the_maps_of_the_warp(bent, bend, matched):
    plain = mkdesc.match_images(
        bent.first, bent.second, mkdesc.Features(800), geometry="homography"
    )
    more = slice(len(plain), None)
    assert len(matched) > 2 * len(plain)
    assert np.array_equal(matched.points_a[: len(plain)], plain.points_a)
    assert np.array_equal(matched.inliers[: len(plain)], plain.inliers)
    assert (matched.pairs[more] == -1).all()
    assert np.isnan(matched.distances[more]).all()
    assert np.allclose((matched.points_a[more] - 3.5) % 8, 0)
    here = matched.points_a[more]
    assert np.median(np.linalg.norm(matched.points_b[more] - here - bend(*here.T), axis=1)) < 0.1
    x, y = here.T
    true = np.zeros((len(here), 2, 2))
    true[:, 0, 0], true[:, 0, 1] = 1, 4 / 50 * np.cos(y / 50)
    true[:, 1, 0], true[:, 1, 1] = 0.02 - 3 / 60 * np.sin(x / 60), 1
    assert np.median(np.abs(matched.affine[more] - true)) < 0.02


def test_on_the_grid_too_inliers_are_those_that_the_geometry_expects(matched):
    assert matched.geometry == "homography"
    ways = (
        (matched.points_a, matched.points_b, matched.matrix),
        (matched.points_b, matched.points_a, np.linalg.inv(matched.matrix)),
    )
    both = []
    for here, there, matrix in ways:
        moved = np.column_stack([here, np.ones(len(here))]) @ matrix.T
        both.append(np.linalg.norm(moved[:, :2] / moved[:, 2:] - there, axis=1))
    off = np.minimum(*both)
    grown_at_keypoints = (matched.pairs >= 0).any(axis=1)
    assert np.array_equal(matched.inliers[~grown_at_keypoints], off[~grown_at_keypoints] <= 2)
    assert np.mean(matched.inliers == (off <= 2)) > 0.98  # the estimator's own
    assert 0.2 < matched.inliers.mean() < 0.98  # a plane bent: some are, some are not


def test_without_a_verdict_there_is_no_grid_and_no_field(bent, texture):
    found = mkdesc.match_images(bent.first, texture(7), mkdesc.Features(800), grid=8)
    assert not found.verified
    assert np.isnan(found.correlation).all()  # what nothing could be grown from
    flow = found.flow()
    assert np.isnan(flow.field).all()
    assert not flow.confidence.any()


@pytest.mark.parametrize("grid", [0, 1, 2.5, "8", True])
def test_a_grid_is_a_number_of_pixels(bent, grid):
    with pytest.raises(ValueError, match="grid: expected an integer from 2 to 10000"):
        mkdesc.match_images(bent.first, bent.second, grid=grid)


def test_what_was_not_grown_has_neither_grid_nor_field(bent):
    with pytest.raises(ValueError, match="grid: grows matches; expected grow=True"):
        mkdesc.match_images(bent.first, bent.second, grow=False, grid=8)
    with pytest.raises(ValueError, match=r"flow: .*expected matches that were grown"):
        mkdesc.match_images(bent.first, bent.second, mkdesc.Features(800), grow=False).flow()


def test_a_grid_wider_than_the_photograph_adds_nothing(bent):
    plain = mkdesc.match_images(bent.first, bent.second, mkdesc.Features(800))
    found = mkdesc.match_images(bent.first, bent.second, mkdesc.Features(800), grid=10_000)
    assert len(found) == len(plain)


# From here on, matches that are made up.


def made_up(here, there, maps=None):
    here, there = np.asarray(here, float), np.asarray(there, float)
    if maps is None:
        maps = np.repeat(np.eye(2)[None], len(here), axis=0)
    return LocalMaps(here, there, maps, np.ones(len(here)))


def lattice(shape, step=10):
    y, x = np.mgrid[5 : shape[0] : step, 5 : shape[1] : step]
    return np.column_stack([x.ravel(), y.ravel()]).astype(float)


def test_an_affine_map_is_interpolated_exactly():
    places = lattice((100, 120))
    linear, offset = np.array([[1.1, 0.2], [-0.1, 0.9]]), np.array([5, 15])
    maps = np.repeat(linear[None], len(places), axis=0)
    flow = interpolate(
        made_up(places, places @ linear.T + offset, maps), (100, 120), (200, 200), None
    )
    y, x = np.mgrid[10:90, 10:110]
    at = np.stack([x, y], axis=-1)
    assert np.allclose(flow.field[10:90, 10:110], at @ (linear.T - np.eye(2)) + offset, atol=1e-4)
    assert np.allclose(flow.confidence[10:90, 10:110], 1, atol=1e-6)


def test_where_depth_jumps_each_side_keeps_its_own_displacement():
    places = lattice((100, 200))
    near = places[:, 0] < 100
    there = places + np.where(near, 30, 8)[:, None] * [1, 0]
    flow = interpolate(made_up(places, there), (100, 200), (300, 300), None)
    across = flow.field[20:80, :, 0]
    known = np.isfinite(across)
    assert np.isin(across[known].round(3), (30, 8)).all()  # nothing in between
    assert known.mean() > 0.97
    assert (across[:, :95] == 30).all()
    assert (across[:, 105:195] == 8).all()


def test_nothing_is_extrapolated_far_beyond_the_window_of_a_match():
    places = lattice((60, 60)) + 100
    flow = interpolate(made_up(places, places + 3), (300, 300), (300, 300), None)
    y, x = np.nonzero(np.isfinite(flow.field[..., 0]))
    assert x.min() >= 105 - 12
    assert x.max() <= 155 + 12
    assert y.min() >= 105 - 12
    assert y.max() <= 155 + 12


def test_matches_far_apart_are_not_connected_although_they_agree():
    places = np.concatenate([lattice((50, 50)), lattice((50, 50)) + np.array([400, 0])])
    flow = interpolate(made_up(places, places + 3), (50, 450), (500, 500), None)
    assert np.isnan(flow.field[:, 60:390]).all()
    assert np.isfinite(flow.field[10:40, 10:40]).all()


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_few_matches_or_a_line_of_them_fill_their_windows(count):
    places = np.column_stack([np.arange(count) * 30 + 20, np.full(count, 20.0)])
    flow = interpolate(made_up(places, places + 1), (40, 160), (90, 190), None)
    known = np.isfinite(flow.field[..., 0])
    assert np.isclose(known.sum(), count * np.pi * 12**2, rtol=0.05)
    assert (flow.field[known] == 1).all()


def test_outliers_count_where_they_hang_together_with_inliers():
    places = lattice((100, 200))
    bent = places + np.column_stack([4 * np.sin(places[:, 1] / 30), np.zeros(len(places))])
    inliers = np.abs(bent - places).max(axis=1) < 2
    assert 0.25 < inliers.mean() < 0.9
    assert hanging_together(made_up(places, bent), inliers).all()


def test_what_agrees_with_nothing_around_it_or_with_no_inlier_does_not_count():
    places = lattice((100, 200))
    there = places + 3
    alone = np.zeros(len(places), bool)
    alone[[33, 77]] = True
    elsewhere = (places[:, 0] > 140) & ~alone  # a window that looks the same elsewhere
    there[alone] += [[40, 0], [0, -35]]
    there[elsewhere] += [70, 5]
    kept = hanging_together(made_up(places, there), ~(alone | elsewhere))
    assert np.array_equal(kept, ~(alone | elsewhere))


def test_places_twice_or_nearly_on_a_line_leave_numbers_everywhere():
    places = lattice((60, 60))
    places = np.concatenate([places, places[:9], places[:9] + 1e-9, [[4.9999999, 30]]])
    flow = interpolate(made_up(places, places + 1), (60, 60), (99, 99))
    known = np.isfinite(flow.field[..., 0])
    assert known.all()
    assert np.allclose(flow.field, 1, atol=1e-4)
    assert np.isfinite(flow.confidence).all()


def test_twelve_bits_in_sixteen_are_warped_by_matches_of_brighter_ones(bent):
    dark = bent.first.astype(np.uint16) * 16, bent.second.astype(np.uint16) * 16
    matches = mkdesc.match_images(16 * dark[0], 16 * dark[1], mkdesc.Features(800), grid=8)
    found = matches.warp(dark[1], "flow")
    off = np.abs(found.image / 16 * 0.8 + 20 - bent.first)[found.seen & bent.shown]
    assert found.image.dtype == np.uint16
    assert np.percentile(off, 90) < 6

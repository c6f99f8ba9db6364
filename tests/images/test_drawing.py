"""Pictures of matches and keypoints stay readable, and show what there is."""

import re

import numpy as np
import pytest

pytest.importorskip("cv2")
from mkdesc.images.drawing import (
    CIRCLES,
    LINES,
    draw_keypoints,
    draw_matches,
    spread_out,
    svg_of_matches,
)

BLANK = np.zeros((60, 80), np.uint8)


def test_of_many_matches_some_get_lines_and_all_are_marked(rng):
    places = rng.uniform(5, 55, (500, 2))
    drawn = svg_of_matches(BLANK, BLANK, places, places, "500 matches")
    assert drawn.count("<line ") == LINES
    assert drawn.count("<circle ") == 2 * 500
    assert f"500 matches - lines for {LINES} of 500" in drawn
    few = svg_of_matches(BLANK, BLANK, places[:LINES], places[:LINES], "few")
    assert few.count("<line ") == LINES
    assert ">few<" in few


def test_lines_join_matched_places():
    (line,) = re.findall(
        r'x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"',
        svg_of_matches(BLANK, BLANK, [[10, 20]], [[30, 40]]),
    )
    x1, y1, x2, y2 = map(float, line)
    assert (x2 - x1, y2 - y1) == (80 + 12 + 20, 20)  # one image and the gap further


def test_those_chosen_cover_the_area(rng):
    """A crowd in a corner and a few elsewhere: the few are all there."""
    crowd = rng.uniform(0, 10, (1000, 2))
    elsewhere = rng.uniform(20, 100, (30, 2))
    chosen = spread_out(np.vstack([crowd, elsewhere]), 100)
    assert len(set(chosen.tolist())) == 100
    assert set(range(1000, 1030)) <= set(chosen.tolist())
    assert spread_out(np.zeros((5, 2)), 3).tolist() == [0, 1, 2]
    assert spread_out(np.empty((0, 2)), 3).tolist() == []


def test_a_picture_of_many_matches(rng):
    places = rng.uniform(5, 55, (500, 2))
    picture = draw_matches(BLANK, BLANK, places, places)
    assert picture.shape == (60 + 44, 2 * 80 + 12, 3)
    assert (picture[:40] < 100).any()  # the caption, though none was given


def amber(picture):
    """Where the colour of keypoints is, below the caption."""
    return (np.abs(picture[44:].astype(int) - (60, 190, 255)).max(axis=2) < 40).nonzero()


def test_a_circle_is_three_sigmas_large_and_its_radius_points_along_the_angle():
    """OpenCV's angles: clockwise as seen, from the x axis. 1,000 pixels are drawn as they are."""
    blank = np.zeros((800, 1000), np.uint8)
    y, x = amber(draw_keypoints(blank, [[500, 400, 20, 90]]))
    assert (x.min(), x.max()) == pytest.approx((440, 560), abs=1)
    assert (y.min(), y.max()) == pytest.approx((340, 460), abs=1)
    inside = np.hypot(x - 500, y - 400) < 55
    assert np.abs(x[inside] - 500).max() <= 2  # straight down, in an image
    assert y[inside].max() > 450
    assert y[inside].min() >= 398


def test_small_images_are_enlarged_around_pixel_centres():
    y, x = amber(draw_keypoints(np.zeros((100, 100), np.uint8), [[10, 30, 2, 0]]))
    # Four times: the centre of pixel 10 comes to 4 x 10.5 - 0.5.
    assert (x.min() + x.max()) / 2 == pytest.approx(41.5, abs=1)
    assert (y.min() + y.max()) / 2 == pytest.approx(121.5, abs=1)


def test_of_many_keypoints_some_get_circles_and_the_others_are_dots(rng):
    blank = np.zeros((600, 1000), np.uint8)
    points = np.column_stack([rng.uniform(50, 550, (1000, 2)), np.full((1000, 2), 8.0)])
    few, many = (draw_keypoints(blank, points[:n], "c") for n in (CIRCLES, 1000))
    longer = [int((picture[:44] < 100).any(axis=(0, 2)).sum()) for picture in (few, many)]
    assert longer[1] > 5 * longer[0]  # the caption says how many
    columns, rows = np.rint(points[:, :2]).astype(int).T
    colours = many[44 + rows, columns].astype(int)
    chosen = spread_out(points[:, :2], CIRCLES)
    assert np.delete(colours, chosen, axis=0).max(axis=1).min() > 150  # dots, over all circles
    assert draw_keypoints(blank, []).shape == (644, 1000, 3)

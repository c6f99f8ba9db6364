"""Pictures of matches stay readable."""

import re

import numpy as np
import pytest

pytest.importorskip("cv2")
from mkdesc.images.drawing import LINES, draw_matches, spread_out, svg_of_matches

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

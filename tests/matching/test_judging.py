"""What is believed of matches that are made up: right ones, wrong ones, and those between."""

import cv2
import numpy as np
import pytest

from mkdesc.geometry.estimators.base import Estimate
from mkdesc.matching import judging
from mkdesc.matching.chance import SAMPLES, disc_share, false_alarms
from mkdesc.matching.coherence import coherence, in_front
from mkdesc.matching.frame_matches import FrameMatches
from mkdesc.matching.judging import (
    AMBIGUOUS,
    UNVERIFIED,
    VERIFIED,
    _false_alarms,
    judge,
)
from mkdesc.matching.two_view_geometry import TwoViewOptions, verify

SIZE = (480, 640)
OPTIONS = TwoViewOptions((SIZE, SIZE), "homography")
#: A turn about the middle of the image, and a zoom.
TURN = np.vstack([cv2.getRotationMatrix2D((320, 240), 20, 0.9), [0, 0, 1]])


def frames(xy, shape=None):
    """Frames (M, 2, 3) at positions (M, 2), of one shape (2, 2) or of one each."""
    made = np.zeros((len(xy), 2, 3))
    made[:, :, :2] = 8 * np.eye(2) if shape is None else shape
    made[:, :, 2] = xy
    return made


def matched(a, b):
    rows = np.repeat(np.arange(len(a))[:, None], 2, axis=1)
    return FrameMatches(a, b, np.zeros(len(a), np.float32), rows)


def moved(matrix, xy):
    return cv2.perspectiveTransform(np.asarray(xy, float)[None], matrix)[0]


def turned(rng, right, wrong=0, spread=SIZE[::-1]):
    """Matches of a plane that is turned, and wrong ones; half a pixel off, the shapes too."""
    xy = rng.uniform([0, 0], spread, (right + wrong, 2))
    a = frames(xy)
    there = moved(TURN, xy) + 0.3 * rng.normal(size=xy.shape)
    b = frames(there, TURN[:2, :2] @ a[:, :, :2])
    angles = rng.uniform(0, 2 * np.pi, wrong)
    turns = np.moveaxis(
        np.array([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]]), 2, 0
    )
    sizes = np.exp(rng.uniform(-1, 1, wrong))[:, None, None]
    b[right:] = frames(rng.uniform([0, 0], SIZE[::-1], (wrong, 2)), 8 * sizes * turns)
    return matched(a, b)


def verdict(matches, options=OPTIONS, found=None):
    return judge(matches, found or verify(matches, options.geometry, options), options)


@pytest.mark.parametrize(("right", "wrong"), [(300, 0), (150, 150), (60, 240)])
def test_a_plane_is_believed(rng, right, wrong):
    found = verdict(turned(rng, right, wrong))
    assert found.name == VERIFIED
    assert 0.5 * right < found.places <= right + 2


def test_wrong_matches_are_not_believed(rng):
    for options in (OPTIONS, OPTIONS._replace(geometry="fundamental")):
        assert verdict(turned(rng, 0, 300), options).name == UNVERIFIED


def test_a_geometry_that_nothing_was_found_for_is_not_believed(rng):
    found = verdict(turned(rng, 50), found=Estimate(None, np.zeros(50, bool)))
    assert (found.name, found.places) == (UNVERIFIED, 0)


def test_what_chance_explains_is_not_believed(rng):
    """One in six within 20 pixels of its line, of 300 matches: chance does that, though not often.

    One in four is another matter, and so are as few of which nearly all move together.
    """
    options = OPTIONS._replace(geometry="fundamental", threshold=20.0)
    sideways = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])

    def of(agree, together):
        matches = turned(rng, agree, 300 - agree)
        along = np.full((agree, 2), [30.0, 0])
        along[together:, 0] = rng.uniform(-300, 300, agree - together)
        matches.b[:agree] = frames(matches.a[:agree, :, 2] + along)
        exact = Estimate(sideways, np.arange(300) < agree, "fundamental")
        return verdict(matches, options, exact)

    explained = of(50, 25)
    assert explained.name == UNVERIFIED
    assert "no more than chance explains" in explained.reason
    assert "no more than chance explains" not in of(75, 37).reason
    assert of(50, 50).name == VERIFIED


@pytest.mark.parametrize(("share", "expected"), [(0.1, VERIFIED), (0.6, UNVERIFIED)])
def test_shuffled_matches_must_not_do_nearly_as_well(rng, monkeypatch, share, expected):
    few = turned(rng, 36)
    count = verdict(few).places
    assert 20 < count < 50  # of more there is no doubt
    monkeypatch.setattr(judging, "_by_chance", lambda *_: round(share * count))
    assert verdict(few).name == expected


def test_few_places_are_not_believed_however_many_matches_they_have(rng):
    """What is many times at five places is five places, not two hundred and fifty."""
    few = turned(rng, 5)
    again = np.repeat(np.arange(5), 50)
    many = few._replace(a=few.a[again].copy(), b=few.b[again].copy())
    for side in (many.a, many.b):
        side[:, :, 2] += 0.3 * rng.normal(size=(250, 2))
    many = matched(many.a, many.b)
    exact = Estimate(TURN, np.ones(250, bool), "homography")
    assert verdict(many, found=exact).name == UNVERIFIED
    assert verdict(turned(rng, 250), found=exact).name == VERIFIED


def test_places_on_one_line_are_not_believed(rng):
    """They agree with more than one homography, and the edge of anything has them."""
    line = turned(rng, 200)
    along = np.column_stack([np.linspace(20, 620, 200), np.full(200, 240.0)])
    line = matched(frames(along), frames(moved(TURN, along), 8 * TURN[:2, :2]))
    exact = Estimate(TURN, np.ones(200, bool), "homography")
    assert coherence(line, (SIZE, SIZE)).coherent == 0
    assert verdict(line, found=exact).name == UNVERIFIED
    # Across the line, some tens of pixels are enough.
    wide = along + np.column_stack([np.zeros(200), rng.uniform(-20, 20, 200)])
    wide = matched(frames(wide), frames(moved(TURN, wide), 8 * TURN[:2, :2]))
    assert coherence(wide, (SIZE, SIZE)).coherent > 100
    for one, other in ((wide.a, line.b), (line.a, wide.b)):
        assert coherence(matched(one, other), (SIZE, SIZE)).coherent == 0


def test_matches_along_epipolar_lines_must_move_together(rng):
    """Wrong ones that happen to be on their lines agree, as many as one likes; no two alike."""
    sideways = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    here = rng.uniform([0, 0], SIZE[::-1], (300, 2))
    anywhere = np.column_stack([rng.uniform(0, SIZE[1], 300), here[:, 1]])
    exact = Estimate(sideways, np.ones(300, bool), "fundamental")
    options = OPTIONS._replace(geometry="fundamental")
    random = verdict(matched(frames(here), frames(anywhere)), options, exact)
    assert random.name != VERIFIED
    # A surface whose depth changes slowly: shifts do, too.
    shift = 60 + 40 * np.sin(here[:, 0] / 100) * np.cos(here[:, 1] / 100)
    surface = here + np.column_stack([shift, np.zeros(300)])
    assert verdict(matched(frames(here), frames(surface)), options, exact).name == VERIFIED


def test_support_is_the_share_of_neighbours_that_move_alike(rng):
    """In a field that moves together one stands still; its neighbours have one against them."""
    x, y = np.meshgrid(np.arange(40.0, 600, 40), np.arange(40.0, 440, 40))
    here = np.column_stack([x.ravel(), y.ravel()])
    there = here + np.array([30, 20])
    odd = len(here) // 2 + 7
    there[odd] = here[odd] - [200, 100]
    found = coherence(matched(frames(here), frames(there)), (SIZE, SIZE))
    assert found.places == len(here)
    assert found.support[odd] < 0.2
    assert np.delete(found.support, odd).min() > 0.5
    assert found.coherent == len(here) - 1


def test_one_place_is_counted_once():
    """Eight matches within a few pixels of each other are one place, in either image."""
    x, y = np.meshgrid(np.arange(50.0, 600, 100), np.arange(50.0, 450, 100))
    here = np.repeat(np.column_stack([x.ravel(), y.ravel()]), 8, axis=0)
    here += np.tile(np.linspace(0, 3, 8), len(x.ravel()))[:, None]
    found = coherence(matched(frames(here), frames(here + 10)), (SIZE, SIZE))
    assert found.places == found.coherent == x.size


def facade(rng, shifts):
    """Windows in rows: each matches that which is so many windows further on, in turn."""
    x, y = np.meshgrid(np.arange(100.0, 500, 40), np.arange(40.0, 440, 40))
    here = np.column_stack([x.ravel(), y.ravel()]) + rng.uniform(-3, 3, (x.size, 2))
    steps = np.resize(shifts, len(here))
    there = here + np.column_stack([40.0 * steps, np.zeros(len(here))])
    there += 0.2 * rng.normal(size=here.shape)
    return matched(frames(here), frames(there))


def test_structure_that_repeats_itself_is_ambiguous(rng):
    """Half of the windows say one shift, half another: which one is right nobody can tell."""
    assert verdict(facade(rng, [0])).name == VERIFIED
    one, other = facade(rng, [0]), facade(rng, [3])
    # The same windows, matched twice: with themselves, and with others out of the image's middle.
    both = matched(np.concatenate([one.a, other.a]), np.concatenate([one.b, other.b]))
    both.b[:, 0, 2] += 2000 * (np.arange(200) >= 100)  # where the first shift has nothing
    options = OPTIONS._replace(sizes=(SIZE, (480, 3000)))
    found = verdict(both, options)
    assert found.name == AMBIGUOUS
    assert "repeated structure" in found.reason


def test_what_moves_by_itself_elsewhere_is_no_rival(rng):
    """Two things side by side, in both images; each goes its own way, and one is enough."""
    left, right = turned(rng, 150, spread=(250, 480)), rng.uniform([400, 0], [640, 480], (100, 2))
    right = matched(frames(right), frames(right + np.array([0, 12])))
    both = matched(np.concatenate([left.a, right.a]), np.concatenate([left.b, right.b]))
    both.b[:150, :, 2] = both.a[:150, :, 2] - [0, 15]
    both.b[:150, :, :2] = both.a[:150, :, :2]
    found = verdict(both)
    assert found.name == VERIFIED
    assert found.places < 150


def test_neighbours_that_look_alike_and_go_apart_are_repetitions(rng):
    """On an epipolar line each window goes to any other; they are as large and as upright."""
    sideways = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    mixed = facade(rng, [0])
    mixed.b[:, 0, 2] += 40.0 * rng.integers(-6, 7, len(mixed.b))
    exact = Estimate(sideways, np.ones(len(mixed.a), bool), "fundamental")
    options = OPTIONS._replace(geometry="fundamental")
    assert coherence(mixed, (SIZE, SIZE)).repeated > 0.8
    angles = rng.uniform(0, 2 * np.pi, len(mixed.b))
    turns = [[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]]
    turns = 8 * np.moveaxis(np.array(turns), 2, 0)
    some = rng.random(len(turns)) < 0.2
    mixed.b[some, :, :2] = turns[some]
    assert 0.5 < coherence(mixed, (SIZE, SIZE)).repeated < 0.8
    assert verdict(mixed, options, exact).name == AMBIGUOUS
    # Wrong matches that look as different as any are just wrong.
    mixed.b[:, :, :2] = turns
    assert coherence(mixed, (SIZE, SIZE)).repeated < 0.2
    assert verdict(mixed, options, exact).name == UNVERIFIED


@pytest.mark.parametrize(("changed", "expected"), [(False, VERIFIED), (True, AMBIGUOUS)])
def test_letters_that_change_places_are_not_believed(rng, changed, expected):
    """Each moves with itself, along the rows that the geometry allows, and with nothing else."""
    sideways = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    columns, rows = 8, 5
    letters = np.stack(
        np.meshgrid(np.arange(columns) * 76 + 50.0, np.arange(rows) * 90 + 50.0), -1
    )
    moved_to = letters.copy()
    if changed:
        for row in moved_to:
            row[:, 0] = rng.permutation(row[:, 0])
    inner = np.stack(np.meshgrid([-12.0, 0, 12], [-12.0, 0, 12]), -1).reshape(-1, 2)
    here, there = (
        (xy[:, :, None] + inner + rng.uniform(-1, 1, inner.shape)).reshape(-1, 2)
        for xy in (letters, moved_to)
    )
    exact = Estimate(sideways, np.ones(len(here), bool), "fundamental")
    options = OPTIONS._replace(geometry="fundamental")
    found = verdict(matched(frames(here), frames(there)), options, exact)
    assert found.name == expected, found


@pytest.mark.parametrize("shapes", ["right", "wrong"])
def test_shapes_can_speak_for_a_geometry_but_not_against_it(rng, shapes):
    matches = turned(rng, 40, 200)
    agree = np.arange(240) < 40
    if shapes == "wrong":
        matches.b[:40, :, :2] = matches.b[:40, :, :2] @ np.array([[0, -1], [1, 0]])
    found = _false_alarms(matches, Estimate(TURN, agree, "homography"), OPTIONS)
    share = disc_share(OPTIONS.threshold, SIZE, SIZE)
    places = false_alarms(40, 240, share, SAMPLES["homography"])
    assert found == pytest.approx(places) if shapes == "wrong" else found < places - 10


def test_matches_behind_a_camera_are_not_in_front(rng):
    """Going straight ahead, everything moves away from the middle; what comes nearer is wrong."""
    ahead = np.array([[0.0, -1, 240], [1, 0, -320], [-240, 320, 0]])  # epipole (320, 240)
    here = rng.uniform([0, 0], SIZE[::-1], (100, 2))
    there = [320, 240] + 1.3 * (here - [320, 240])
    there[:9] = [320, 240] - 0.7 * (here[:9] - [320, 240])  # on its line, beyond the epipole
    expected = [False] * 9 + [True] * 91
    assert in_front(ahead, here, there).tolist() == expected
    assert in_front(-ahead, here, there).tolist() == expected


def test_what_is_behind_a_camera_does_not_count(rng):
    """Through the middle and turned by half a circle, it moves together as well as what is not."""
    ahead = np.array([[0.0, -1, 240], [1, 0, -320], [-240, 320, 0]])
    here = rng.uniform([0, 0], SIZE[::-1], (150, 2))
    zoom = np.where(np.arange(150) < 50, -0.8, 0.8)[:, None]
    there = [320, 240] + zoom * (here - [320, 240])
    matches = matched(frames(here), frames(there, 8 * zoom[:, :, None] * np.eye(2)))
    options = OPTIONS._replace(geometry="fundamental")
    found = verdict(matches, options, Estimate(ahead, np.ones(150, bool), "fundamental"))
    assert 60 < found.places <= 100

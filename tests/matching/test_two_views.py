"""What is believed of two views: matches of a made-up scene, right ones and wrong ones."""

import cv2
import numpy as np
import pytest

from mkdesc.geometry.estimators.base import Estimate
from mkdesc.matching import judging
from mkdesc.matching.coherence import coherence, distinct_places, in_front
from mkdesc.matching.frame_matches import FrameMatches
from mkdesc.matching.judging import judge
from mkdesc.matching.mirrored import mirrored_homography
from mkdesc.matching.two_view_geometry import TwoViewOptions, verify
from mkdesc.matching.verification import verify_matches

SIZE = (600, 800)
SIZES = (SIZE, SIZE)
OPTIONS = TwoViewOptions(SIZES)
#: Rectified cameras: a match stays in its row, and goes anywhere in it.
ROWS = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])


def frames_at(xy, linear=None):
    frames = np.zeros((len(xy), 2, 3))
    frames[:, :, :2] = 8 * (np.eye(2) if linear is None else linear)
    frames[:, :, 2] = xy
    return frames


def matches_of(a, b):
    rows = np.repeat(np.arange(len(a))[:, None], 2, axis=1)
    return FrameMatches(a, b, np.zeros(len(a), np.float32), rows)


def spots(rng, count, low=(20, 20), high=(780, 580)):
    """Places in an image, none near another."""
    found = np.empty((0, 2))
    while len(found) < count:
        one = rng.uniform(low, high)
        if not len(found) or np.linalg.norm(found - one, axis=1).min() > 15:
            found = np.vstack([found, one])
    return found


def turned(rng, count):
    angles = rng.uniform(0, 2 * np.pi, count)
    turn = np.array([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]])
    return turn.transpose(2, 0, 1)


def of_plane(rng, count, low=(20, 20), high=(780, 580), shift=(15.0, 10.0)):
    here = spots(rng, count, low, high)
    linear = np.array([[0.9, 0.1], [-0.1, 0.9]])
    return matches_of(frames_at(here), frames_at(here @ linear.T + shift, linear))


def random_matches(rng, count):
    a, b = (frames_at(rng.uniform(0, SIZE[::-1], (count, 2)), turned(rng, count)) for _ in "ab")
    return matches_of(a, b)


def in_rows(here, there_x, linear=None):
    """Matches that agree with ROWS exactly, and the geometry that says so."""
    matches = matches_of(
        frames_at(here), frames_at(np.column_stack([there_x, here[:, 1]]), linear)
    )
    return matches, Estimate(ROWS, np.ones(len(here), bool), "fundamental")


def test_a_plane_is_believed_among_wrong_matches(rng):
    matches = of_plane(rng, 60).followed_by(random_matches(rng, 90))
    verdict = judge(matches, verify(matches, "auto", OPTIONS), OPTIONS)
    assert verdict.name == "verified"
    assert 50 <= verdict.places <= 60


def test_depth_is_believed(rng):
    """Two slabs, one nearer: a row goes on in two places, each with its neighbours."""
    here = spots(rng, 80)
    near = here[:, 0] > 400
    matches, found = in_rows(here, here[:, 0] - np.where(near, 90, 40))
    assert judge(matches, found, OPTIONS).name == "verified"


def test_wrong_matches_that_agree_on_an_epipolar_geometry_are_not_believed(rng):
    """Each on its line, but anywhere on it: too many for chance, and neighbours do not follow."""
    here = spots(rng, 150)
    matches, found = in_rows(here, rng.uniform(20, 780, 150), turned(rng, 150))
    verdict = judge(matches, found, OPTIONS)
    assert verdict.name == "unverified"
    assert "places move with their neighbours" in verdict.reason


def test_what_chance_explains_is_not_believed(rng):
    matches = of_plane(rng, 12).followed_by(random_matches(rng, 2000))
    inliers = np.arange(2012) < 12
    found = Estimate(np.eye(3), inliers, "fundamental")
    assert "no more than chance explains" in judge(matches, found, OPTIONS).reason


def test_many_places_that_move_together_are_no_chance(rng):
    """As many would often agree on some epipolar geometry, but not move with their neighbours."""
    here = spots(rng, 30)
    wrong = random_matches(rng, 600)
    for there, verdict in ((here[:, 0] - 40, "verified"), (here[::-1, 0], "unverified")):
        matches = in_rows(here, there)[0].followed_by(wrong)
        found = Estimate(ROWS, np.arange(630) < 30, "fundamental")
        assert judging._false_alarms(matches, found, OPTIONS) > judging.BELIEVED
        assert judge(matches, found, OPTIONS).name == verdict


def test_matches_of_a_few_places_count_once_each(rng):
    """Right, and many: but six places."""
    here = np.repeat(spots(rng, 6), 40, axis=0) + rng.uniform(-3, 3, (240, 2))
    matches = matches_of(frames_at(here), frames_at(here + np.array([40, 0])))
    found = Estimate(
        np.array([[1.0, 0, 40], [0, 1, 0], [0, 0, 1]]), np.ones(240, bool), "homography"
    )
    verdict = judge(matches, found, OPTIONS)
    assert verdict.name == "unverified"
    assert "only 6 places" in verdict.reason


def test_places_are_one_to_one():
    here = np.array([[100.0, 100], [101, 100], [300, 100], [500, 100]])
    there = np.array([[100.0, 100], [400, 400], [101, 100], [500, 100]])
    # The second shares its place here, the third its place there, with the first.
    assert distinct_places(here, there, SIZES).tolist() == [0, 3]


def test_places_on_one_line_are_not_believed(rng):
    here = np.column_stack([np.linspace(20, 780, 60), np.full(60, 300.0)])
    here += rng.normal(0, 1, here.shape)
    assert coherence(matches_of(frames_at(here), frames_at(here)), SIZES).coherent == 0
    spread = here + np.column_stack([np.zeros(60), rng.uniform(-200, 200, 60)])
    assert coherence(matches_of(frames_at(spread), frames_at(spread)), SIZES).coherent > 50


def test_what_is_behind_a_camera_does_not_agree(rng):
    """Points of a camera that goes forward: all move away from the epipole, in the middle."""
    points = rng.uniform([-2, -1.5, 4], [2, 1.5, 8], (50, 3))
    points[:10, 2] *= -1  # behind both; a camera does not see them, an epipolar line does
    centre = np.array([400.0, 300.0])
    views = [
        500 * moved[:, :2] / moved[:, 2:] + centre for moved in (points, points - [0, 0, 1.0])
    ]
    x, y = centre
    matrix = np.array([[0, -1, y], [1, 0, -x], [-y, x, 0]])
    lines = np.column_stack([views[0], np.ones(50)]) @ matrix.T
    off = (np.column_stack([views[1], np.ones(50)]) * lines).sum(axis=1)
    np.testing.assert_allclose(off / np.linalg.norm(lines[:, :2], axis=1), 0, atol=1e-6)
    # Those of which one position is on the other side of the epipole.
    views[1][:5] = 2 * centre - views[1][:5]
    assert in_front(matrix, *views).tolist() == [False] * 5 + [True] * 45


def test_places_behind_a_camera_are_not_counted(rng):
    """The camera goes forward; some matches move together, on the wrong side of the epipole."""
    here, centre = spots(rng, 90), np.array([400.0, 300.0])
    linear = np.where(np.arange(90)[:, None, None] < 60, 1.2, -1.2) * np.eye(2)
    there = centre + (linear @ (here - centre)[:, :, None])[:, :, 0]
    matches = matches_of(frames_at(here), frames_at(there, linear))
    x, y = centre
    matrix = np.array([[0, -1, y], [1, 0, -x], [-y, x, 0]])
    found = Estimate(matrix, np.ones(90, bool), "fundamental")
    assert 50 <= judge(matches, found, OPTIONS).places <= 60


def test_what_shuffled_matches_do_as_well_is_not_believed(rng, monkeypatch):
    matches = of_plane(rng, 20)
    found = verify(matches, "homography", OPTIONS)
    places = judge(matches, found, OPTIONS).places
    assert 10 <= places < 50
    monkeypatch.setattr(judging, "_by_chance", lambda *_: places // 2)
    assert judge(matches, found, OPTIONS).name == "unverified"


def test_shuffled_matches_move_apart(rng):
    matches = of_plane(rng, 45)
    found = verify(matches, "homography", OPTIONS)
    assert judging._by_chance(matches, found, OPTIONS) < 5


def test_a_row_of_windows_is_ambiguous(rng):
    """Windows that are alike, tied to any other window of their row."""
    columns, rows = np.meshgrid(np.arange(60.0, 780, 90), np.arange(40.0, 600, 45))
    here = np.column_stack([columns.ravel(), rows.ravel()])
    matches, found = in_rows(here, rng.permuted(columns, axis=1).ravel())
    verdict = judge(matches, found, OPTIONS)
    assert verdict.name == "ambiguous"
    assert verdict.reason.startswith("ambiguous, repeated structure: ")


@pytest.mark.parametrize("same_places", [True, False])
def test_two_geometries_of_the_same_places_are_ambiguous(rng, same_places):
    """A facade fits as it is, and shifted by a window; a thing that moved does so elsewhere."""
    wall = of_plane(rng, 40, high=(380, 580))
    if same_places:
        aside = wall.b[:36].copy()
        aside[:, 0, 2] += 330
        other = wall.take(slice(36))._replace(b=aside)
    else:
        other = of_plane(rng, 36, low=(420, 20), shift=(-50.0, 60.0))
    matches = wall.followed_by(other)
    verdict = judge(matches, verify(matches, "homography", OPTIONS), OPTIONS)
    assert verdict.name == ("ambiguous" if same_places else "verified")
    assert ("of the same places also agree on another" in verdict.reason) == same_places


def mirrored_matches(rng):
    """Of a photograph and its mirror image: right ones, and as many wrong ones."""
    here = spots(rng, 80)
    angles = turned(rng, 80)
    flipped = np.diag([-1.0, 1]) @ angles @ np.diag([1.0, -1])
    right = matches_of(frames_at(here, angles), frames_at([799, 0] + here * [-1, 1], flipped))
    return right.followed_by(random_matches(rng, 80)), np.arange(160) < 80


def test_a_mirrored_photograph_is_a_homography_that_mirrors(rng):
    matches, right = mirrored_matches(rng)
    found = verify(matches, "auto", OPTIONS)
    assert found.geometry == "homography"
    expected = np.array([[-1.0, 0, 799], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(found.matrix / found.matrix[2, 2], expected, atol=1e-2)
    assert (found.inliers == right).mean() > 0.98
    verdict = judge(matches, found, OPTIONS)
    assert verdict.name == "verified"
    assert verdict.places > 70


def test_a_mirrored_photograph_has_no_epipolar_geometry(rng):
    matches, _ = mirrored_matches(rng)
    found = verify(matches, "fundamental", OPTIONS)
    assert found.matrix is not None
    verdict = judge(matches, found, OPTIONS)
    assert verdict.name == "unverified"
    assert "mirrors the other" in verdict.reason


def deep_views(rng):
    """Where two cameras see the same points, (200, 2) each."""
    points = rng.uniform([-2, -1.5, 6], [2, 1.5, 10], (200, 3))
    turn = cv2.Rodrigues(np.array([0.05, -0.2, 0.1]))[0]
    return [
        500 * seen[:, :2] / seen[:, 2:] + [400, 300]
        for seen in (points, points @ turn.T + [1.0, 0.2, 0.1])
    ]


@pytest.mark.parametrize("mirror", [False, True])
def test_neighbourhoods_of_a_deep_scene_tell_whether_it_is_mirrored(rng, mirror):
    """No plane explains the mirror image of a deep scene, and an epipolar geometry does."""
    here, there = deep_views(rng)
    if mirror:
        here = [799, 0] + here * [-1, 1]
    # Frames never mirror: of what is symmetric, half are upright and half upside down. They
    # predict neighbours above and below, and those beside.
    turns = np.resize([1.0, -1.0 if mirror else 1.0], len(here))[:, None, None] * np.eye(2)
    matches = matches_of(frames_at(here), frames_at(there, turns))
    found = verify(matches, "fundamental", OPTIONS)
    assert found.inliers.mean() > 0.9
    assert mirrored_homography(here, there, OPTIONS.threshold) is None
    verdict = judge(matches, found, OPTIONS)
    assert verdict.name == ("unverified" if mirror else "verified")
    assert ("mirrors the other" in verdict.reason) == mirror


def test_a_few_wrong_matches_do_not_make_a_mirror_image(rng):
    """A corner of a deep scene is turned over by chance: the rest of it moves together."""
    here = np.vstack([spots(rng, 60, low=(200, 20)), spots(rng, 18, high=(160, 200))])
    there = np.where(here[:, 0] > 400, here[:, 0] - 90, here[:, 0] - 40)
    there[60:] = 300 - here[60:, 0]
    matches, found = in_rows(here, there)
    assert judging.share_turned_over(*matches.positions) >= judging.TURNED_OVER
    assert judge(matches, found, OPTIONS).name == "verified"


def test_a_deep_scene_is_not_taken_for_a_mirror_image(rng):
    views = deep_views(rng)
    assert verify_matches(*views, "auto").geometry == "fundamental"


@pytest.mark.parametrize("astray", [0, 3])
def test_windows_that_go_to_several_others_are_ambiguous(rng, astray):
    """One corner of a facade moves together; of the rest, each goes to some window of its row."""
    x, y = np.meshgrid(np.arange(100.0, 700, 40), np.arange(40.0, 560, 40))
    here = np.column_stack([x.ravel(), y.ravel()]) + rng.uniform(-3, 3, (x.size, 2))
    steps = np.where(here[:, 0] < 260, 0, rng.integers(-astray, astray + 1, len(here)))
    there = here + np.column_stack([40.0 * steps, np.zeros(len(here))])
    matches = matches_of(frames_at(here), frames_at(there))
    found = Estimate(ROWS, np.ones(len(here), np.bool_), "fundamental")
    moving = coherence(matches, SIZES)
    assert moving.coherent > judging.FEWEST
    verdict = judge(matches, found, OPTIONS)
    assert verdict.name == ("ambiguous" if astray else "verified")

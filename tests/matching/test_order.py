"""The order of matches along epipolar lines: of surfaces, of wrong matches, of moved tiles."""

import itertools

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.features.image_pair import match_images
from mkdesc.matching.order import share_reversed
from mkdesc.matching.verification import verify_matches

#: Along rows, and away from (320, 240).
SIDEWAYS = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
AHEAD = np.array([[0.0, -1, 240], [1, 0, -320], [-240, 320, 0]])


def in_row(x):
    return np.column_stack([x, np.full(len(x), 100.0)])


def test_it_is_the_share_of_inversions(rng):
    """Of a permutation of places in one row, all further apart than the strip is wide."""
    places = np.arange(0, 1000, 50.0)
    order = rng.permutation(len(places))
    inverted = [order[i] > order[j] for i, j in itertools.combinations(range(len(order)), 2)]
    expected = min(np.mean(inverted), 1 - np.mean(inverted))
    found = share_reversed(SIDEWAYS, in_row(places), in_row(places[order]))
    assert found == pytest.approx(expected)
    assert share_reversed(SIDEWAYS, in_row(places), in_row(places[::-1])) == 0  # seen from behind


def test_other_rows_do_not_count(rng):
    """Rows that go different ways are as good as depth is."""
    x, y = np.meshgrid(np.arange(0, 1000, 50.0), np.arange(0, 1000, 100.0))
    here = np.column_stack([x.ravel(), y.ravel()])
    there = here + np.column_stack(
        [rng.uniform(-400, 400, 10)[(y / 100).astype(int).ravel()], 0 * y.ravel()]
    )
    assert share_reversed(SIDEWAYS, here, there) == 0


def test_away_from_the_epipole(rng):
    """Going ahead, everything moves away from the middle, near things by more, in their order."""
    here = rng.uniform([0, 0], [640, 480], (300, 2))
    there = [320, 240] + 1.3 * (here - [320, 240])
    assert share_reversed(AHEAD, here, there) == 0
    away = here - [320, 240]
    far = rng.uniform(20, 300, (300, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    assert 0.3 < share_reversed(AHEAD, here, [320, 240] + far * away) < 0.5


def test_only_pairs_with_what_is_asked_for_count():
    places = in_row(np.arange(0, 1000, 50.0))
    moved = places.copy()
    moved[:2] = places[[1, 0]]
    asked = np.arange(20) < 2
    assert share_reversed(SIDEWAYS, places, moved) == pytest.approx(1 / 190)
    assert share_reversed(SIDEWAYS, places, moved, asked) == pytest.approx(1 / 19)
    assert share_reversed(SIDEWAYS, places[:0], moved[:0]) == 0


@pytest.mark.parametrize(("wrong", "expected"), [(False, "fundamental"), (True, "homography")])
def test_a_plane_and_wrong_matches_along_lines_are_a_plane(rng, wrong, expected):
    """A third is off the plane and on its epipolar line: as something nearer is, or anywhere."""
    here = rng.uniform([0, 0], [640, 480], (400, 2))
    there = here + [40, 0] + 0.3 * rng.normal(size=here.shape)
    nearer = here[:, 0] > 430
    there[nearer, 0] += (
        rng.uniform(-300, 300, nearer.sum()) if wrong else 0.2 * (here[nearer, 0] - 300)
    )
    found = verify_matches(here, there, "auto")
    assert found.geometry == expected
    if wrong:
        assert np.abs(there - here - [40, 0])[found.inliers].max() < 4


def page(rng, lines):
    drawn = np.full((560, 700), 240, np.uint8)
    for row, words in enumerate(lines):
        at = (30, 50 + 36 * row)
        cv2.putText(drawn, words, at, cv2.FONT_HERSHEY_COMPLEX, 0.6, 20, 1, cv2.LINE_AA)
    corners = np.array([[0, 0], [700, 0], [700, 560], [0, 560]], np.float32)
    moved = corners + rng.uniform(-8, 8, (4, 2)).astype(np.float32)
    aside = cv2.getPerspectiveTransform(corners, moved)
    return cv2.warpPerspective(drawn, aside, (700, 560), borderValue=240), aside


def line(rng):
    return "".join(rng.choice(list("etaoinshrdlucmfwypvbgk   "), 48))


def test_pages_that_share_their_first_lines():
    """Verified is what they share, if anything: letters further down go anywhere on lines."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        shared, first, second = ([line(rng) for _ in range(n)] for n in (3, 11, 11))
        (a, one), (b, other) = (page(rng, shared + rest) for rest in (first, second))
        found = match_images(a, b, mkdesc.Features(2000))
        here, there = found.points_a[found.inliers], found.points_b[found.inliers]
        if len(here):
            expected = cv2.perspectiveTransform(here[None], other @ np.linalg.inv(one))[0]
            right = (np.linalg.norm(expected - there, axis=1) < 8) & (here[:, 1] < 50 + 36 * 3)
            assert right.mean() > 0.95
        else:
            assert found.verdict == "ambiguous"


def tiles(seed):
    rng = np.random.default_rng(seed)
    noise = sum(cv2.GaussianBlur(rng.normal(size=(480, 640)), (0, 0), s) * s for s in (1.5, 3, 6))
    return cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)


@pytest.mark.parametrize("geometry", ["auto", "fundamental"])
def test_tiles_that_changed_places_are_not_one_scene(geometry):
    """Four columns in another order: each is a right match, all together are no scene."""
    image = tiles(0)
    columns = np.hsplit(image, 4)
    moved = np.hstack([columns[k] for k in (2, 3, 0, 1)])
    found = match_images(image, moved, mkdesc.Features(1000), geometry=geometry)
    if geometry == "fundamental":
        assert found.verdict != "verified"
        assert "change their order" in found.reason
    else:
        assert found.geometry == "homography"


def table(rng, far):
    """A ruled grid with numbers in it, seen a little from aside."""
    drawn = np.full((700, 560), 240, np.uint8)
    for y in range(30, 671, 40):
        cv2.line(drawn, (30, y), (530, y), 60, 2)
    for x in range(30, 531, 100):
        cv2.line(drawn, (x, 30), (x, 670), 60, 2)
    for row, column in np.ndindex(16, 5):
        at = (35 + 100 * column, 60 + 40 * row)
        number = f"{rng.uniform(0, 999):.2f}"
        cv2.putText(drawn, number, at, cv2.FONT_HERSHEY_SIMPLEX, 0.7, 20, 1, cv2.LINE_AA)
    corners = np.array([[0, 0], [560, 0], [560, 700], [0, 700]], np.float32)
    moved = corners + rng.uniform(-far, far, (4, 2)).astype(np.float32)
    aside = cv2.getPerspectiveTransform(corners, moved)
    return cv2.warpPerspective(drawn, aside, (560, 700), borderValue=240)


@pytest.mark.parametrize("geometry", ["auto", "homography"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_tables_of_other_numbers_are_other_tables(geometry, seed):
    rng = np.random.default_rng(seed)
    found = match_images(table(rng, 8), table(rng, 8), mkdesc.Features(2000), geometry=geometry)
    assert found.verdict != "verified"

"""Things of one make: what agrees is really the same, and what lies between is not."""

import itertools

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.matching.contents import share_different
from mkdesc.matching.frame_matches import FrameMatches, plain_features


def qr_code(rng):
    text = "".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 60))
    code = cv2.QRCodeEncoder.create().encode(text)
    drawn = np.full((720, 720), 235, np.uint8)
    large = cv2.resize(code, (560, 560), interpolation=cv2.INTER_NEAREST)
    drawn[80:640, 80:640] = np.clip(large, 20, 235)
    return drawn


def chess_diagram(rng):
    drawn = np.full((720, 720), 250, np.uint8)
    for row, column in np.ndindex(8, 8):
        x, y = 60 + 75 * column, 60 + 75 * row
        shade = 120 if (row + column) % 2 else 210
        cv2.rectangle(drawn, (x, y), (x + 75, y + 75), shade, -1)
        if rng.random() < 0.4:
            piece = "KQRBNP"[rng.integers(6)]
            ink = int(rng.choice([20, 250]))
            cv2.putText(drawn, piece, (x + 18, y + 56), cv2.FONT_HERSHEY_TRIPLEX, 1.6, ink, 3)
    for k, letter in enumerate("abcdefgh"):
        cv2.putText(drawn, letter, (88 + 75 * k, 695), cv2.FONT_HERSHEY_SIMPLEX, 0.8, 20, 2)
        cv2.putText(drawn, str(8 - k), (25, 108 + 75 * k), cv2.FONT_HERSHEY_SIMPLEX, 0.8, 20, 2)
    return drawn


def photographed(rng, drawn, far):
    """As a camera sees it: corners moved by up to so many pixels, blur, noise."""
    height, width = drawn.shape
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    moved = corners + rng.uniform(-far, far, (4, 2)).astype(np.float32)
    matrix = cv2.getPerspectiveTransform(corners, moved)
    view = cv2.warpPerspective(drawn, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)
    noisy = cv2.GaussianBlur(view, (0, 0), 0.7) + rng.normal(0, 2, view.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("far", [8, 60])
@pytest.mark.parametrize("draw", [qr_code, chess_diagram])
def test_things_of_one_make_are_not_one_thing(draw, far):
    rng = np.random.default_rng(7)
    things = [photographed(rng, draw(rng), far) for _ in range(4)]
    found = [mkdesc.match_images(a, b) for a, b in itertools.combinations(things, 2)]
    assert not any(one.verified for one in found)


@pytest.mark.parametrize("far", [8, 60])
@pytest.mark.parametrize("draw", [qr_code, chess_diagram])
def test_the_same_thing_is_found_again(draw, far):
    rng = np.random.default_rng(8)
    drawn = draw(rng)
    assert mkdesc.match_images(*(photographed(rng, drawn, far) for _ in range(2))).verified


def test_the_reason_says_so():
    rng = np.random.default_rng(7)
    codes = [photographed(rng, qr_code(rng), 8) for _ in range(2)]
    found = mkdesc.match_images(*codes)
    assert found.verdict == "ambiguous"
    assert "copies of one template" in found.reason or "repeated structure" in found.reason


def test_a_wide_search_does_not_believe_it_either():
    rng = np.random.default_rng(7)
    codes = [photographed(rng, qr_code(rng), 60) for _ in range(2)]
    found = mkdesc.match_images(*codes, wide=True, limit=1e-3)
    assert found.verdict == "ambiguous"


@pytest.fixture
def grid():
    """25 x 25 keypoints with random descriptors, and every fourth one matched with itself."""
    rng = np.random.default_rng(0)
    frames = np.zeros((625, 2, 3)) + 4 * np.eye(2, 3)
    frames[:, :, 2] = np.stack(np.meshgrid(np.arange(25), np.arange(25)), -1).reshape(-1, 2) * 20
    seen = plain_features(frames, rng.normal(size=(625, 32)))
    rows = np.repeat(np.arange(0, 625, 4)[:, None], 2, axis=1)
    return seen, FrameMatches.of(seen, seen, rows, np.zeros(len(rows), np.float32))


def test_it_is_the_share_of_what_was_exchanged(grid):
    seen, matches = grid
    rng = np.random.default_rng(1)
    for share in (0.0, 0.2, 0.5):
        other = seen.descriptors + rng.normal(0, 0.1, seen.descriptors.shape)
        lower = np.arange(625) >= 625 * (1 - share)
        changed = lower & (np.arange(625) % 4 > 0)
        other[changed] = rng.normal(size=(int(changed.sum()), 32))
        other[::4] = seen.descriptors[::4] + 0.1
        found = share_different((seen, seen._replace(descriptors=other)), matches)
        assert found == pytest.approx(share, abs=0.08)


def test_what_is_elsewhere_or_of_another_size_says_nothing(grid):
    seen, matches = grid
    rng = np.random.default_rng(1)
    other = rng.normal(size=(625, 32))
    other[::4] = seen.descriptors[::4] + 0.1
    between = np.arange(625) % 4 > 0
    for change in ("place", "size"):
        frames = seen.frames.copy()
        if change == "place":
            frames[between, :, 2] += 8
        else:
            frames[between, :, :2] *= 2
        there = plain_features(frames, other)
        agree = FrameMatches.of(seen, there, matches.pairs, matches.distances)
        assert share_different((seen, there), agree) == 0.0


def test_few_matches_and_few_keypoints_say_nothing(grid):
    seen, matches = grid
    for few in (matches.take(slice(0)), matches.take(slice(3)), matches.take(slice(10))):
        assert share_different((seen, seen), few) == 0.0

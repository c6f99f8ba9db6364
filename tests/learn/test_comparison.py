"""Features beside others on photographs: counted as OpenCV's matcher counts, and said plainly."""

import cv2
import numpy as np
import pytest

from mkdesc.features import Features
from mkdesc.learn.comparison import VIEWS, Comparison, Score, compare_features
from mkdesc.learn.ratio import match_view, random_view


def textured(rng, height=200, width=240):
    large = cv2.GaussianBlur(rng.random((height, width)), (0, 0), 2)
    return np.uint8(cv2.normalize(large, None, 0, 255, cv2.NORM_MINMAX))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for number in range(5):
        cv2.imwrite(str(folder / f"IMG_{number:04}.png"), textured(rng))
    return sorted(folder.iterdir())


def test_equal_features_are_equal_and_better_ones_better(photos):
    few, many = Features(30), Features(120)
    same = compare_features(many, many, photos[:1])
    assert same.mine == same.others
    assert (same.photos, same.views) == (1, VIEWS)
    found = compare_features(many, few, photos[:2])
    assert found.mine.right > 1.5 * found.others.right
    other_way = compare_features(few, many, photos[:2])
    assert (other_way.mine, other_way.others) == (found.others, found.mine)


def test_photographs_that_cannot_be_read_are_left_out(photos, tmp_path):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no photograph")
    features = Features(30)
    assert compare_features(features, features, [broken, photos[0]]).photos == 1
    with pytest.raises(ValueError, match="photos: none of 1 can be read"):
        compare_features(features, features, [broken])


def test_where_nothing_matches_nothing_is_better():
    assert Comparison(1, 12, Score(0, 0), Score(0, 0)).gain == 0


def test_bits_are_matched_as_opencv_does(rng):
    gray = textured(rng)
    features = Features(150, model="photo-bits", output="bits")
    found = match_view(features, gray, np.random.default_rng(3))
    view, homography = random_view(gray, np.random.default_rng(3))
    (a, here), (b, there) = features.extract(gray), features.extract(view)
    distances = np.array([[cv2.norm(x, y, cv2.NORM_HAMMING) for y in there] for x in here])
    rows = np.arange(len(here))
    mutual = np.flatnonzero(distances.argmin(axis=0)[distances.argmin(axis=1)] == rows)
    ends = cv2.perspectiveTransform(a.points[mutual, None, :2], homography)[:, 0]
    off = np.linalg.norm(ends - b.points[distances.argmin(axis=1)[mutual], :2], axis=1)
    assert len(found.right) == len(mutual)
    assert np.count_nonzero(found.right) == np.count_nonzero(off <= 3)


@pytest.mark.parametrize(
    ("right", "verdict"),
    [
        (120, "better than photo"),
        (100, "not better than photo: keep it"),
        (80, "worse than photo: keep it"),
    ],
)
def test_what_is_said(right, verdict):
    found = Comparison(5, 15, Score(right, 200), Score(100, 150))
    said = found.lines("photo", "keep it")
    assert said[0] == "on 15 views of 5 photographs that were held out:"
    assert said[1] == "  photo: 100 right matches, precision 0.667"
    assert said[2] == f"  yours: {right} right matches, precision {right / 200:.3f}"
    assert said[3:] == [verdict]
    few = Comparison(1, 12, Score(right, 200), Score(100, 150)).lines("photo", "keep it")
    assert "of so few photographs this says little" in few[-1]


def test_the_command_compares_on_photographs_that_it_did_not_learn_from(photos, run, tmp_path):
    out, folder = tmp_path / "m.safetensors", photos[0].parent
    words = ["learn", "photos", folder, "-o", out, "--like", "photo", "--keypoints", 40]
    ended = run(*words)
    assert ended.returncode == 0, ended.stderr
    assert "on 12 views of 1 photographs that were held out:" in ended.stdout
    assert "  photo: " in ended.stdout
    assert "worse than photo: keep photo, or learn from more photographs" in ended.stdout
    from mkdesc.models import read_card

    assert read_card(out).learned_from["held_out"] == ["IMG_0004.png"]
    assert read_card(out).learned_from["photographs"] == 4
    ended = run(*words, "--all", "--dims", 16)
    assert ended.returncode == 0, ended.stderr
    assert "held out:" in ended.stdout  # points
    assert "views" not in ended.stdout
    assert read_card(out).learned_from["photographs"] == 5

"""The compiled detector of blobs: held against the paper in numpy, and against OpenCV's SIFT."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial import cKDTree

from mkdesc.images.demo import photograph, warped
from mkdesc.images.detectors.dog import Dog
from mkdesc.images.detectors.dog_reference import LAYERS, find_blobs, orientations
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.opencv import BLOBS, Sift
from mkdesc.images.reading import read_gray

SHAPES = [(70, 90), (33, 121), (64, 20), (11, 13)]


def by_the_paper(gray, contrast=0.04, edge=10.0, sigma=1.6):
    """Keypoints with all their angles."""
    blobs, octaves = find_blobs(gray, contrast, edge, sigma)
    points, scores = [], []
    for blob in blobs:
        factor = 2.0 ** (blob.octave - 1)
        x, y = (blob.column + blob.to_column) * factor, (blob.row + blob.to_row) * factor
        size = sigma * 2 ** ((blob.layer + blob.to_layer) / LAYERS) * factor
        for _, angle in orientations(octaves[blob.octave], blob, sigma):
            points.append((x, y, size, angle))
            scores.append(blob.contrast)
    return Keypoints(np.array(points).reshape(-1, 4), scores)


def share_found(wanted, found, apart=0.3, scale=0.05, turn=3.0):
    """How many of the keypoints are among others, by place, sigma and angle."""
    tree = cKDTree(found.points[:, :2])
    right = 0
    for x, y, sigma, angle in wanted.points:
        near = found.points[tree.query_ball_point((x, y), apart)]
        alike = np.abs(near[:, 2] / sigma - 1) < scale
        turned = np.abs((near[:, 3] - angle + 180) % 360 - 180)
        right += bool((alike & (turned < turn)).any())
    return right / len(wanted)


def textured(shape, seed=0):
    """Blobs of several sizes, also at the border."""
    rng = np.random.default_rng(seed)
    least, most = (0, 0, -70, 1), (*shape, 70, 6)
    y, x, height, sigma = rng.uniform(least, most, (shape[0] * shape[1] // 60 + 3, 4)).T
    down, across = (
        np.exp(-((np.arange(side)[:, None] - middle) ** 2) / (2 * sigma**2))
        for side, middle in zip(shape, (y, x), strict=True)
    )
    image = 128 + height * down @ across.T
    return np.clip(image + rng.normal(0, 2, shape), 0, 255).astype(np.uint8)


def rows_of(found):
    return np.column_stack([found.points, found.scores]).tolist()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("settings", [{}, BLOBS, {"sigma": 1.2, "edge": 20.0}])
def test_as_in_the_paper(shape, settings):
    gray = textured(shape)
    expected = by_the_paper(gray, **settings)
    found = Dog(repeats=True, **settings).detect(gray)
    assert len(found) == pytest.approx(len(expected), abs=2 + len(expected) // 50)
    if len(expected):
        assert share_found(expected, found, 0.01, 0.002, 2) >= 0.97
        assert share_found(found, expected, 0.01, 0.002, 2) >= 0.97
    if min(shape) > 50:
        assert len(expected) > 20


@pytest.mark.parametrize("settings", [{}, BLOBS])
def test_as_opencv_on_the_demo_s_photographs(settings):
    for gray in (photograph(), warped(photograph())[0]):
        theirs = Sift(**settings).detect(gray)
        ours = Dog(repeats=True, **settings).detect(gray)
        assert len(ours) == pytest.approx(len(theirs), rel=0.05)
        assert share_found(theirs.strongest(2000), ours) >= 0.97
        assert share_found(ours.strongest(2000), theirs) >= 0.95


@pytest.mark.parametrize("name", ["lund_05", "sacrecoeur_03"])
def test_as_opencv_on_photographs(shared, name):
    gray = read_gray(shared / "data" / "photos" / f"{name}.jpg")
    assert share_found(Sift().detect(gray).strongest(2000), Dog(repeats=True).detect(gray)) >= 0.97


def test_one_keypoint_a_place():
    gray = textured((120, 160))
    every, ours = Dog(repeats=True).detect(gray), Dog().detect(gray)
    apart = cKDTree(ours.points[:, :2]).query(ours.points[:, :2], 2)[0][:, 1]
    assert apart.min() > 2 >= cKDTree(every.points[:, :2]).query(every.points[:, :2], 2)[0].min()
    assert share_found(ours, every, 1e-9, 1e-9, 1e-3) == 1
    distance, _ = cKDTree(ours.points[:, :2]).query(every.points[:, :2])
    assert distance.max() <= 2  # nothing is lost but neighbours


def test_the_strongest_are_kept():
    gray = textured((120, 160))
    for repeats in (False, True):
        every = Dog(repeats=repeats).detect(gray).strongest()
        some = Dog(20, repeats=repeats).detect(gray).strongest(20)
        assert rows_of(some) == rows_of(every)[:20]
    spread = Dog(20, spread=True).detect(gray)
    assert len(spread) == 20

    def apart(found):
        return cKDTree(found.points[:, :2]).query(found.points[:, :2], 2)[0][:, 1].min()

    assert apart(spread) > 2 * apart(Dog(20).detect(gray))


def test_upright_ones_have_no_angle():
    gray = textured((80, 90))
    upright, turned = Dog(upright=True).detect(gray), Dog().detect(gray)
    assert set(upright.points[:, 3]) == {0}
    np.testing.assert_array_equal(upright.points[:, :3], turned.points[:, :3])


@pytest.mark.parametrize("turns", [1, 2])
def test_a_turned_image_has_turned_keypoints(turns):
    gray = textured((121, 151))
    here = Dog(repeats=True).detect(gray)
    there = Dog(repeats=True).detect(np.ascontiguousarray(np.rot90(gray, turns)))
    x, y, sigma, angle = there.points.T
    if turns == 1:  # counterclockwise: what was at (x, y) is at (y, width - 1 - x)
        x, y = gray.shape[1] - 1 - y, x
    else:
        x, y = gray.shape[1] - 1 - x, gray.shape[0] - 1 - y
    back = Keypoints(np.column_stack([x, y, sigma, (angle + 90 * turns) % 360]), there.scores)
    inner = (np.abs(here.points[:, :2] - [75, 60]) < [55, 40]).all(axis=1)
    fine = here.points[:, 2] < 1.5 * 2  # coarser octaves take every second pixel, from one end
    assert share_found(here.take(inner & fine), back, 0.05, 0.05, 3) > 0.95


def test_a_mask_keeps_what_it_shows():
    gray = textured((120, 160))
    mask = np.zeros(gray.shape, np.uint8)
    mask[:, 40:90] = 255
    every, found = Dog(repeats=True).detect(gray), Dog(repeats=True).detect(gray, mask)
    x, y = (every.points[:, :2] + 0.5).astype(int).T
    shown = every.take(mask[y, x] > 0)
    assert 5 < len(shown) < len(every)
    assert rows_of(found.strongest()) == rows_of(shown.strongest())


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("shape", [(300, 90), (150, 1000)])
def test_threads_do_not_change_a_bit(shape, threads):
    gray = textured(shape)
    one, many = (Dog(n_threads=n, **BLOBS).detect(gray) for n in (1, threads))
    assert len(one) > 50
    assert rows_of(one) == rows_of(many)


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 50), (5, 3), (2, 2), (7, 400), (400, 7), (3, 1700), (16, 16)]
)
def test_any_size_will_do(shape):
    noise = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    for gray in (noise, np.full(shape, 7, np.uint8)):
        found = Dog(repeats=True, contrast=0.0).detect(gray)
        assert (found.points[:, :2] >= -0.5).all()
        assert (found.points[:, :2] <= np.array(shape[::-1]) - 0.5).all()
    assert len(Dog().detect(np.full(shape, 7, np.uint8))) == 0


def test_opencv_is_not_needed():
    code = (
        "import sys; sys.modules['cv2'] = None; import numpy as np, mkdesc;"
        "image = np.random.default_rng(0).integers(0, 256, (90, 80, 3), np.uint8);"
        "found, described = mkdesc.Features('dog', 9).extract(image);"
        "print(len(found), described.shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "9 (9, 128)\n", done.stderr


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"contrast": -1}, "contrast: expected a number >= 0 and <= 1, got -1"),
        ({"edge": 0.5}, "edge: expected"),
        ({"sigma": float("nan")}, "sigma: expected"),
        ({"sigma": "2"}, "sigma: expected .*, got '2'"),
        ({"max_keypoints": 0}, "max_keypoints: expected"),
        ({"n_threads": 0}, "n_threads: expected"),
    ],
)
def test_settings_that_cannot_be_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Dog(**settings)

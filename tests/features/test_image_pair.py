"""Two photographs in, matches out: plain, guided and from wide viewpoints."""

import csv
import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.images.demo import photograph
from mkdesc.images.drawing import LINES

CORNERS = np.array([[[0.0, 0], [399, 0], [399, 299], [0, 299]]])


def texture(seed, shape=(300, 400)):
    """Blobs of many sizes: something to find at every scale."""
    rng = np.random.default_rng(seed)
    total = np.zeros(shape, np.float32)
    for sigma in (1.5, 3, 6, 12):
        noise = cv2.GaussianBlur(rng.normal(size=shape).astype(np.float32), (0, 0), sigma)
        total += noise / noise.std()
    return cv2.normalize(total, None, 0, 255, 32).astype(np.uint8)


@pytest.fixture(scope="module")
def image():
    return texture(0)


@pytest.fixture(scope="module")
def features():
    return mkdesc.Features(800)


def moved(image, matrix):
    """Seen through a homography, without aliasing: four times as large, then reduced."""
    fine = np.diag([4.0, 4, 1])
    fine[:2, 2] = 1.5
    large = cv2.warpPerspective(image, fine @ matrix, (1600, 1200), flags=cv2.INTER_CUBIC)
    return cv2.resize(large, (400, 300), interpolation=cv2.INTER_AREA)


def corner_error(found, matrix):
    off = cv2.perspectiveTransform(CORNERS, found) - cv2.perspectiveTransform(CORNERS, matrix)
    return np.linalg.norm(off, axis=2).mean()


@pytest.fixture(scope="module")
def turned(image):
    matrix = np.vstack([cv2.getRotationMatrix2D((200, 150), 20, 0.9), [0, 0, 1]])
    return moved(image, matrix), matrix


@pytest.fixture(scope="module")
def slanted(image):
    """As seen from aside, by a tilt of five, along no axis of the image."""
    c, s = np.cos(0.6), np.sin(0.6)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    middle, back = np.eye(3), np.eye(3)
    middle[:2, 2], back[:2, 2] = (-200, -150), (200, 150)
    matrix = back @ turn.T @ np.diag([0.3, 1.5, 1]) @ turn @ middle
    return moved(image, matrix), matrix


def test_an_easy_pair(image, turned, features):
    found = mkdesc.match_images(image, turned[0], features)
    assert found.verified
    assert found.geometry == "homography"
    assert corner_error(found.matrix, turned[1]) < 1
    right = np.linalg.norm(
        cv2.perspectiveTransform(found.points_a[None], turned[1])[0] - found.points_b, axis=1
    )
    assert (right[found.inliers] < 3).mean() > 0.99
    assert np.median(right[found.inliers]) < 0.2
    assert found.inliers.sum() > 400
    for points, keypoints, rows in zip(
        (found.points_a, found.points_b),
        (found.keypoints_a, found.keypoints_b),
        found.pairs.T,
        strict=True,
    ):
        at = rows >= 0
        assert at.mean() > 0.5
        assert np.linalg.norm(keypoints[rows[at], :2] - points[at], axis=1).max() < 2.001
    assert set(found.timings) == {"read", "describe", "match", "grow"}
    assert f"{found.inliers.sum():,} of them verified" in repr(found)
    # The maps are those of the warp, and correlations high.
    np.testing.assert_allclose(
        np.median(found.affine[found.inliers], axis=0), turned[1][:2, :2], atol=0.01
    )
    assert np.median(found.correlation[found.inliers]) > 0.95


def test_what_is_not_grown_is_what_keypoints_say(image, turned, features):
    found = mkdesc.match_images(image, turned[0], features, grow=False)
    assert found.verified
    np.testing.assert_allclose(found.keypoints_a[found.pairs[:, 0], :2], found.points_a)
    np.testing.assert_allclose(found.keypoints_b[found.pairs[:, 1], :2], found.points_b)
    assert np.isnan(found.correlation).all()
    assert np.isfinite(found.distances).all()
    grown = mkdesc.match_images(image, turned[0], features)
    assert grown.inliers.sum() > 1.3 * found.inliers.sum()
    with pytest.raises(ValueError, match="wide: grows matches; expected grow=True"):
        mkdesc.match_images(image, turned[0], features, grow=False, wide=True)


def test_matches_are_the_same_bits_for_any_number_of_threads(image, turned):
    one, two = (
        mkdesc.match_images(image, turned[0], mkdesc.Features(400, n_threads=threads))
        for threads in (1, 3)
    )
    for name in ("points_a", "points_b", "affine", "correlation", "inliers", "matrix", "pairs"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name


def test_cameras_are_taken_whole(rng):
    """Two views of a relief through lenses that distort: the pose, and how certain it is."""
    camera = mkdesc.Camera("SIMPLE_RADIAL", 400, 300, (420, 190, 160, -0.2))
    found = mkdesc.match_images(*relief(camera), mkdesc.Features(800), cameras=(camera, camera))
    assert found.geometry == "essential"
    turn = np.degrees(np.linalg.norm(cv2.Rodrigues(found.rotation)[0]))
    moved = np.degrees(np.arccos(min(abs(found.translation[0]), 1.0)))
    deviations = np.sqrt(found.pose_covariance.diagonal())
    assert turn < 0.3
    assert moved < 2
    assert turn < 5 * np.linalg.norm(deviations[:3])
    other = mkdesc.Camera("PINHOLE", 300, 400, (1, 1, 1, 1))
    with pytest.raises(ValueError, match=r"cameras\[1\]: a camera of 300 x 400 pixels, but"):
        mkdesc.match_images(*relief(camera), cameras=(camera, other))


def relief(camera):
    """A textured relief at depths 4 to 6, seen by a camera that moves along x by 0.6."""
    image = texture(2)
    y, x = np.mgrid[:300, :400].astype(float)
    xy = np.column_stack([x.ravel(), y.ravel()])
    depth = 5 + np.sin(x.ravel() / 60) * np.cos(y.ravel() / 50)
    points = np.column_stack([camera.rays(xy), np.ones(len(xy))]) * depth[:, None]
    moved = points - [0.6, 0, 0]
    there = camera.project(moved[:, :2] / moved[:, 2:]).reshape(300, 400, 2)
    # The second photograph shows at `there` what the first one shows at (x, y): invert by steps.
    at = np.stack([x, y], -1).astype(np.float32)
    for _ in range(30):
        seen = cv2.remap(
            there.astype(np.float32),
            at[..., 0],
            at[..., 1],
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )
        at += (np.stack([x, y], -1) - seen).astype(np.float32)
    second = cv2.remap(image, at[..., 0], at[..., 1], cv2.INTER_CUBIC)
    return image, second


def test_the_same_as_by_hand(image, turned, features):
    """What the parts give one after the other."""
    found = mkdesc.match_images(image, turned[0], features, geometry="homography", grow=False)
    seen = [features.detectAndCompute(x) for x in (image, turned[0])]
    matches = mkdesc.match_descriptors(seen[0][1], seen[1][1], ratio=0.95)
    np.testing.assert_array_equal(found.pairs, matches.pairs)
    points = [np.array([k.pt for k in keypoints]) for keypoints, _ in seen]
    here, there = points[0][matches.pairs[:, 0]], points[1][matches.pairs[:, 1]]
    expected = mkdesc.verify_matches(here, there, "homography")
    np.testing.assert_array_equal(found.inliers, expected.inliers)


def test_an_easy_pair_needs_no_views(image, turned, features):
    found = mkdesc.match_images(image, turned[0], features, wide=True)
    assert "wide" not in found.timings
    assert len(found.keypoints_a) <= 800


def test_wide_finds_what_plain_cannot(image, slanted, features):
    plain = mkdesc.match_images(image, slanted[0], features)
    assert not plain.verified
    found = mkdesc.match_images(image, slanted[0], features, wide=True)
    assert found.geometry == "homography"
    assert corner_error(found.matrix, slanted[1]) < 5
    # Where the geometry is known there is far more to match, and it is right.
    here, there = found.points_a[found.inliers], found.points_b[found.inliers]
    assert len(here) > 400
    off = np.linalg.norm(cv2.perspectiveTransform(here[None], slanted[1])[0] - there, axis=1)
    assert (off < 3).mean() > 0.99
    back = mkdesc.match_images(slanted[0], image, features, wide=True)
    assert corner_error(np.linalg.inv(back.matrix), slanted[1]) < 5


def test_other_detectors_and_outputs_go_wide_too(image, slanted):
    features = mkdesc.Features("orb", 500, output="uint8")
    found = mkdesc.match_images(image, slanted[0], features, wide=True)
    assert corner_error(found.matrix, slanted[1]) < 5


def test_unrelated_pictures_are_refused(features):
    """However far it looks: all levels are tried, none believes."""
    found = mkdesc.match_images(texture(5), texture(6), features, wide=True)
    assert not found.verified
    assert found.inliers.sum() == 0
    assert found.matrix is None
    assert len(found.keypoints_a) > 5000  # it did look from aside


def test_a_search_that_takes_too_long_ends_and_says_so(features):
    told = []
    found = mkdesc.match_images(
        *(texture(5), texture(6), features),
        **{"wide": True, "limit": 1e-3, "progress": lambda *now: told.append(now)},
    )
    assert not found.verified
    assert found.reason == "not all views were tried: the time limit of 0.001 s was over"
    assert len(found.keypoints_a) < 5000  # those of unrelated pictures, with views, are more
    steps = list(dict.fromkeys(what for what, _, _ in told))
    assert steps[:2] == ["reading", "describing"]
    assert steps[2:4] == ["growing", "looking for shapes"]
    assert steps[-1] == "looking at views of tilt 3"
    assert all(done <= total for _, done, total in told)


def test_a_mirrored_photograph_is_not_verified():
    """No camera sees it, and no window fits it."""
    photo = photograph()
    found = mkdesc.match_images(photo, np.ascontiguousarray(photo[:, ::-1]))
    assert not found.verified


def test_nothing_to_see(features):
    blank = np.zeros((100, 100), np.uint8)
    for wide in (False, True):
        found = mkdesc.match_images(blank, blank, features, wide=wide)
        assert len(found) == 0
        assert not found.verified
        assert found.draw().shape[2] == 3


@pytest.mark.parametrize("options", [{"wide": True}, {"grow": False}])
def test_the_same_image_twice(image, options):
    """All distances are zero; few keypoints, so that a search from aside begins, too."""
    found = mkdesc.match_images(image, image.copy(), mkdesc.Features(50), **options)
    np.testing.assert_allclose(found.matrix / found.matrix[2, 2], np.eye(3), atol=1e-3)


@pytest.mark.parametrize("lengths", [500.0, ("a", "b"), (500, None, 500), (0, 500), (True, 500)])
def test_focal_lengths_that_are_none_are_refused(image, features, lengths):
    with pytest.raises(ValueError, match="focal_lengths: expected two"):
        mkdesc.match_images(image, image, features, focal_lengths=lengths)


@pytest.mark.parametrize("features", ["sift", 2000])
def test_features_that_are_none_are_refused(image, features):
    with pytest.raises(ValueError, match=r"features: expected mkdesc\.Features or None, got"):
        mkdesc.match_images(image, image, features)


def test_where_one_shows_nothing_no_views_are_tried(image, features):
    blank = np.full((300, 400), 128, np.uint8)
    found = mkdesc.match_images(image, blank, features, wide=True)
    assert not found.verified
    assert 0 < len(found.keypoints_a) < 5000  # those of unrelated pictures, with views, are more


def test_a_deep_scene_is_not_forced_onto_a_plane(shared):
    folder = shared / "data" / "multiview" / "fountain-P11" / "images"
    names = [folder / "0003.jpg", folder / "0004.jpg"]
    found = mkdesc.match_images(*names)
    assert found.geometry == "fundamental"
    posed = mkdesc.match_images(*names, focal_lengths=(1380, 1380))
    assert posed.geometry == "essential"
    assert posed.pose_covariance.shape == (6, 6)
    assert np.linalg.norm(posed.translation) == pytest.approx(1)


def test_graffiti_from_aside(shared):
    """graf 1 and 6, which SIFT cannot match: the homography of the sequence's authors."""
    folder = shared / "data" / "sequences" / "graf"
    found = mkdesc.match_images(
        folder / "1.png", folder / "6.png", wide=True, geometry="homography"
    )
    truth = np.loadtxt(folder / "H_1_6")
    corners = np.array([[[0.0, 0], [799, 0], [799, 639], [0, 639]]])
    off = cv2.perspectiveTransform(corners, found.matrix)
    off -= cv2.perspectiveTransform(corners, truth)
    assert np.linalg.norm(off, axis=2).mean() < 10
    assert found.inliers.sum() > 200


@pytest.fixture(scope="module")
def results(image, turned, features):
    return {
        True: mkdesc.match_images(image, turned[0], features),
        False: mkdesc.match_images(image, texture(9), features),
    }


@pytest.mark.parametrize("verified", [True, False])
def test_files_hold_what_was_found(results, verified, tmp_path):
    found = results[verified]
    assert found.verified == verified
    for ending in (".npz", ".csv", ".json", ".png", ".jpg", ".svg"):
        found.save(tmp_path / f"m{ending}")
    with np.load(tmp_path / "m.npz") as file:
        np.testing.assert_array_equal(file["points_a"], found.points_a)
        np.testing.assert_array_equal(file["inliers"], found.inliers)
        np.testing.assert_array_equal(file["keypoints_b"], found.keypoints_b)
        assert ("matrix" in file) == verified
        assert not verified or str(file["geometry"]) == "homography"
    with (tmp_path / "m.csv").open() as text:
        rows = list(csv.DictReader(text))
    assert len(rows) == len(found)
    first = rows[0]
    np.testing.assert_allclose(
        [float(first["x_a"]), float(first["y_a"]), float(first["x_b"]), float(first["y_b"])],
        [*found.points_a[0], *found.points_b[0]],
        atol=1e-3,
    )
    assert sum(int(row["inlier"]) for row in rows) == found.inliers.sum()
    data = json.loads((tmp_path / "m.json").read_text())
    assert data["verified"] == verified
    np.testing.assert_allclose(data["points_b"], found.points_b)
    shown = found.inliers.sum() if verified else len(found)
    lines = ET.parse(tmp_path / "m.svg").getroot().findall("{http://www.w3.org/2000/svg}line")
    assert len(lines) == min(shown, LINES)
    picture = cv2.imread(str(tmp_path / "m.png"))
    np.testing.assert_array_equal(picture, found.draw())


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("m.txt", ValueError, r"expected a name ending in \.png"),
        ("m", ValueError, "expected a name ending"),
        ("gone/m.png", FileNotFoundError, r"the folder .*gone does not exist"),
        (".", ValueError, "expected a name ending"),
    ],
)
def test_files_that_cannot_be(results, tmp_path, name, error, message):
    with pytest.raises(error, match=message):
        results[True].save(tmp_path / name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"geometry": "flat"}, "geometry: expected one of auto"),
        ({"threshold": 0}, "threshold: expected"),
        ({"threshold": "3"}, "threshold: expected .*, got '3'"),
        ({"threshold": None}, "threshold: expected .*, got None"),
        ({"ratio": 3}, "ratio: expected"),
        ({"ratio": "x"}, "ratio: expected .*, got 'x'"),
        ({"ratio": True}, "ratio: expected .*, got True"),
        ({"geometry": "essential"}, "cameras: expected two for an essential"),
        ({"focal_lengths": (0, 100)}, "focal_lengths: expected"),
        ({"focal_lengths": (1, 2, 3)}, "focal_lengths: expected"),
        ({"limit": 0}, "limit: expected seconds > 0, got 0"),
        ({"limit": "x"}, "limit: expected seconds > 0, got 'x'"),
        ({"grow": 3}, "grow: expected True, False or GrowOptions, got 3"),
        ({"belief": "all"}, "belief: expected one of strict, mapping, off, got 'all'"),
        ({"cameras": (np.eye(3),)}, "cameras: expected two"),
        ({"cameras": (np.eye(3), np.eye(2))}, r"cameras\[1\]: expected"),
        ({"cameras": (np.eye(3),) * 2, "focal_lengths": (5, 5)}, "cameras and focal_lengths"),
    ],
)
def test_what_is_wrong_is_named(image, options, message):
    with pytest.raises(ValueError, match=message):
        mkdesc.match_images(image, image, **options)


def test_missing_files_are_named_before_any_work(image, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"b: no such file: .*gone"):
        mkdesc.match_images(image, tmp_path / "gone.png")


def test_a_picture_of_an_unverified_pair_says_so(tmp_path, features):
    """In words, and in red: it does not look like success."""
    found = mkdesc.match_images(texture(3), texture(4), features)
    assert not found.verified
    assert len(found)
    found.save(tmp_path / "m.svg")
    drawn = (tmp_path / "m.svg").read_text()
    assert f">mkdesc: NOT VERIFIED: {found.reason} - {len(found)} tentative matches" in drawn
    assert drawn.count('fill="rgb(220,40,40)"') == drawn.count("<circle") == 2 * len(found)


def test_a_picture_is_in_colour_and_shows_the_rejected_in_red_on_request(tmp_path, features):
    names = [tmp_path / "a.png", tmp_path / "b.png"]
    for name, shift in zip(names, (0, 30), strict=True):
        blue = np.zeros((300, 360, 3), np.uint8)
        blue[..., 0] = texture(3)[:, shift : shift + 360]
        cv2.imwrite(str(name), blue)
    found = mkdesc.match_images(*names, features)
    bottom = found.draw()[-1]  # where no caption is
    assert (bottom[:, 0] > bottom[:, 2]).any()  # blue
    wrong = replace(found, inliers=np.arange(len(found)) % 4 > 0)
    for rejected, count in ((False, wrong.inliers.sum()), (True, len(found))):
        wrong.save(tmp_path / "m.svg", rejected=rejected)
        drawn = (tmp_path / "m.svg").read_text()
        assert drawn.count("<circle") == 2 * count
        assert ("rgb(220,40,40)" in drawn) == ("red: rejected" in drawn) == rejected
    inside = (found.points_a >= 99.5).all(axis=1) & (found.points_a < [199.5, 149.5]).all(axis=1)
    found.save(tmp_path / "m.svg", box=(100, 100, 200, 150))
    drawn = (tmp_path / "m.svg").read_text()
    assert drawn.count("<circle") == 2 * (inside & found.inliers).sum() > 0
    assert found.draw(box=(100, 100, 200, 150)).shape[1] == 1000 + 12 + 360
    with pytest.raises(ValueError, match="box: expected left < right <= 360 and top < "):
        found.draw(box=(100, 100, 400, 150))
    names[0].unlink()
    assert found.draw().shape[2] == 3  # gray, but there


def test_pictures_of_slivers_have_captions(tmp_path, features):
    sliver = np.zeros((300, 3), np.uint8)
    for shape in (sliver, sliver.T.copy(), sliver[:1, :1]):
        mkdesc.match_images(shape, shape, features).save(tmp_path / "m.png", overwrite=True)
        assert cv2.imread(str(tmp_path / "m.png")).shape[2] == 3


def test_grids_have_bounds(image, features):
    for grid in (1, 0, 2**70):
        with pytest.raises(ValueError, match="grid: expected an integer from 2 to 10000"):
            mkdesc.match_images(image, image, features, grid=grid)


def test_a_plane_of_a_deep_scene_can_be_asked_for(shared):
    """What is off the plane and agrees on depth does not speak against the plane."""
    folder = shared / "data" / "multiview" / "lund-door" / "images"
    found = mkdesc.match_images(
        folder / "DSC_0001.JPG", folder / "DSC_0003.JPG", geometry="homography", max_pixels=10**8
    )
    assert found.verified

"""Rows of grown matches: what a script of its own gets from OpenCV's keypoints and matcher."""

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.evaluation.photographs.base import Photograph, PhotographOptions
from mkdesc.evaluation.photographs.homography import run_homography
from mkdesc.evaluation.photographs.methods import get_method
from mkdesc.evaluation.photographs.pose import run_pose

FEW = PhotographOptions(keypoints=150)


def images_of(sequences, factor=1.0):
    images = {}
    for number in (1, 2, 3):
        image = cv2.imread(str(sequences / "wall" / f"{number}.png"), cv2.IMREAD_GRAYSCALE)
        size = [round(factor * side) for side in image.shape[::-1]]
        images[number] = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return images


def grown_by_hand(sequences):
    """Positions of the grown matches of photographs 1 and 2, with RootSIFT."""
    sift = cv2.SIFT_create(enable_precise_upscale=True)
    images, found = images_of(sequences), []
    for number in (1, 2):
        keypoints, rows = sift.detectAndCompute(images[number], None)
        order = np.argsort([-keypoint.response for keypoint in keypoints], kind="stable")[:150]
        points = [(*keypoints[i].pt, keypoints[i].size / 2, keypoints[i].angle) for i in order]
        found.append((np.array(points), np.sqrt(rows[order] / rows[order].sum(axis=1)[:, None])))
    (a, rows_a), (b, rows_b) = found
    matches = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(rows_a, rows_b)
    pairs = np.array([(match.queryIdx, match.trainIdx) for match in matches])
    grown = mkdesc.grow_matches(images[1], images[2], a, b, pairs)
    return grown.points_a, grown.points_b


def test_the_numbers_are_those_of_a_script(sequences, homographies):
    results = run_homography(sequences, ["rootsift", "rootsift+grow"], options=FEW)
    here, there = grown_by_hand(sequences)
    mapped = cv2.perspectiveTransform(here[:, None], homographies[2])[:, 0]
    errors = np.hypot(*(mapped - there).T)
    plain, grown = (one["pairs"]["wall 1-2"] for one in results.details.values())
    assert grown["matches"] == pytest.approx(len(errors), rel=0.03)  # equally strong keypoints
    assert grown["right"] == pytest.approx((errors <= 3).sum(), rel=0.03)
    assert grown["exact"] == pytest.approx((errors <= 1).sum(), rel=0.03)
    assert grown["distinct"] > 1.2 * plain["distinct"]
    assert grown["exact"] > 0.95 * grown["matches"]
    assert grown["repeatability"] == plain["repeatability"]  # of the same keypoints
    table = results.tables[0]
    rows = [dict(zip(table.columns, row.values, strict=True)) for row in table.rows]
    assert [row["within 1 px"] for row in rows] == [
        sum(scores["exact"] for scores in one["pairs"].values())
        for one in results.details.values()
    ]
    assert all(row["CPU ms/pair"] >= 0 for row in rows)


def test_reduced_photographs_are_grown_as_they_were_reduced(sequences):
    options = PhotographOptions(keypoints=150, max_size=200)
    results = run_homography(sequences, ["mkdesc", "mkdesc+grow"], options=options)
    plain, grown = (one["pairs"]["wall 1-2"] for one in results.details.values())
    assert grown["distinct"] > plain["distinct"]
    assert grown["exact"] > 0.9 * grown["matches"]
    assert grown["corner_error"] < 0.5


def test_poses_are_those_of_grown_matches(strecha):
    options = PhotographOptions(keypoints=400)
    results = run_pose(strecha, ["rootsift", "rootsift+grow"], options=options)
    plain, grown = (next(iter(one["pairs"].values())) for one in results.details.values())
    assert grown["right"] > 1.2 * plain["right"]
    assert grown["inliers"] > 1.2 * plain["inliers"]
    assert grown["error"] < 0.5


def test_features_are_kept_once_and_pictures_show_the_grown_matches(
    sequences, tmp_path, monkeypatch
):
    run = tmp_path / "run"
    run_homography(sequences, ["rootsift"], options=FEW, output=run)
    monkeypatch.setattr(cv2, "SIFT_create", None)  # what is known is not found again
    results = run_homography(sequences, ["rootsift+grow"], options=FEW, output=run)
    assert list(results.details) == ["rootsift", "rootsift+grow"]
    assert [folder.name for folder in (run / "cache").iterdir()] == ["rootsift"]
    page = (run / "report.html").read_text()
    for one in results.details.values():
        for scores in one["pairs"].values():
            assert f"{scores['matches']} matches" in page


@pytest.fixture
def turned(tmp_path):
    """A photograph, and itself turned by a quarter."""
    image = cv2.GaussianBlur(np.random.default_rng(0).normal(size=(160, 240)), (0, 0), 2)
    image = cv2.normalize(image, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
    cv2.imwrite(str(tmp_path / "1.png"), image)
    cv2.imwrite(str(tmp_path / "2.png"), cv2.rotate(image, cv2.ROTATE_90_CLOCKWISE))
    np.savetxt(tmp_path / "H_1_2", [[0, -1, 159], [1, 0, 0], [0, 0, 1]])
    return tmp_path


def test_angles_of_keypoints_say_how_surroundings_are_turned(turned, monkeypatch):
    (turned / "known.py").write_text(
        "import numpy as np\n"
        "def positions(gray, most):\n"
        "    points, rows = keypoints(gray, most)\n"
        "    return points[:, :2], rows\n"
        "def keypoints(gray, most):\n"
        "    x, y = np.random.default_rng(0).uniform(30, 130, (2, most))\n"
        "    if gray.shape[0] < gray.shape[1]:\n"
        "        points = x, y, np.ones(most), np.zeros(most)\n"
        "    else:\n"
        "        points = 159 - y, x, np.ones(most), np.full(most, 90)\n"
        "    return np.column_stack(points), np.eye(most, dtype=np.float32)\n"
    )
    monkeypatch.syspath_prepend(str(turned))
    options = PhotographOptions(keypoints=40)
    methods = ["known:keypoints", "known:keypoints+grow", "known:positions+grow"]
    results = run_homography(turned, methods, options=options)
    given, known, unknown = (next(iter(one["pairs"].values())) for one in results.details.values())
    assert given["matches"] == given["exact"] == 40
    assert known["exact"] > 30
    assert unknown["exact"] < 5


def test_methods_that_find_alike_share_their_features(sequences):
    method = get_method("orb+grow")
    assert (method.name, method.features, method.grows) == ("orb+grow", "orb", True)
    photograph = Photograph("a", cv2.imread(str(sequences / "wall" / "1.png"), 0))
    found, plain = (get_method(name).extract(photograph, 50) for name in ("orb+grow", "orb"))
    np.testing.assert_array_equal(found.keypoints, plain.keypoints)
    assert np.ptp(found.keypoints[:, 2]) > 1
    assert np.ptp(found.keypoints[:, 3]) > 90
    with pytest.raises(ValueError, match="no method 'nonsense'"):
        get_method("nonsense+grow")


def test_photographs_without_keypoints_have_no_grown_matches(tmp_path):
    for name in ("1.png", "2.png"):
        cv2.imwrite(str(tmp_path / name), np.full((60, 80), 90, np.uint8))
    np.savetxt(tmp_path / "H_1_2", np.eye(3))
    results = run_homography(tmp_path, ["rootsift+grow"], options=FEW)
    (scores,) = results.details["rootsift+grow"]["pairs"].values()
    assert (scores["matches"], scores["right"]) == (0, 0)

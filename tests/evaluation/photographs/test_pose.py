"""The pose benchmark on a small scene, in every layout, beside a script of its own."""

import cv2
import h5py
import numpy as np
import pytest

from mkdesc.datasets.poses import read_pose_pairs
from mkdesc.evaluation.photographs.base import PhotographOptions
from mkdesc.evaluation.photographs.pose import THRESHOLDS, run_pose
from mkdesc.geometry import Camera

MANY = PhotographOptions(keypoints=800)


def by_hand(pair):
    """Degrees by which OpenCV's SIFT, matcher and solver are off."""
    sift = cv2.SIFT_create(enable_precise_upscale=True)
    found = [
        sift.detectAndCompute(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE), None)
        for path in pair.images
    ]
    rows = [np.sqrt(one / one.sum(axis=1, keepdims=True)) for _, one in found]
    matches = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(*rows)
    a = np.array([found[0][0][match.queryIdx].pt for match in matches])
    b = np.array([found[1][0][match.trainIdx].pt for match in matches])
    matrix = pair.cameras[0].matrix
    essential, mask = cv2.findEssentialMat(
        a, b, matrix, method=cv2.USAC_MAGSAC, prob=0.9999, threshold=1.0
    )
    _, rotation, translation, _ = cv2.recoverPose(essential[:3], a, b, matrix, mask=mask)
    turn = np.linalg.norm(cv2.Rodrigues(rotation @ pair.rotation.T)[0])
    true = pair.translation / np.linalg.norm(pair.translation)
    aside = np.arccos(min(1, abs(true @ translation.ravel())))
    return np.degrees(max(turn, aside))


def test_the_pose_is_that_of_a_script(strecha):
    (pair,) = read_pose_pairs(strecha)
    results = run_pose(strecha, ["rootsift", "mkdesc"], options=MANY)
    expected = by_hand(pair)
    scores = results.details["rootsift"]["pairs"][pair.name]
    assert scores["error"] == pytest.approx(expected, abs=1)
    assert scores["error"] < 2
    assert scores["right"] >= scores["inliers"] * 0.9 > 50
    # One pair: the curve rises to 1 on a line and stays there.
    table = results.tables[0]
    row = dict(zip(table.columns, table.rows[0].values, strict=True))
    assert row["AUC 5 deg"] == pytest.approx(100 * (1 - scores["error"] / 2 / 5))


def test_cameras_follow_the_size_of_the_files(strecha):
    (pair,) = read_pose_pairs(strecha)
    expected = [[300, 0, 159.5], [0, 300, 119.5], [0, 0, 1]]
    np.testing.assert_allclose(pair.cameras[1].matrix, expected, atol=1e-9)
    centre = -pair.rotation.T @ pair.translation
    np.testing.assert_allclose(centre, [1.2, 0.1, 0.1])


def test_rays_undo_the_lens(strecha, tmp_path):
    pycolmap = pytest.importorskip("pycolmap")
    folder = _as_colmap(strecha, tmp_path, pycolmap, distortion=0.05)
    (pair,) = read_pose_pairs(folder)
    xy = np.array([[159.5, 119.5], [300.0, 200.0]])
    rays = pair.cameras[0].rays(xy)
    np.testing.assert_allclose(rays[0], 0, atol=1e-9)
    radius = np.linalg.norm(rays[1])
    bent = rays[1] * (1 + 0.05 * radius**2) * 300 + [159.5, 119.5]
    np.testing.assert_allclose(bent, xy[1], atol=1e-6)


def _as_colmap(strecha, folder, pycolmap, distortion):
    (pair,) = read_pose_pairs(strecha)
    (folder / "sparse").mkdir()
    (folder / "images").symlink_to(strecha / "images")
    (folder / "sparse" / "cameras.txt").write_text(
        f"1 SIMPLE_RADIAL 320 240 300 160 120 {distortion}\n"
    )
    lines = []
    poses = (np.eye(3), np.zeros(3)), (pair.rotation, pair.translation)
    for number, (rotation, translation) in enumerate(poses):
        x, y, z, w = pycolmap.Rotation3d(rotation).quat
        numbers = " ".join(map(str, (w, x, y, z, *translation)))
        lines.append(f"{number + 1} {numbers} 1 {number}.png\n\n")
    (folder / "sparse" / "images.txt").write_text("".join(lines))
    (folder / "sparse" / "points3D.txt").write_text("")
    return folder


def _as_imc(strecha, folder):
    (pair,) = read_pose_pairs(strecha)
    for name in ("images", "calibration", "new-vis-pairs"):
        (folder / name).mkdir()
    poses = (np.eye(3), np.zeros(3)), (pair.rotation, pair.translation)
    for number, (rotation, translation) in enumerate(poses):
        image = cv2.imread(str(pair.images[number]))
        cv2.imwrite(str(folder / "images" / f"{number}.jpg"), image)
        with h5py.File(folder / "calibration" / f"calibration_{number}.h5", "w") as file:
            file["K"], file["R"] = pair.cameras[number].matrix, rotation
            file["T"] = translation
    np.save(folder / "new-vis-pairs" / "keys-th-0.1.npy", np.array(["0-1"]))
    return folder


def _as_list(strecha, folder, words):
    (pair,) = read_pose_pairs(strecha)
    (folder / "images").symlink_to(strecha / "images")
    matrices = np.concatenate([camera.matrix.ravel() for camera in pair.cameras])
    pose = np.column_stack([pair.rotation, pair.translation])
    if words == 38:
        numbers = [0, 0, *matrices, *np.vstack([pose, [0, 0, 0, 1]]).ravel()]
    else:
        numbers = [*matrices, *pair.rotation.ravel(), *pair.translation]
    file = folder / "pairs.txt"
    file.write_text(f"0.png 1.png {' '.join(map(str, numbers))}\n\n")
    return file


@pytest.mark.parametrize("layout", ["colmap", "imc", "38", "32"])
def test_every_layout_holds_the_same_pair(strecha, tmp_path, layout):
    if layout == "colmap":
        place = _as_colmap(strecha, tmp_path, pytest.importorskip("pycolmap"), 0.0)
    elif layout == "imc":
        place = _as_imc(strecha, tmp_path)
    else:
        place = _as_list(strecha, tmp_path, int(layout))
    (expected,), (pair,) = read_pose_pairs(strecha), read_pose_pairs(place)
    np.testing.assert_allclose(pair.rotation, expected.rotation, atol=1e-9)
    np.testing.assert_allclose(pair.translation, expected.translation, atol=1e-9)
    xy = np.array([[10.0, 20], [300, 100]])
    for one, other in zip(pair.cameras, expected.cameras, strict=True):
        np.testing.assert_allclose(one.rays(xy), other.rays(xy), atol=1e-9)


def test_views_that_differ_too_much_are_left_out(strecha):
    with pytest.raises(ValueError, match="within 10 degrees"):
        read_pose_pairs(strecha, max_angle=10)


def test_thresholds_are_chosen_on_pairs_that_are_not_reported(strecha, tmp_path):
    file = _as_list(strecha, tmp_path, 32)
    line = file.read_text()
    swapped = read_pose_pairs(strecha)[0]
    back = swapped.rotation.T, -swapped.rotation.T @ swapped.translation
    matrix = " ".join(map(str, swapped.cameras[0].matrix.ravel()))
    numbers = " ".join(map(str, np.concatenate([np.ravel(one) for one in back])))
    file.write_text(line.strip() + f"\n1.png 0.png {matrix} {matrix} {numbers}\n")
    run = tmp_path / "run"
    results = run_pose(file, ["rootsift"], options=MANY, threshold="auto", output=run)
    (name,) = results.details["rootsift"]["pairs"]
    assert "1 pairs; thresholds chosen on 1 others" in results.tables[0].title
    # Every threshold on the other pair, by hand: the chosen one is the best there.
    other = {"pairs 0-1": "pairs 1-0", "pairs 1-0": "pairs 0-1"}[name]
    errors = {
        tried: run_pose(file, ["rootsift"], options=MANY, threshold=tried).details["rootsift"][
            "pairs"
        ][other]["error"]
        for tried in THRESHOLDS
    }
    chosen = results.details["rootsift"]["threshold"]
    assert errors[chosen] == min(errors.values())
    # The order of the list does not matter.
    file.write_text("\n".join(reversed(file.read_text().splitlines())))
    again = run_pose(file, ["rootsift"], options=MANY, threshold="auto")
    assert list(again.details["rootsift"]["pairs"]) == [name]
    with pytest.raises(ValueError, match="'auto' needs two pairs"):
        run_pose(strecha, ["rootsift"], options=MANY, threshold="auto")
    for wrong in ("best", 0, float("nan"), None):
        with pytest.raises(ValueError, match="expected a finite number > 0 or 'auto'"):
            run_pose(file, ["rootsift"], threshold=wrong)


def test_pictures_of_photographs_that_share_their_names(strecha, tmp_path):
    """Also where those of the pairs that are reported do not."""
    words = _as_list(strecha, tmp_path, 32).read_text().split()[2:]
    lines = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").symlink_to(strecha / "images")
        lines.append(" ".join([f"{name}/x/0.png", f"{name}/x/1.png", *words]))
    file = tmp_path / "both.txt"
    file.write_text("\n".join(lines))
    run = tmp_path / "run"
    results = run_pose(file, ["orb"], options=MANY, threshold="auto", output=run)
    assert len(results.details["orb"]["pairs"]) == 1
    assert (run / "report.html").read_text().count("data:image/jpeg") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b c\n", "line 1: expected 38 words"),
        (" ".join(["0.png", "1.png", *["x"] * 30]), "finite numbers"),
        (" ".join(["0.png", "1.png", "1", "0", *["1"] * 34]), "rotated images are not supported"),
        (" ".join(["9.png", "1.png", *["1"] * 30]), "no such file"),
    ],
)
def test_bad_lists_are_named(tmp_path, text, message):
    file = tmp_path / "pairs.txt"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_pose_pairs(file)


def test_a_place_without_truth_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no such file or folder"):
        read_pose_pairs(tmp_path / "nothing")
    with pytest.raises(ValueError, match="no COLMAP model"):
        read_pose_pairs(tmp_path)


def test_a_camera_without_a_lens_is_its_matrix():
    matrix = np.array([[50.0, 0, 10], [0, 40, 20], [0, 0, 1]])
    np.testing.assert_allclose(Camera.from_matrix(matrix).rays(np.array([[60.0, 60]])), [[1, 1]])


@pytest.mark.parametrize("layout", ["imc", "32"])
def test_one_command_gives_a_table_and_a_page(strecha, tmp_path, run, layout):
    """As docs/photographs.md has it for IMC and MegaDepth-1500, on a folder of their layout."""
    scene = tmp_path / "scene"
    scene.mkdir()
    place = _as_imc(strecha, scene) if layout == "imc" else _as_list(strecha, scene, 32)
    out = tmp_path / "run"
    ended = run("evaluate", "pose", place, "--keypoints", 300, "-m", "rootsift,mkdesc", "-o", out)
    assert ended.returncode == 0, ended.stderr
    assert "AUC 5 deg" in ended.stdout
    page = (out / "report.html").read_text()
    assert page.count("data:image/jpeg") == 2  # one pair, two methods
    assert (out / "pairs.csv").read_text().count("\n") == 3
    ended = run("evaluate", "pose", place, "-m", "rootsift", "--threshold", "best")
    assert ended.returncode == 2
    assert "--threshold: expected a number or auto, got 'best'" in ended.stderr

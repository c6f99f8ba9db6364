"""The homography benchmark on a small sequence, beside a script of its own."""

import json

import cv2
import h5py
import numpy as np
import pytest

import mkdesc
from mkdesc.evaluation.photographs.base import Photograph, PhotographOptions
from mkdesc.evaluation.photographs.extracting import Extraction, known_method
from mkdesc.evaluation.photographs.homography import run_homography
from mkdesc.evaluation.photographs.methods import get_method
from mkdesc.models.files import bundled_file

FEW = PhotographOptions(keypoints=150)


def by_hand(sequences, homographies):
    """Right and all mutual matches of RootSIFT, with OpenCV's own matcher."""
    sift = cv2.SIFT_create(enable_precise_upscale=True)
    found = {}
    for number in (1, *homographies):
        image = cv2.imread(str(sequences / "wall" / f"{number}.png"), cv2.IMREAD_GRAYSCALE)
        keypoints, rows = sift.detectAndCompute(image, None)
        order = np.argsort([-keypoint.response for keypoint in keypoints], kind="stable")[:150]
        rows = np.sqrt(rows[order] / rows[order].sum(axis=1, keepdims=True))
        found[number] = np.array([keypoints[i].pt for i in order]), rows
    counts = {}
    for number, matrix in homographies.items():
        (a, rows_a), (b, rows_b) = found[1], found[number]
        matches = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(rows_a, rows_b)
        here = np.array([a[match.queryIdx] for match in matches])
        there = np.array([b[match.trainIdx] for match in matches])
        mapped = cv2.perspectiveTransform(here[:, None], matrix)[:, 0]
        counts[f"wall 1-{number}"] = int((np.hypot(*(mapped - there).T) <= 3).sum()), len(matches)
    return counts


def test_the_numbers_are_those_of_a_script(sequences, homographies):
    results = run_homography(sequences, ["rootsift"], options=FEW)
    pairs = results.details["rootsift"]["pairs"]
    expected = by_hand(sequences, homographies)
    assert pairs.keys() == expected.keys()
    for name, (right, matches) in expected.items():
        assert abs(pairs[name]["right"] - right) <= 1  # equally strong keypoints
        assert abs(pairs[name]["matches"] - matches) <= 2


def test_methods_are_compared_and_solved(sequences):
    results = run_homography(sequences, ["rootsift", "mkdesc", "orb"], options=FEW)
    table = results.tables[0]
    rows = {row.name: dict(zip(table.columns, row.values, strict=True)) for row in table.rows}
    assert list(rows) == ["rootsift", "mkdesc", "orb"]
    assert rows["rootsift"]["times the first"] == 1
    for row in rows.values():
        assert row["solved"] == "2 of 2"
        assert 0 < row["precision"] <= 1
        assert row["keypoints"] <= 150
        assert row["CPU s/MP"] > 0
    assert len(results.plots[0].panels[""]["orb"]["x"]) == 10


def test_a_cache_that_was_made_again_is_read_again(tmp_path):
    """In one process, after somebody has removed a run and begun it anew."""
    extraction = Extraction(tmp_path, FEW)
    file = extraction.file("mkdesc", "a")
    file.parent.mkdir()
    for count in (3, 5):
        rows = {"keypoints": np.zeros((count, 4)), "descriptors": np.zeros((count, 4))}
        np.savez(file, **rows, seconds=1.0, shape=[30, 40], scale=[1.0, 1.0])
        assert len(extraction.load("mkdesc", "a").xy) == count


def test_a_model_that_was_replaced_is_read_again(tmp_path):
    """In one process, too, under the same name."""
    model = tmp_path / "m.safetensors"
    photograph = Photograph(
        "noise", np.random.default_rng(0).integers(0, 256, (90, 120), np.uint8)
    )
    for name in ("paper-64", "photo"):
        model.write_bytes(bundled_file(name).read_bytes())
        found = known_method(f"sift+{model}").extract(photograph, 20)
        expected = get_method(f"sift+{name}").extract(photograph, 20)
        np.testing.assert_array_equal(found.descriptors, expected.descriptors)


def test_reduced_photographs_are_scored_in_their_own_pixels(sequences):
    options = PhotographOptions(keypoints=150, max_size=200)
    results = run_homography(sequences, ["sift+photo"], options=options)
    scores = results.details["sift+photo"]["pairs"]["wall 1-2"]
    assert scores["right"] > 0.5 * scores["matches"] > 20
    assert scores["corner_error"] < 2


def test_a_run_goes_on_from_its_cache_and_grows(sequences, tmp_path, monkeypatch):
    run = tmp_path / "run"
    first = run_homography(sequences, ["rootsift"], options=FEW, output=run)
    monkeypatch.setattr(cv2, "SIFT_create", None)  # what is known is not found again
    results = run_homography(sequences, ["orb"], options=FEW, output=run)
    assert list(results.details) == ["rootsift", "orb"]
    known = results.details["rootsift"]["pairs"]
    assert known == first.details["rootsift"]["pairs"]
    saved = json.loads((run / "results.json").read_text())
    assert saved["details"]["rootsift"]["pairs"]["wall 1-2"] == known["wall 1-2"]
    with pytest.raises(ValueError, match="keypoints"):
        run_homography(sequences, ["orb"], options=PhotographOptions(keypoints=99), output=run)


def test_a_damaged_cache_is_made_again(sequences, tmp_path):
    run = tmp_path / "run"
    before = run_homography(sequences, ["orb"], options=FEW, output=run)
    for file in run.rglob("*.npz"):
        file.write_bytes(file.read_bytes()[:100])
    after = run_homography(sequences, ["orb"], options=FEW, output=run)
    assert after.details["orb"]["pairs"] == before.details["orb"]["pairs"]


def test_stored_features_score_as_those_they_were_stored_from(sequences, tmp_path):
    features = mkdesc.Features("sift", 150)
    file = tmp_path / "features.h5"
    with h5py.File(file, "w") as out:
        for path in sorted(sequences.glob("wall/*.png")):
            image = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
            keypoints, descriptors = features.extract(image)
            group = out.create_group(f"wall/{path.name}")
            group["keypoints"] = keypoints.points[:, :2]
            group["scores"] = keypoints.scores
            group["descriptors"] = descriptors.T
    name = f"hloc:{file}"
    results = run_homography(sequences, [name, "sift"], options=FEW)
    stored, direct = (results.details[one]["pairs"]["wall 1-3"] for one in (name, "sift"))
    assert stored == direct


def test_any_function_is_a_method(sequences, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def corners(gray, most):\n"
        "    y, x = np.mgrid[20:200:20, 20:280:20]\n"
        "    xy = np.column_stack([x.ravel(), y.ravel()])[:most]\n"
        "    rows = [gray[v - 8:v + 8, u - 8:u + 8].ravel() for u, v in xy]\n"
        "    return xy, np.array(rows, np.float32)\n"
        "def bad(gray, most):\n"
        "    return [1, 2, 3]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    results = run_homography(sequences, ["mine:corners"], options=FEW)
    assert results.details["mine:corners"]["pairs"]["wall 1-2"]["matches"] > 0
    with pytest.raises(ValueError, match="positions and descriptors"):
        run_homography(sequences, ["mine:bad"], options=FEW)
    with pytest.raises(ValueError, match="MODULE:FUNCTION"):
        get_method("mine:nothing")


def test_oxford_names_are_read_too(sequences, tmp_path):
    folder = tmp_path / "graf"
    folder.mkdir()
    for number in (1, 2):
        image = cv2.imread(str(sequences / "wall" / f"{number}.png"))
        cv2.imwrite(str(folder / f"img{number}.ppm"), image)
    (folder / "H1to2p").write_text((sequences / "wall" / "H_1_2").read_text())
    results = run_homography(folder, ["orb"], options=FEW)
    assert list(results.details["orb"]["pairs"]) == ["graf img1-img2"]


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ([], "at least one"),
        (["orb", "orb"], "different"),
        (["nonsense"], "no method 'nonsense'"),
        (["sift+orb"], "one detector"),
        (["aliked:missing.safetensors"], "no such file"),
    ],
)
def test_nonsense_is_refused(sequences, methods, message):
    with pytest.raises(ValueError, match=message):
        run_homography(sequences, methods)


def test_bad_sequences_are_named(tmp_path):
    with pytest.raises(ValueError, match="no sequences"):
        run_homography(tmp_path, ["orb"])
    (tmp_path / "H_1_2").write_text("1 0 0\n0 1 0\n")
    with pytest.raises(ValueError, match="no image 1"):
        run_homography(tmp_path, ["orb"])
    for name in ("1.png", "2.png"):
        cv2.imwrite(str(tmp_path / name), np.zeros((20, 20), np.uint8))
    with pytest.raises(ValueError, match="H_1_2: expected 3 x 3 numbers, got 6"):
        run_homography(tmp_path, ["orb"])


@pytest.mark.parametrize("network", ["aliked-n16", "aliked-n16rot", "xfeat"])
def test_networks_of_kornia_run_with_weights_of_a_file(shared, sequences, network):
    weights = shared / "peers" / f"{network}.safetensors"
    name = f"{network.partition('-')[0]}:{weights}"
    results = run_homography(sequences, [name], options=FEW)
    scores = results.details[name]["pairs"]["wall 1-2"]
    assert scores["right"] > 0.6 * scores["matches"] > 30


def test_weights_of_something_else_are_refused(shared):
    weights = shared / "peers" / "xfeat.safetensors"
    with pytest.raises(ValueError, match="not weights of this network"):
        get_method(f"aliked:{weights}")

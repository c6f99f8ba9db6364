"""Commands with ``--device``: PyTorch does what compiled code does, and both find the same."""

import cv2
import numpy as np
import pytest

from mkdesc.features.image_features import load_features

torch = pytest.importorskip("torch")

#: PyTorch's name for a CPU; ``cpu`` alone stands for compiled code.
DEVICE = "cuda" if torch.cuda.is_available() else "cpu:0"


@pytest.fixture
def folder(tmp_path):
    """Two photographs of one scene, and one of another."""
    rng = np.random.default_rng(0)
    (tmp_path / "in").mkdir()
    for name in "ac":
        noise = cv2.GaussianBlur(rng.integers(0, 256, (120, 160), np.uint8), (0, 0), 2)
        cv2.imwrite(str(tmp_path / f"in/{name}.png"), cv2.normalize(noise, None, 0, 255, 32))
    turn = cv2.getRotationMatrix2D((80, 60), 15, 1)
    turned = cv2.warpAffine(cv2.imread(str(tmp_path / "in/a.png")), turn, (160, 120))
    cv2.imwrite(str(tmp_path / "in/b.png"), turned)
    return tmp_path


def test_features_and_pairs(folder, run):
    for output, device in (("one", DEVICE), ("other", "cpu")):
        done = run(
            "features", "in", "-o", output, "--keypoints", 80, "--device", device, cwd=folder
        )
        assert done.returncode == 0, done.stderr
    for name in ("a.png", "b.png", "c.png"):
        one, other = (load_features(folder / output, name) for output in ("one", "other"))
        assert len(one.keypoints) == len(other.keypoints) == 80
        away = np.linalg.norm(one.keypoints[:, None, :2] - other.keypoints[None, :, :2], axis=2)
        assert (away.min(1) < 0.1).mean() >= 0.97
    done = run("pairs", "in", "-o", "pairs.txt", "--verify", "--device", DEVICE, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "pairs.txt").read_text().splitlines() == ["a.png b.png"]
    done = run("features", "in", "-o", "third", "--device", "nowhere", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --device: expected cpu, cuda")
    assert not (folder / "third").exists()


def test_reconstructions_match_there(folder, run):
    pycolmap = pytest.importorskip("pycolmap")
    numbers = []
    for output, device in (("one", DEVICE), ("other", "cpu")):
        how = ("--stop-after", "matches", "--keypoints", 200, "--device", device)
        done = run("sfm", "in", "-o", output, *how, cwd=folder)
        assert done.returncode == 0, done.stderr
        with pycolmap.Database.open(folder / output / "database.db") as file:
            ids = {image.name: image.image_id for image in file.read_all_images()}
            numbers.append(len(file.read_matches(ids["a.png"], ids["b.png"])))
    assert numbers[1] > 50
    assert numbers[0] == pytest.approx(numbers[1], abs=3)

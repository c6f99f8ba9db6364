"""What README, the guides and ``--help`` show runs as it is typed: with the defaults.

Most blocks of the documents are run by ``test_documents.py``. Here are those that need data which
readers bring themselves, on small inputs, and what an installation with one extra can do. Not
here, because other tests run the same: ``demo``, ``match``, ``describe``, ``inspect`` and ``learn
photos --like`` (the documents), ``figures`` (``cli/test_visual.py``), ``explore``
(``cli/test_explore.py``), ``index``, ``find``, ``groups`` and ``pairs``
(``cli/test_collections.py``), ``export onnx`` (``compute/torch/test_export.py``), ``learn
descriptor`` and ``learn keypoints`` (``learn``; their defaults take minutes).
"""

import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import cv2
import numpy as np
import pytest
from kill.inputs import make_inputs
from layouts import draw_pairs, write_subset

from mkdesc.datasets.phototourism.layout import Interest
from mkdesc.evaluation.contenders.registry import default_descriptors
from mkdesc.images.demo import write_demo

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Modules of the packages whose names are others.
MODULES = {"opencv-python-headless": "cv2", "dask[distributed]": "dask"}


@pytest.fixture
def typed(run, tmp_path, monkeypatch):
    """Runs a command as it is typed, in a folder of its own; what it prints."""
    monkeypatch.chdir(tmp_path)

    def call(command):
        done = run(*shlex.split(command))
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    return call


def write_sequences(rng, *names):
    """Sequences of one photograph each, six times with more noise, in the layout of HPatches."""
    for name in names:
        Path(name).mkdir()
        coarse = cv2.GaussianBlur(rng.random((140, 140)), (0, 0), 2)
        image = cv2.normalize(coarse, None, 20, 235, cv2.NORM_MINMAX)
        for k in range(1, 7):
            noisy = image + 2 * k * rng.standard_normal(image.shape)
            cv2.imwrite(f"{name}/{k}.png", noisy.clip(0, 255).astype(np.uint8))
            np.savetxt(f"{name}/H_1_{k}", np.eye(3))


def write_subsets(rng, *names):
    """Phototourism subsets of 60 points, two patches of each, in two photographs."""
    for name in names:
        points = np.repeat(rng.integers(0, 256, (60, 64, 64)), 2, axis=0)
        patches = (points + 30 * rng.standard_normal(points.shape)).clip(0, 255).astype(np.uint8)
        labels, zeros = np.repeat(np.arange(60), 2), np.zeros(120)
        interest = Interest(np.tile([0, 1], 60), zeros, zeros, zeros, zeros)
        pairs = {100: draw_pairs(labels, 100)}
        Path(name).parent.mkdir(exist_ok=True)
        write_subset(name, patches, labels, interest, pairs)


def test_hpatches(typed, rng):
    write_sequences(rng, "a", "b", "c")
    assert "3 sequences made" in typed("make-hpatches a b c -o strips --max-patches 40")
    typed("evaluate hpatches strips -o run")
    table = Path("run/table.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in table for name in default_descriptors())
    Path("strips/splits.json").write_text('{"a": {"test": ["a", "b"], "train": ["c"]}}')
    assert "(paper 88.64)" in typed("evaluate hpatches strips --split a --table 2")
    write_subsets(rng, "liberty")
    assert "PCW*, ours" in typed("evaluate hpatches strips --split a --table 4 --train-on liberty")
    typed("export hpatches-csv strips -o csv")
    typed("learn hpatches strips -o mine.safetensors")
    typed("evaluate hpatches strips -o mine -d mine.safetensors")
    assert "run: extended" in typed("compare run mine")


def test_phototourism(typed, rng):
    write_subsets(rng, "sets/liberty", "sets/yosemite")
    assert "mkd-raw+lw" in typed("evaluate phototourism sets -o run")
    assert "mkd-raw+lw" in typed("evaluate phototourism sets --protocol revisited")
    typed("learn phototourism sets/liberty -o mine.safetensors")


def test_speed_of_all_that_is_measured_by_default(typed):
    printed = typed("evaluate speed --count 64 --rounds 2")
    assert all(f"{name} " in printed for name in default_descriptors())


def test_photographs_with_known_geometry(typed):
    make_inputs(Path("data"))
    assert "mkdesc" in typed("evaluate homography data/sequences -o planes")
    assert "mkdesc" in typed("evaluate pose data/posed -o poses")
    typed("learn patches data/train.npz -o patches.safetensors")
    typed("learn photos data/photos -o photos.safetensors")


@pytest.mark.long
def test_reconstruction(typed):
    pytest.importorskip("pycolmap")
    write_demo(Path("demo"))
    Path("images").mkdir()
    for file in sorted(Path("demo/views").iterdir())[:4]:
        half = cv2.resize(cv2.imread(str(file)), None, fx=0.5, fy=0.5, interpolation=3)
        cv2.imwrite(f"images/{file.name}", half)
    assert "4 of 4" in typed("sfm images/ -o model/")
    typed("learn colmap model/sparse/0 images -o mine.safetensors")
    typed("learn ratio photo images")


#: What works with one extra and nothing else that is optional, in a folder with photographs.
ALONE = {
    "": ["index photos -o index", "pairs photos -o pairs.txt", "describe patches.npy -o d.npy"],
    "images": ["match photos/0.png photos/1.png -o matches.jpg", "learn ratio photo photos"],
    "hloc": ["features photos -o features.h5 --format hloc"],
    "explore": ["explore --export kernels.html"],
    "images,colmap": ["sfm photos -o model --stop-after matches"],
    "images,plots": ["inspect a.png b.png -o why.png"],
}
HIDE = "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(',')));"
MAIN = "from mkdesc.cli import main; main()"


def modules_of(extras):
    """What comes with some extras, by the names that Python imports."""
    wanted = [one for extra in extras for one in PROJECT["optional-dependencies"][extra]]
    names = {one.partition(">")[0].partition("=")[0].partition(";")[0] for one in wanted}
    return {MODULES.get(name, name).replace("-", "_") for name in names}


@pytest.mark.parametrize("extras", ALONE)
def test_what_an_extra_brings_is_enough(extras, tmp_path, rng):
    every = modules_of(PROJECT["optional-dependencies"])
    chosen = modules_of(filter(None, extras.split(",")))
    for module in chosen:
        pytest.importorskip(module)
    write_demo(tmp_path / "demo")
    (tmp_path / "photos").mkdir()
    for name in ("0.png", "1.png"):
        shutil.copy(tmp_path / "demo" / "views" / name, tmp_path / "photos")
    np.save(tmp_path / "patches.npy", rng.integers(0, 256, (50, 64, 64), np.uint8))
    for name in "ab":
        cv2.imwrite(str(tmp_path / f"{name}.png"), rng.integers(0, 256, (64, 64), np.uint8))
    for command in ALONE[extras]:
        words = [sys.executable, "-c", HIDE + MAIN, ",".join(every - chosen), *command.split()]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stderr)

"""The whole benchmark on small subsets: curves, what a run remembers, published numbers."""

import shutil

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from mkdesc.datasets.phototourism.layout import Subset
from mkdesc.evaluation.phototourism.benchmark import run_phototourism


def corner(patches):
    return patches[:, :32, :32].reshape(len(patches), 4, -1).mean(axis=2)


def test_the_plotted_curve_is_that_of_the_pairs(subsets_root):
    bars, roc = run_phototourism(subsets_root, [corner], subsets=["fox"]).plots
    curve = roc.panels["fox"]["corner"]
    subset = Subset(subsets_root / "fox")
    pairs = subset.pairs()
    rows = np.concatenate([corner(patches) for _, patches in subset.blocks()])
    distance = np.linalg.norm(rows[pairs.first] - rows[pairs.second], axis=1)
    area = np.trapezoid(curve["y"], curve["x"])
    assert area == pytest.approx(roc_auc_score(pairs.matching, -distance), abs=5e-3)
    assert list(bars.panels[""]["corner"]) == ["fox"]


@pytest.mark.parametrize("changed", ["info.txt", "patches0000.bmp"])
def test_other_patches_and_other_points_are_noticed(tmp_path, subsets_root, changed):
    shutil.copytree(subsets_root / "door", tmp_path / "sets" / "door")

    def measure():
        return run_phototourism(tmp_path / "sets", ["mkd-raw"], output=tmp_path / "run")

    assert measure() == measure()
    file = tmp_path / "sets" / "door" / changed
    shutil.copy(subsets_root / "fox" / changed, file)
    if changed == "info.txt":
        file.write_text("0 0\n" * 600)
    with pytest.raises(ValueError, match=r"inputs have changed \(.*door"):
        measure()


def test_no_published_mean_of_some_of_the_columns(tmp_path, subsets_root):
    for theirs, ours in {"liberty": "castle", "notredame": "door"}.items():
        (tmp_path / theirs).symlink_to(subsets_root / ours)
    (row,) = run_phototourism(tmp_path, ["mkd-cartesian-raw+lw"]).tables[0].rows
    assert row.published == (None, None, 17.31, 10.90)

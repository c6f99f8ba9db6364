"""The whole benchmark on small strips: lists, what a run remembers, what it learns from."""

import numpy as np
import pytest
from layouts import write_task

from mkdesc.datasets.hpatches.layout import IMAGES, HPatches
from mkdesc.datasets.hpatches.task_lists import (
    draw_retrieval,
    draw_verification,
    textured_patches,
)
from mkdesc.evaluation.hpatches.benchmark import run_hpatches
from mkdesc.evaluation.report.runs import read_run

TASKS = ["verification", "retrieval"]


def corner(patches):
    """Two numbers: too little to be right always."""
    return patches[:, :16, :16].reshape(len(patches), 2, -1).mean(axis=2)


def scores(root, **options):
    table = run_hpatches(root, [corner], **{"tasks": TASKS, **options}).tables[0]
    return dict(zip(table.columns, table.rows[0].values, strict=True))


def test_lists_of_files_and_of_their_seed_give_the_same(tmp_path, strips_root):
    dataset = HPatches(strips_root)
    write_task(tmp_path, "full", draw_verification(dataset.counts(), 7))
    write_task(tmp_path, "full", draw_retrieval(textured_patches(dataset, dataset.names), 7))
    seven, eight = scores(strips_root, seed=7), scores(strips_root, seed=8)
    assert scores(strips_root, tasks_dir=tmp_path) == seven
    assert all(seven[task] != eight[task] for task in TASKS)
    # A run remembers its lists by what is in them.
    run = tmp_path / "run"
    scores(strips_root, tasks_dir=tmp_path, output=run)
    write_task(tmp_path, "full", draw_verification(dataset.counts(), 8))
    with pytest.raises(ValueError, match=r"inputs have changed \(.*verif.*_split-full\.csv"):
        scores(strips_root, tasks_dir=tmp_path, output=run)


def test_a_run_remembers_all_sequences_of_its_split(tmp_path, strips_root):
    scores(strips_root, split="a", output=tmp_path / "run")
    config, _ = read_run(tmp_path / "run")
    names = {"i_dome", "v_wall", "i_lake", "v_boat", "v_yard"}
    assert {*config["sequences"]} == names
    files = {f"{name}/{image}.png" for name in names for image in IMAGES}
    assert config["inputs"].keys() == files
    assert len({*config["inputs"].values()}) == 5 * 16


def test_a_training_subset_named_like_a_sequence(tmp_path, strips_root, subsets_root):
    (tmp_path / "i_dome").symlink_to(subsets_root / "door")
    results = run_hpatches(
        strips_root, ["mkd-cartesian-raw+lw"], tasks=["matching"], train_on=tmp_path / "i_dome"
    )
    assert np.isfinite(results.tables[0].rows[0].values).all()

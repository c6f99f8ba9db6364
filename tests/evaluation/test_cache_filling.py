"""Benchmarks whose descriptors others compute: the same tables."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from mkdesc.evaluation.hpatches.benchmark import run_hpatches
from mkdesc.evaluation.phototourism.benchmark import run_phototourism


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        yield executor


def own(patches):
    """A function of one's own stays in this process."""
    return patches[:, ::8, ::8].reshape(len(patches), -1).astype("float32") + 1


def test_hpatches(tmp_path, strips_root, processes):
    options = {"split": "a", "tasks": ["matching"]}
    names = ["rootsift", "mkd-cartesian-raw+lw", "paper-64", own]
    here = run_hpatches(strips_root, names, output=tmp_path / "here", **options)
    told = []
    there = run_hpatches(
        strips_root,
        names,
        output=tmp_path / "there",
        workers=processes,
        progress=lambda *news: told.append(news),
        **options,
    )
    assert there.tables == here.tables
    # rootsift, and the raw descriptors that both others are made of
    assert ("describing", 4, 4) in told  # of two sequences to test on
    assert ("describing", 3, 3) in told  # of three to train on
    files = [
        {file.relative_to(run): file.read_bytes() for file in run.glob("cache/**/*.npy")}
        for run in (tmp_path / "here", tmp_path / "there")
    ]
    assert files[0] == files[1]


def test_phototourism(tmp_path, subsets_root, processes):
    names = ["rootsift", "mkd-cartesian-raw"]
    here = run_phototourism(subsets_root, names, output=tmp_path / "here")
    there = run_phototourism(subsets_root, names, output=tmp_path / "there", workers=processes)
    assert there.tables == here.tables

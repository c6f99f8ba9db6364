"""Runs of benchmarks, and what they keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from targets.target import (
    Target,
    without_notes,
)

__all__ = ["EVALUATION"]


def _run(folder: Path) -> None:
    from mkdesc.evaluation.report.plots import Plot
    from mkdesc.evaluation.report.runs import Results, open_run, save_results
    from mkdesc.evaluation.report.table import Row, Table

    table = Table("demo", "Scores", ("score",), (Row("ours", (1.5,), (1.2,)),), ("a note",))
    plot = Plot("bars", "Scores", "bars", {"all": {"ours": {"score": 1.5}}})
    results = Results("hpatches", (table,), {"ours": {"score": 1.5}}, (plot,))
    for name in ("one", "two"):
        with open_run(
            folder / name, {"split": "a", "seed": 3, "descriptors": {"ours": {"kind": "raw"}}}
        ):
            save_results(folder / name, results)


def _read_runs(folder: Path) -> None:
    from mkdesc.evaluation.report.compare import compare_runs
    from mkdesc.evaluation.report.runs import open_run

    with open_run(
        folder / "one", {"split": "a", "seed": 3, "descriptors": {"ours": {"kind": "raw"}}}
    ):
        pass
    try:
        compare_runs([folder / "one", folder / "two"]).markdown()
    except ValueError as error:
        if not str(error).startswith("runs: "):  # of several folders, none of them is named
            raise


def _cached(folder: Path) -> Any:
    from mkdesc import Statistics
    from mkdesc.evaluation.cache import DescriptorCache
    from mkdesc.evaluation.contenders.base import PatchDescriptor

    mean = PatchDescriptor("mean", lambda patches: patches.mean(axis=(1, 2))[:, None])
    cache = DescriptorCache(folder)
    cache.statistics(mean, "dots", lambda _: Statistics(1).update(np.ones((4, 1))))
    return cache.rows(mean, "dots", 2, lambda: iter([np.ones((2, 8, 8), np.uint8)]))


def _read_cached(folder: Path) -> None:
    with without_notes():
        rows = _cached(folder)
    if rows.shape != (2, 1):
        raise RuntimeError(f"descriptors {rows.shape}")


#: All of them.
EVALUATION = (
    Target("runs", _run, ("one/config.json", "one/results.json"), _read_runs),
    Target("cache", _cached, ("mean/dots.npy", "mean/dots.statistics.safetensors"), _read_cached),
)

"""How long the two benchmarks take on descriptors of the true size.

    python benchmarks/evaluation.py                    # the sizes of the published sets
    python benchmarks/evaluation.py --sequences 8      # a quick look
    python benchmarks/evaluation.py --table-1          # Table 1 on sets of 450,000 patches

Descriptors are random, with the reference's shining through, and lie on disk, one file per image,
as a cache of a run would hold them. Nothing of the time to make them is counted. With --table-1,
subsets of sheets are made (2 GB each) and evaluated from the files on, nothing cached: the last
row of the paper's Table 1 (polar + cartesian + LW, all six combinations), then the whole table.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from layouts import draw_pairs, write_subset, write_task

from mkdesc.datasets.hpatches.layout import IMAGES
from mkdesc.datasets.hpatches.task_lists import (
    draw_retrieval,
    draw_verification,
    read_verification,
)
from mkdesc.datasets.phototourism.layout import PatchPairs
from mkdesc.datasets.text_files import read_columns
from mkdesc.evaluation import evaluate_revisited, run_phototourism, score_pairs
from mkdesc.evaluation.hpatches.matching import matching
from mkdesc.evaluation.hpatches.retrieval import retrieval
from mkdesc.evaluation.hpatches.verification import verification
from mkdesc.kernels import resize_patches
from mkdesc.measures import pair_distances
from mkdesc.measures import ranking as metrics

LEVELS = {"r": 0.0, "e": 0.7, "h": 1.1, "t": 1.5}


class OnDisk(Mapping[tuple[str, str], np.ndarray]):
    """Descriptors by sequence and image, mapped from files when they are asked for."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self.folder, self.names = folder, names

    def __getitem__(self, key: tuple[str, str]) -> np.ndarray:
        return np.load(self.folder / f"{key[0]}-{key[1]}.npy", mmap_mode="r")

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((name, image) for name in self.names for image in IMAGES)

    def __len__(self) -> int:
        return len(self.names) * len(IMAGES)


class Stopwatch:
    """Runs things, prints how long they took, and keeps it."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float]] = []

    def __call__(self, what: str, run: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = run()
        taken = time.perf_counter() - start
        self.rows.append((what, taken))
        # Linux counts in KiB, macOS in bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        print(f"{what:<56} {taken:>8.2f} s   peak so far {peak / 1e9:.2f} GB", flush=True)
        return result


def make_descriptors(options: argparse.Namespace, folder: Path) -> list[str]:
    rng = np.random.default_rng(0)
    names = [f"{'iv'[k % 2]}_{k:03}" for k in range(options.sequences)]
    for name in names:
        true = rng.standard_normal((options.patches, options.dims), np.float32)
        for image in IMAGES:
            noise = rng.standard_normal(true.shape, np.float32)
            noisy = true + np.float32(LEVELS[image[0]]) * noise
            noisy /= np.linalg.norm(noisy, axis=1, keepdims=True)
            np.save(folder / f"{name}-{image}.npy", noisy)
    return names


def hpatches(options: argparse.Namespace, folder: Path, watch: Stopwatch) -> None:
    names = make_descriptors(options, folder)
    described = OnDisk(folder, names)
    counts = dict.fromkeys(names, options.patches)
    pairs = watch("draw verification pairs", lambda: draw_verification(counts))
    write_task(folder, "full", pairs)
    watch("read verification pairs (3 files)", lambda: read_verification(folder, "full", counts))
    lists = draw_retrieval({name: np.ones(options.patches, bool) for name in names})
    start = time.perf_counter()
    tasks: dict[str, Callable[[], Any]] = {
        f"verification, 9 x {len(pairs.inter):,} pairs": lambda: verification(described, pairs),
        f"matching, {len(names)} x 15 images": lambda: matching(described, names),
        f"retrieval, {len(lists.queries):,} x {len(lists.distractors):,}": lambda: retrieval(
            described, lists
        ),
    }
    for what, run in tasks.items():
        result = watch(what, run)
        print("   ", {key: round(value, 4) for key, value in result.mean.items()})
    print(f"{'the three tasks':<56} {time.perf_counter() - start:>8.2f} s")


def single(options: argparse.Namespace, folder: Path, watch: Stopwatch) -> None:
    rng = np.random.default_rng(1)
    values = rng.standard_normal((450_000, options.dims), np.float32)
    first, second = rng.integers(0, len(values), (2, 1_000_000))
    watch("distances of 1,000,000 pairs", lambda: pair_distances(values, first, second))
    labels = np.arange(1_200_000) < 200_000
    scores = (labels + rng.standard_normal(1_200_000)).astype(np.float32)
    watch("both APs of 1,200,000 scores", lambda: metrics.average_precisions(scores, labels))
    watch("ROC AUC of 1,200,000 scores", lambda: metrics.roc_auc(scores, labels))
    watch("FPR95 of 1,200,000 scores", lambda: metrics.fpr95(scores, labels))
    points = rng.integers(0, 150_000, len(values))
    table = draw_pairs(points, 100_000)
    pairs = PatchPairs(*table.T, points[table[:, 0]] == points[table[:, 1]])
    watch("Phototourism FPR95, 100,000 pairs", lambda: score_pairs(values, pairs))
    images = points // 200  # about 600 patches in each
    watch(
        "Phototourism Revisited, 450,000 patches, 750 images",
        lambda: evaluate_revisited(values, points, images),
    )
    file = folder / "m50_500000_500000_0.txt"
    np.savetxt(file, rng.integers(0, 450_000, (500_000, 7)), fmt="%d")
    watch("read 500,000 lines of pairs", lambda: read_columns(file, (0, 1, 3, 4)))


def make_subset(folder: Path, patches: int, seed: int) -> None:
    """A subset of the true layout: three noisy views of each point, pairs up to half a million."""
    rng = np.random.default_rng(seed)
    coarse = rng.random((4096, 12, 12), np.float32)
    surfaces = 200 * resize_patches(coarse, 64)
    labels = np.arange(patches) // 3

    def blocks() -> Iterator[np.ndarray]:
        for start in range(0, patches, 4096):
            shown = labels[start : start + 4096]
            # Neighbouring sums of 4096 surfaces: as many different points as are asked for.
            mixed = surfaces[shown % 4096] + surfaces[shown // 4096 * 7 % 4096] * 0.3
            noise = rng.integers(0, 60, mixed.shape, np.uint8)
            yield (mixed + noise).clip(0, 255).astype(np.uint8)

    counts = [count for count in (100_000, 500_000) if count <= 2 * patches]
    pairs = {count: draw_pairs(labels, count, seed) for count in counts}
    write_subset(folder, blocks(), labels, pairs=pairs)


def table_1(options: argparse.Namespace, folder: Path, watch: Stopwatch) -> None:
    for seed in range(3):
        make_subset(folder / f"set{seed}", options.subset, seed)
    what = f"Table 1, {{}}, 3 x {options.subset:,} patches"
    last = watch(what.format("last row"), lambda: run_phototourism(folder, ["mkd-raw+lw"]))
    print(last.markdown())
    print(watch(what.format("whole"), lambda: run_phototourism(folder)).markdown())


def main() -> None:
    parser = argparse.ArgumentParser(description="How long the two benchmarks take.")
    parser.add_argument("--sequences", type=int, default=116)
    parser.add_argument("--patches", type=int, default=1300, help="patches in each sequence")
    parser.add_argument("--dims", type=int, default=128)
    parser.add_argument("--folder", type=Path, help="where to keep descriptors (2 GB of disk)")
    parser.add_argument("--table-1", action="store_true", help="Phototourism from the sheets on")
    parser.add_argument("--subset", type=int, default=450_000, help="patches in each subset")
    options = parser.parse_args()
    watch = Stopwatch()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        if options.table_1:
            table_1(options, folder, watch)
        else:
            hpatches(options, folder, watch)
            single(options, folder, watch)
    finally:
        shutil.rmtree(folder)
    print("\n| what | seconds |\n|---|---|")
    for what, taken in watch.rows:
        print(f"| {what} | {taken:.2f} |")


if __name__ == "__main__":
    main()

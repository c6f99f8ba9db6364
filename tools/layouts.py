"""Small datasets in the layouts of HPatches and Phototourism, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.datasets.hpatches.layout import IMAGES
from mkdesc.datasets.hpatches.task_lists import RetrievalTask, VerificationTask
from mkdesc.datasets.phototourism.layout import PATCH_SIZE, PER_SIDE, Interest
from mkdesc.images.writing import encode_image


def write_subset(
    folder: Path,
    patches: Iterable[Any],
    labels: ArrayLike,
    interest: Interest | None = None,
    pairs: Mapping[int, ArrayLike] | None = None,
) -> None:
    """Write a Phototourism subset of patches (N, 64, 64), or blocks of them, and their points."""
    folder = Path(folder)
    folder.mkdir()
    points = np.asarray(labels)
    (folder / "info.txt").write_text("".join(f"{point} 0\n" for point in points), encoding="utf-8")
    if interest is not None:
        rows = zip(*(np.asarray(column).tolist() for column in interest), strict=True)
        lines = ("{:d} {:.3f} {:.3f} {:.5f} {:.4f}\n".format(*row) for row in rows)
        (folder / "interest.txt").write_text("".join(lines), encoding="utf-8")
    for count, table in (pairs or {}).items():
        rows = np.stack([table, points[np.asarray(table)]], axis=2).reshape(-1, 4).tolist()
        lines = (f"{a} {p} 0 {b} {q} 0 0\n" for a, p, b, q in rows)
        (folder / f"m50_{count}_{count}_0.txt").write_text("".join(lines), encoding="utf-8")
    every = iter(patches if isinstance(patches, np.ndarray) else chain.from_iterable(patches))
    for number in range(-(-len(points) // PER_SIDE**2)):
        sheet = np.zeros((PER_SIDE**2, PATCH_SIZE, PATCH_SIZE), np.uint8)
        for row, patch in zip(sheet, every, strict=False):
            row[:] = patch
        grid = sheet.reshape(PER_SIDE, PER_SIDE, PATCH_SIZE, PATCH_SIZE).swapaxes(1, 2)
        picture = encode_image(".bmp", grid.reshape(PER_SIDE * PATCH_SIZE, -1))
        (folder / f"patches{number:04}.bmp").write_bytes(picture)


def draw_pairs(labels: ArrayLike, count: int, seed: int = 0) -> NDArray[np.int64]:
    """Draw pairs (count, 2) of patches at random, half of them of the same point."""
    points = np.asarray(labels)
    order = np.argsort(points, kind="stable")
    _, start, size = np.unique(points[order], return_index=True, return_counts=True)
    rng = np.random.default_rng(seed)
    half = count // 2
    point = rng.choice(np.flatnonzero(size > 1), half)
    one = rng.integers(size[point])
    other = (one + rng.integers(1, size[point])) % size[point]
    matching = order[start[point][:, None] + np.stack([one, other], axis=1)]
    different = rng.integers(len(points), size=(half, 2))
    while len(same := np.flatnonzero(points[different[:, 0]] == points[different[:, 1]])):
        different[same] = rng.integers(len(points), size=(len(same), 2))
    return rng.permutation(np.concatenate([matching, different]))


def write_sequence(root: Path, name: str, images: Mapping[str, NDArray[np.uint8]]) -> None:
    """Write the 16 strips of a sequence of HPatches: patches (N, W, W) by image."""
    (Path(root) / name).mkdir(exist_ok=True)
    for image in IMAGES:
        strip = images[image].reshape(-1, images[image].shape[-1])
        (Path(root) / name / f"{image}.png").write_bytes(encode_image(".png", strip))


def write_task(folder: Path, split: str, task: VerificationTask | RetrievalTask) -> None:
    """Write a task of HPatches in the official files' names and layout."""
    if isinstance(task, VerificationTask):
        header = "s1,t1,idx1,s2,t2,idx2"
        tables = {"verif_pos": task.positives, "verif_neg_intra": task.intra}
        tables["verif_neg_inter"] = task.inter
    else:
        header = "s,idx"
        tables = {"retr_queries": task.queries, "retr_distractors": task.distractors}
    names = np.array(task.sequences, object)
    for kind, table in tables.items():
        columns = [
            names[values] if name.startswith("s") else values
            for name, values in zip(header.split(","), table.T, strict=True)
        ]
        rows = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
        file = Path(folder) / f"{kind}_split-{split}.csv"
        file.write_text("\n".join([header, *rows, ""]), encoding="utf-8")

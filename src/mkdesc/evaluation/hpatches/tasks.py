"""The three HPatches tasks of a split, ready to run on any descriptor.

Descriptors are compared by Euclidean distance. All scores are in [0, 1]; ``ap`` is the article's
average precision (TREC), ``ap_trapezoid`` that of the public Python code, both with equal
distances handled as :mod:`mkdesc.measures.ranking` says: no order within them is made up.

Memory: verification holds the reference and one level of noise of all sequences, the other two
tasks one sequence and the distractors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress
from mkdesc.datasets.hpatches.layout import IMAGES, HPatches, Split
from mkdesc.datasets.hpatches.task_lists import (
    draw_retrieval,
    draw_verification,
    read_retrieval,
    read_verification,
    textured_patches,
)
from mkdesc.evaluation.hpatches.matching import matching
from mkdesc.evaluation.hpatches.retrieval import retrieval
from mkdesc.evaluation.hpatches.scores import TaskResult
from mkdesc.evaluation.hpatches.verification import verification
from mkdesc.heads.head import Head

#: Points of the curves that are kept.
POINTS = 200

Vectors = NDArray[np.float32]


class DescribedSequences(Mapping[tuple[str, str], Vectors]):
    """Descriptors by sequence and image, from the cache, projected when they are asked for."""

    def __init__(
        self,
        rows: Callable[[str, str], Vectors],
        names: Sequence[str],
        head: Head | None,
    ) -> None:
        self._rows, self._names, self._head = rows, names, head

    def __getitem__(self, key: tuple[str, str]) -> Vectors:
        rows = self._rows(*key)
        return rows if self._head is None else self._head.apply(rows)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((name, image) for name in self._names for image in IMAGES)

    def __len__(self) -> int:
        return len(self._names) * len(IMAGES)


class TaskRunner:
    """The tasks of a split, ready to run on any descriptor.

    Parameters
    ----------
    dataset, split
        The sequences.
    tasks
        Which of ``verification``, ``matching``, ``retrieval``.
    tasks_dir, seed
        Folder of the official lists, or what to draw them from if it is None.
    progress
        Told of the tasks and sequences that are done.
    """

    def __init__(
        self,
        dataset: HPatches,
        split: Split,
        tasks: Sequence[str],
        tasks_dir: str | Path | None,
        seed: int,
        progress: Progress,
    ) -> None:
        self._names, self._progress = split.test, progress
        self._pairs = self._lists = None
        self._matching = "matching" in tasks
        counts = dataset.counts(split.test)
        if "verification" in tasks:
            self._pairs = (
                draw_verification(counts, seed)
                if tasks_dir is None
                else read_verification(tasks_dir, split.name, counts)
            )
        if "retrieval" in tasks:
            self._lists = (
                draw_retrieval(textured_patches(dataset, split.test), seed)
                if tasks_dir is None
                else read_retrieval(tasks_dir, split.name, counts)
            )

    def run(self, described: DescribedSequences, label: str) -> dict[str, TaskResult]:
        """Results by task."""

        def progress(what: str, done: int, total: int) -> None:
            self._progress(f"{label}: {what}", done, total)

        found = {}
        if self._pairs is not None:
            found["verification"] = verification(described, self._pairs, POINTS)
            progress("verification", 1, 1)
        if self._matching:
            found["matching"] = matching(described, self._names, progress)
        if self._lists is not None:
            found["retrieval"] = retrieval(described, self._lists, progress=progress)
        return found

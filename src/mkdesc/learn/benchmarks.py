"""Matching patches from the two public benchmarks: Phototourism and HPatches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mkdesc.datasets.hpatches import HPatches
from mkdesc.datasets.phototourism import Subset
from mkdesc.learn.learner import TrainingBlock

__all__ = ["hpatches_blocks", "matching_pairs", "phototourism_blocks"]


def phototourism_blocks(subset: Subset) -> Iterator[TrainingBlock]:
    """All patches of a subset, labelled by their 3-D points."""
    labels = subset.labels()
    for indices, patches in subset.blocks():
        yield TrainingBlock(patches, labels[indices])


def matching_pairs(
    subset: Subset, count: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The matching pairs of the subset's largest m50 file, or of that of ``count`` pairs."""
    files = subset.pair_files()
    pairs = subset.pairs(max(files) if files and count is None else count)
    return pairs.first[pairs.matching], pairs.second[pairs.matching]


def hpatches_blocks(dataset: HPatches, names: tuple[str, ...]) -> Iterator[TrainingBlock]:
    """The patches of sequences: row k shows the same surface in all strips of one sequence."""
    first = 0
    for name in names:
        sequence = dataset[name]
        labels = np.arange(first, first + len(sequence))
        for _, patches in sequence.images():
            yield TrainingBlock(patches, labels)
        first += len(sequence)

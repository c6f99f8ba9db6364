"""Shards of labelled patches in files: rows of an array, of a Phototourism subset, sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.datasets.hpatches.layout import HPatches
from mkdesc.datasets.patch_files import open_patches
from mkdesc.datasets.phototourism.layout import Subset
from mkdesc.learn.shards import PairRows, TrainingBlock

Indices = NDArray[np.integer]


def whole_points(labels: Indices, size: int) -> Iterator[Indices]:
    """Rows in parts of about ``size``, growing, each with all rows of its labels.

    >>> [part.tolist() for part in whole_points(np.array([3, 1, 1, 3, 2, 2]), 2)]
    [[1, 2], [4, 5], [0, 3]]
    """
    order = np.argsort(labels, kind="stable")
    first = 0
    while first < len(order):
        last = min(first + size, len(order))
        while last < len(order) and labels[order[last]] == labels[order[last - 1]]:
            last += 1
        yield np.sort(order[first:last])
        first = last


def pairs_among(pairs: PairRows, rows: Indices) -> PairRows:
    """The pairs of some rows, by their positions in ``rows`` (growing).

    Pairs match, and all rows of a label are in ``rows`` or none: the first one decides.

    >>> pairs_among((np.array([5, 0]), np.array([7, 1])), np.array([5, 6, 7]))
    (array([0]), array([2]))
    """
    here = np.isin(pairs[0], rows)
    first, second = (np.searchsorted(rows, index[here]) for index in pairs)
    return first, second


@dataclass(frozen=True, eq=False)
class RowShard:
    """Rows (n,), growing, of a file of patches, and their labels (n,)."""

    file: str
    rows: Indices
    labels: Indices

    @property
    def inputs(self) -> list[str]:
        """The file."""
        return [self.file]

    @property
    def size(self) -> int:
        """How many patches."""
        return len(self.rows)

    def blocks(self) -> Iterator[TrainingBlock]:
        """One block; rows that follow each other are read at once."""
        source = open_patches(self.file)
        runs = np.split(self.rows, np.flatnonzero(np.diff(self.rows) > 1) + 1)
        patches: list[NDArray[Any]] = [
            source.read(int(run[0]), int(run[-1]) + 1) for run in runs if len(run)
        ]
        if patches:
            yield TrainingBlock(np.concatenate(patches), self.labels)


@dataclass(frozen=True, eq=False)
class SubsetShard:
    """Rows (n,), growing, of a Phototourism subset, their labels, and the pairs among them."""

    folder: Path
    rows: Indices
    labels: Indices
    pairs: PairRows | None

    @property
    def inputs(self) -> list[Path]:
        """The sheets."""
        return Subset(self.folder).sheets

    @property
    def size(self) -> int:
        """How many patches."""
        return len(self.rows)

    def blocks(self) -> Iterator[TrainingBlock]:
        """Sheet after sheet."""
        done = 0
        for index, patches in Subset(self.folder).blocks(self.rows):
            yield TrainingBlock(patches, self.labels[done : done + len(index)])
            done += len(index)


@dataclass(frozen=True)
class SequenceShard:
    """A sequence of HPatches strips; its labels begin with ``first``."""

    root: Path
    name: str
    first: int

    @property
    def inputs(self) -> list[Path]:
        """The strips."""
        return sorted((self.root / self.name).glob("*.png"))

    @property
    def size(self) -> int:
        """How many patches."""
        return 16 * len(HPatches(self.root)[self.name])

    def blocks(self) -> Iterator[TrainingBlock]:
        """Strip after strip."""
        sequence = HPatches(self.root)[self.name]
        labels = np.arange(self.first, self.first + len(sequence))
        for _, patches in sequence.images():
            yield TrainingBlock(patches, labels)

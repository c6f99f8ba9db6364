"""Pieces of training data, and what is kept of each: sums, and the points that are held out.

A shard is a small description of training data (these photographs, rows a to b of this file) that
yields blocks of patches with labels, wherever it is sent. All patches of a point are in one shard.
So each can be described and added up on its own; the sums of all give the same whitening however
the data were cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path, read_safetensors
from mkdesc._support.work import Workers, in_order, share_memory
from mkdesc.descriptor import MKD
from mkdesc.heads.statistics import Statistics
from mkdesc.heads.whitening import METHODS, Whitening

__all__ = ["Part", "Shard", "TrainingBlock", "describe_blocks", "gather", "held_out", "parts_of"]

#: One point in so many is held out of the learning, to score it.
HELD_OUT = 10
#: Rows of descriptors that are added at a time.
ROWS = 32_768
#: Held-out patches that are kept for the score, at most, or thereabouts.
KEPT = 100_000

Labels = NDArray[np.integer]
#: Rows of matching patches, first and second.
PairRows = tuple[NDArray[np.integer], NDArray[np.integer]]


class TrainingBlock(NamedTuple):
    """Patches (n, W, W) and the labels (n,) of what they show."""

    patches: NDArray[Any]
    labels: NDArray[np.integer]


class Shard(Protocol):
    """A piece of training data; to travel to other processes it must be picklable.

    It may have ``pairs``, rows of its patches that match (otherwise all of equal labels do);
    ``size``, what it counts for in the progress; ``inputs``, the files that it reads;
    and ``skipped``, a list of reasons why some of its data could not be used, which ``blocks``
    fills.
    """

    def blocks(self) -> Iterator[TrainingBlock]:
        """Its patches. Those of a label must not be in any other shard."""


class Part(NamedTuple):
    """What is kept of a shard.

    Attributes
    ----------
    patches, points
        How many there were.
    statistics
        Of those that are not held out.
    raw, labels
        Raw descriptors (n, D) and labels (n,) of (some of) those that are.
    skipped
        Why some data could not be used.
    """

    patches: int
    points: int
    statistics: Statistics
    raw: NDArray[np.float32]
    labels: Labels
    skipped: tuple[str, ...] = ()

    def save(self, path: Path) -> None:
        """Write it, whole or not at all."""
        from safetensors.numpy import save

        tensors = {
            **self.statistics.to_tensors(),
            "seen": np.array([self.patches, self.points]),
            "raw": self.raw,
            "labels": self.labels.astype(np.int64),
        }
        with atomic_path(path) as partial:
            # Not by save_file, which leaves a temporary file of its own if it is killed.
            partial.write_bytes(save(tensors, {"skipped": json.dumps(self.skipped)}))

    @classmethod
    def load(cls, path: Path, power: float) -> Part:
        """Read what :meth:`save` wrote; ValueError if that is damaged."""
        try:
            tensors, metadata = read_safetensors(path)
            patches, points = (int(count) for count in tensors["seen"])
            statistics = Statistics.from_tensors(tensors, power)
            raw, labels = tensors["raw"], tensors["labels"]
            if labels.ndim != 1 or labels.dtype != np.int64 or raw.dtype != np.float32:
                raise ValueError("labels or descriptors of another kind")
            if raw.shape != (len(labels), statistics.dims) or not np.isfinite(raw).all():
                raise ValueError(f"descriptors of the shape {raw.shape}, or not finite")
            skipped = json.loads(metadata["skipped"])
            if not (isinstance(skipped, list) and all(isinstance(one, str) for one in skipped)):
                raise ValueError("skipped is not a list of texts")
            return cls(patches, points, statistics, raw, labels, tuple(skipped))
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}: damaged; remove it ({error})") from None


def _mixed(labels: Labels) -> NDArray[np.uint64]:
    """Numbers that look random, from labels alone (the finaliser of SplitMix64)."""
    z = labels.astype(np.uint64)
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def held_out(labels: Labels) -> NDArray[np.bool_]:
    """Which patches (n,) show points that are held out: one point in ten, by its label alone.

    >>> labels = np.arange(20_000)
    >>> bool(abs(held_out(labels).mean() - 0.1) < 0.01)
    True
    """
    return _mixed(labels) % np.uint64(HELD_OUT) == HELD_OUT - 1


def describe_blocks(
    blocks: Iterator[TrainingBlock], mkd: MKD
) -> Iterator[tuple[NDArray[np.float32], Labels]]:
    """Raw descriptors (n, D) and labels (n,) of blocks of patches."""
    done = 0
    for patches, labels in blocks:
        if np.shape(labels) != (len(patches),):
            raise ValueError(
                f"labels: expected one per patch, ({len(patches)},), got {np.shape(labels)}"
            )
        yield mkd.transform(patches, first=done), np.asarray(labels)
        done += len(patches)


def gather(
    raw: NDArray[np.float32], labels: Labels, pairs: PairRows | None, whitening: Whitening
) -> Statistics:
    """Statistics of everything that is not held out.

    Parameters
    ----------
    raw
        Raw descriptors (N, D); may be memory-mapped.
    labels
        (N,) the points that they show.
    pairs
        Rows that match; None: all pairs of equal labels do.
    whitening
        What is learned of them.
    """
    held = held_out(labels)
    statistics = Statistics(raw.shape[1], whitening.power)
    labelled = METHODS[whitening.method] and pairs is None
    rows = np.flatnonzero(~held)
    order = rows[np.argsort(labels[rows], kind="stable")]
    first = 0
    while first < len(order):
        last = min(first + ROWS, len(order))
        while last < len(order) and labels[order[last]] == labels[order[last - 1]]:
            last += 1  # all views of a point together
        part = order[first:last]
        statistics.update(raw[part], labels[part] if labelled else None)
        first = last
    if pairs is not None:
        kept = [index[~held[pairs[0]]] for index in pairs]
        for start in range(0, len(kept[0]), ROWS):
            p, q = (raw[index[start : start + ROWS]] for index in kept)
            statistics.update_differences(p, q)
    return statistics


def _learn(
    mkd: MKD, whitening: Whitening, keep: float, piece: tuple[Shard, Path | None]
) -> Part | None:
    """Describe a shard, and add up what is learned of it; into a file, if there is one."""
    shard, target = piece
    if target is not None and target.exists():  # a worker was lost after it was done
        return None
    found = list(describe_blocks(shard.blocks(), mkd))
    if found:
        raw, labels = (np.concatenate(part) for part in zip(*found, strict=True))
    else:
        raw = mkd.transform(np.empty((0, mkd.patch_size, mkd.patch_size), np.uint8))
        labels = np.empty(0, np.int64)
    statistics = gather(raw, labels, getattr(shard, "pairs", None), whitening)
    # Those to keep are chosen by their labels, too; not by the digit that held_out looks at.
    chance = (_mixed(labels) // np.uint64(HELD_OUT) % np.uint64(1 << 30)) / (1 << 30)
    kept = held_out(labels) & (chance < keep)
    skipped = tuple(getattr(shard, "skipped", ()))
    points = len(np.unique(labels))
    part = Part(len(raw), points, statistics, raw[kept], labels[kept], skipped)
    if target is None:
        return part
    part.save(target)
    return None


def parts_of(
    shards: Sequence[Shard],
    mkd: MKD,
    whitening: Whitening,
    expected: int,
    workers: Workers = None,
    folder: Path | None = None,
) -> Iterator[Part]:
    """What is kept of shards, in their order.

    Parameters
    ----------
    shards
        The data.
    mkd, whitening
        The descriptor, without whitening, and what is learned.
    expected
        How many patches there are, about.
    workers
        Who describes: so many threads, an executor, or a Dask client.
    folder
        Where parts of other processes are put; those that are there are kept.
    """
    keep = min(1.0, KEPT * HELD_OUT / max(expected, 1))
    alone = MKD(**mkd.get_params(deep=False) | {"n_threads": 1})
    together = share_memory(workers)
    if not together and folder is None:
        raise ValueError("parts: expected a folder that all workers see, got None")

    def target(number: int) -> Path | None:
        if together or folder is None:
            return None
        return folder.absolute() / f"part-{number:06d}.safetensors"

    pieces = [(shard, target(number)) for number, shard in enumerate(shards)]
    learn = partial(_learn, alone, whitening, keep)
    for (_, file), part in zip(pieces, in_order(learn, pieces, workers), strict=True):
        if part is not None:
            yield part
        elif file is not None:
            yield Part.load(file, whitening.power)

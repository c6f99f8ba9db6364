"""Pieces of training data, and what is kept of each: sums, and the points that are held out.

A shard is a small description of training data (these photographs, rows a to b of this file) that
yields blocks of patches with labels, wherever it is sent. All patches of a point are in one shard.
So each can be described and added up on its own; the sums of all give the same whitening however
the data were cut.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path, read_safetensors
from mkdesc._support.work import Workers, in_order
from mkdesc.descriptor import MKD
from mkdesc.heads.statistics import Statistics
from mkdesc.heads.whitening import METHODS, Whitening

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

    def blocks(self) -> Iterator[TrainingBlock]:
        """Itself: the smallest shard."""
        yield self


class Shard(Protocol):
    """A piece of training data; to travel to other processes it must be picklable.

    It may have ``pairs``, rows of its patches that match (otherwise all of equal labels do);
    ``size``, what it counts for in the progress; ``inputs``, the files that it reads;
    ``skipped``, a list of reasons why some of its data could not be used, which ``blocks``
    fills; and ``fresh``, photographs whose views can be made anew while a head is trained.
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


def _described(blocks: Iterable[TrainingBlock], mkd: MKD) -> tuple[NDArray[np.float32], Labels]:
    """Raw descriptors (N, D), which wait in a temporary file, and labels (N,) of patches."""
    found: list[Labels] = []
    done = 0
    with tempfile.TemporaryFile() as spool:
        for patches, labels in blocks:
            if np.shape(labels) != (len(patches),):
                raise ValueError(
                    f"labels: expected one per patch, ({len(patches)},), got {np.shape(labels)}"
                )
            raw = mkd.transform(patches, first=done)
            spool.write(raw.tobytes())
            found.append(np.asarray(labels))
            done += len(patches)
        spool.flush()
        if done:
            raw = np.memmap(spool, np.float32, "r+", shape=(done, raw.shape[1]))
            return raw, np.concatenate(found)
    # No file of no bytes can be mapped.
    nothing = np.empty((0, mkd.squares, mkd.patch_size, mkd.patch_size), np.uint8)
    return mkd.transform(nothing), np.empty(0, np.int64)


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
    mkd: MKD, whitening: Whitening, keep: float | None, piece: tuple[Shard, Path | None]
) -> Part | None:
    """Describe a shard, and add up what is learned of it; into a file, if there is one."""
    shard, target = piece
    if target is not None and target.exists():  # a worker was lost after it was done
        return None
    raw, labels = _described(shard.blocks(), mkd)
    statistics = gather(raw, labels, getattr(shard, "pairs", None), whitening)
    skipped = tuple(getattr(shard, "skipped", ()))
    part = Part(len(raw), len(np.unique(labels)), statistics, raw, labels, skipped)
    if keep is not None:
        # Those to keep are chosen by their labels, too; not by the digit that held_out looks at.
        chance = (_mixed(labels) // np.uint64(HELD_OUT) % np.uint64(1 << 30)) / (1 << 30)
        kept = held_out(labels) & (chance < keep)
        part = part._replace(raw=np.array(raw[kept]), labels=labels[kept])
    if target is None:
        return part
    part.save(target)
    return None


def parts_of(
    shards: Sequence[Shard],
    mkd: MKD,
    whitening: Whitening,
    expected: int | None,
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
        How many patches there are, about: a sample of those that are held out is kept; None: all
        descriptors are, in temporary files.
    workers
        Who describes: so many threads, an executor, or a Dask client.
    folder
        Where parts of other processes are put; those that are there are kept. None: the workers
        are threads of this one.
    """
    keep = None if expected is None else min(1.0, KEPT * HELD_OUT / max(expected, 1))
    pieces = [
        (shard, folder and folder.absolute() / f"part-{number:06d}.safetensors")
        for number, shard in enumerate(shards)
    ]
    if folder is None and len(shards) == 1:
        # Not by a thread, which Ctrl-C would wait for; and all threads are for this shard.
        found: Iterable[Part | None] = map(partial(_learn, mkd, whitening, keep), pieces)
    else:
        alone = MKD(**mkd.get_params(deep=False) | {"n_threads": 1})
        found = in_order(partial(_learn, alone, whitening, keep), pieces, workers)
    for (_, file), part in zip(pieces, found, strict=True):
        if part is not None:
            yield part
        elif file is not None:
            yield Part.load(file, whitening.power)

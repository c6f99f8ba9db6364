"""From blocks of labelled patches to a model: describe, gather statistics, solve, and score.

Every source of training data (labels, Phototourism, HPatches, COLMAP, photographs) yields blocks
of patches with labels; patches of equal labels match. One point in ten is held out, and the
score on those is reported.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.threads import checked_threads
from mkdesc._support.work import Workers
from mkdesc._support.workfolder import WorkFolder
from mkdesc.descriptor import MKD
from mkdesc.heads.head import Head
from mkdesc.heads.statistics import Statistics
from mkdesc.heads.whitening import Whitening
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.learn.photos import FreshPhotos
from mkdesc.learn.report import Learned, Report
from mkdesc.learn.shards import Shard, TrainingBlock, describe_blocks, gather, held_out, parts_of
from mkdesc.learn.trained_head import TrainedHead, split_points
from mkdesc.learn.views import FixedViews, FreshViews, Replacement
from mkdesc.measures.distances import pair_distances
from mkdesc.measures.ranking import fpr95

__all__ = ["learn_model", "learn_shards"]

#: Pairs of held-out patches that are compared, at most, matching and not.
SCORED = 50_000
#: Where a folder of parts says what they are made of.
RECORD = "mkdesc.json"


def learn_model(
    blocks: Iterable[TrainingBlock],
    mkd: MKD | None = None,
    whitening: Whitening | None = None,
    pairs: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None,
    trained: TrainedHead | None = None,
    progress: Progress | None = None,
    fresh: FreshPhotos | None = None,
) -> Learned:
    """Learn a whitening from labelled patches, and train a head further if that is asked for.

    Raw descriptors wait in a temporary file, so that memory does not grow with their number.

    Parameters
    ----------
    blocks
        Patches with labels. Those of one label need not be in one block.
    mkd
        The descriptor, without whitening; default: the paper's.
    whitening
        What to learn; default: ``Whitening("gda", power=0.75)``, as the bundled models have it.
    pairs
        Indices of matching patches; default: all pairs of equal labels. Training draws its pairs
        by the labels.
    trained
        How to train a head that begins as this whitening; default: it is not.
    progress
        Told of the steps of the training.
    fresh
        Photographs whose views can be made anew while the head is trained.

    Returns
    -------
    Learned
        The descriptor with its whitening or head, and a report.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = np.repeat(rng.random((400, 16, 16)), 2, axis=0)
    >>> patches = (points + rng.normal(0, 0.2, points.shape)).astype(np.float32)
    >>> block = TrainingBlock(patches, np.repeat(np.arange(400), 2))
    >>> learned = learn_model([block], MKD("cartesian", 16), Whitening("lw", 32))
    >>> learned.mkd.transform(patches).shape, learned.report.points
    ((800, 32), 400)
    """
    start = time.perf_counter()
    mkd, whitening = _checked(mkd, whitening)
    further = None if trained is None else TrainedHead(**trained.get_params(deep=False))
    if further is not None:  # said before the work if it cannot be
        further.check()
        further.chosen_device()
    with tempfile.TemporaryFile() as spool:
        labels, width = _describe_all(blocks, mkd, spool)
        raw = np.memmap(spool, np.float32, "r+", shape=(len(labels), width))
        check_points(len(np.unique(labels)), len(labels))
        statistics = gather(raw, labels, pairs, whitening)
        whitening.fit_statistics(statistics)
        heads: dict[str, Head | None] = {"raw": None, "learned": whitening.learned()}
        learned: dict[str, Any] = {"whitening": whitening}
        facts: dict[str, Any] = {}
        training: dict[str, Any] = {}
        if further is not None:
            further.whitening = whitening
            _train(further, raw, labels, statistics, mkd, progress, fresh)
            heads["linear"], heads["learned"] = heads["learned"], further.head_
            learned, training = {"head": further.head_}, further.facts()
            facts["steps"] = further.trained_.steps
            facts["interrupted"] = further.trained_.interrupted
        facts |= _scores(raw, labels, heads)
        del raw
    report = Report(
        patches=len(labels),
        points=len(np.unique(labels)),
        pairs=statistics.n_pairs,
        seconds=time.perf_counter() - start,
        **facts,
    )
    return Learned(MKD(**mkd.get_params(deep=False) | learned), report, training=training)


def learn_shards(
    shards: Sequence[Shard],
    mkd: MKD | None = None,
    *,
    whitening: Whitening | None = None,
    expected: int = 0,
    workers: Workers = None,
    parts: str | Path | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Learn a whitening from training data in pieces, wherever they are described.

    Nothing but sums, and a sample of the points that are held out, is kept of a shard: there may
    be any number of them. The whitening is the same however the data are cut.

    Parameters
    ----------
    shards
        Objects with a method ``blocks()`` that yields :class:`TrainingBlock`; no label is in two
        of them. Raw descriptors of a whole shard are in memory: some ten thousand patches are a
        good size. For processes and clusters they must be picklable.
    mkd, whitening
        As for :func:`learn_model`.
    expected
        How many patches there are, about; if there are millions, it keeps the sample small.
    workers
        So many threads (None: one per core), an executor, or a Dask client.
    parts
        For executors and clusters, a folder that all processes see: what is kept of shards waits
        there. Started again with the same folder, those that are there are not done again.
    progress
        Told of every shard: one step, or as many as its ``size`` says.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Noise:
    ...     first: int
    ...     def blocks(self):
    ...         rng = np.random.default_rng(self.first)
    ...         points = rng.integers(0, 256, (100, 1, 16, 16))
    ...         patches = points + rng.integers(0, 9, (100, 3, 16, 16))
    ...         labels = np.repeat(np.arange(self.first, self.first + 100), 3)
    ...         patches = patches.reshape(-1, 16, 16).clip(0, 255).astype(np.uint8)
    ...         yield TrainingBlock(patches, labels)
    >>> shards = [Noise(first) for first in range(0, 500, 100)]
    >>> learn_shards(shards, MKD("cartesian", 16), Whitening("lw", 32)).report.points
    500
    """
    start = time.perf_counter()
    mkd, whitening = _checked(mkd, whitening)
    tell = progress or no_progress
    total: Statistics | None = None
    patches = points = 0
    raw: list[NDArray[np.float32]] = []
    labels: list[NDArray[np.integer]] = []
    skipped: list[str] = []
    place = None if parts is None else Path(parts)
    if place is not None:
        _begin(place, shards, mkd.get_params(), whitening.get_params(), expected)
    sizes = [getattr(shard, "size", 1) for shard in shards]
    done, all_ = 0, sum(sizes)
    tell("learning", 0, all_)
    found = parts_of(shards, mkd, whitening, expected, workers, place)
    for size, part in zip(sizes, found, strict=True):
        total = part.statistics if total is None else total + part.statistics
        patches, points = patches + part.patches, points + part.points
        raw.append(part.raw)
        labels.append(part.labels)
        for reason in part.skipped:
            warnings.warn(f"skipped: {reason}", RuntimeWarning, stacklevel=2)
        skipped.extend(part.skipped)
        done += size
        tell("learning", done, all_)
    if total is None or not patches:
        why = f"; {skipped[0]}" if skipped else ""
        raise ValueError(f"there are no patches to learn from{why}")
    check_points(points, patches)
    whitening.fit_statistics(total)
    heads: dict[str, Head | None] = {"raw": None, "learned": whitening.learned()}
    facts = _scores(np.concatenate(raw), np.concatenate(labels), heads)
    seconds = time.perf_counter() - start
    report = Report(patches, points, total.n_pairs, seconds=seconds, **facts)
    return Learned(MKD(**mkd.get_params(deep=False) | {"whitening": whitening}), report)


def check_points(points: int, patches: int) -> None:
    """Refuse data that nothing can be learned from.

    Parameters
    ----------
    points, patches
        How many there are.
    """
    if points < 2 or patches == points:
        raise ValueError(
            "labels: expected two patches or more of the same label, and two labels or more, got "
            f"{patches} patches of {points} labels"
        )


def _begin(folder: Path, shards: Sequence[Shard], *settings: Any) -> None:
    """Make a folder of parts, or refuse one that has parts of something else."""
    with np.printoptions(threshold=sys.maxsize):  # all of every array
        made_of = repr([*shards, *settings])
    digest = hashlib.sha256(made_of.encode()).hexdigest()
    inputs = {str(file): file for shard in shards for file in getattr(shard, "inputs", ())}
    WorkFolder(str(folder), str(folder / RECORD)).open({"data and settings": digest}, inputs)


def _checked(mkd: MKD | None, whitening: Whitening | None) -> tuple[MKD, Whitening]:
    """Copies of what to learn with: the caller's stay as they are."""
    mkd = MKD(**(MKD() if mkd is None else mkd).get_params(deep=False))
    mkd.set_params(whitening=None, head=None, output="float32")
    chosen = Whitening("gda", power=0.75) if whitening is None else whitening
    chosen.check()
    most = as_parametrization(mkd.parametrization).dims  # a small descriptor keeps all it has
    whitening = Whitening(**chosen.get_params() | {"dims": min(chosen.dims, most)})
    return mkd, whitening


def _train(
    trained: TrainedHead,
    raw: NDArray[np.float32],
    labels: NDArray[np.integer],
    statistics: Statistics,
    mkd: MKD,
    progress: Progress | None,
    fresh: FreshPhotos | None,
) -> None:
    """Train a head on everything that is not held out."""
    rows = np.flatnonzero(~held_out(labels))
    point_of = np.unique(labels, return_inverse=True)[1]
    training, checking = split_points(point_of, rows, int(trained.seed))
    check = FixedViews(raw, point_of, checking)
    if fresh is None:
        trained.fit_views(FixedViews(raw, point_of, training), check, statistics, progress)
        return
    device, threads = trained.chosen_device(), None
    if device.type != "cpu":
        from mkdesc.learn.device_views import DeviceViews

        views: FreshViews = DeviceViews(raw, point_of, training, fresh, mkd, device)
    else:
        # Half of the cores train, half make views: both on one core would wait for each other.
        every = checked_threads(mkd.n_threads)
        threads = max(1, every // 2)
        alone = MKD(**mkd.get_params(deep=False) | {"n_threads": 1})

        def make(number: int) -> Replacement:
            first, patches = fresh.patches(number)
            return Replacement(first, alone.transform(patches))

        views = FreshViews(raw, point_of, training, make, max(1, every - threads))
    try:
        trained.fit_views(views, check, statistics, progress, threads)
    finally:
        views.close()


def _scores(
    raw: NDArray[np.float32], labels: NDArray[np.integer], heads: dict[str, Head | None]
) -> dict[str, Any]:
    """What a report says of held-out points: false positive rates in per cent, or NaN."""
    compared = _held_out_pairs(labels)
    if compared is None:
        return {"held_out_pairs": 0, **{f"fpr95_{name}": np.nan for name in heads}}
    first, second, matching = compared
    rows, where = np.unique([first, second], return_inverse=True)
    kept, where = np.array(raw[rows]), where.reshape(2, -1)
    found: dict[str, Any] = {"held_out_pairs": int(matching.sum())}
    for name, head in heads.items():
        descriptors = kept if head is None else head.apply(kept)
        found[f"fpr95_{name}"] = 100 * float(fpr95(-pair_distances(descriptors, *where), matching))
    return found


def _describe_all(
    blocks: Iterable[TrainingBlock], mkd: MKD, spool: Any
) -> tuple[NDArray[np.integer], int]:
    """Write raw descriptors of all blocks to ``spool``; their labels and length."""
    labels: list[NDArray[np.integer]] = []
    width = 0
    for raw, own in describe_blocks(iter(blocks), mkd):
        spool.write(raw.tobytes())
        labels.append(own)
        width = raw.shape[1]
    if not sum(map(len, labels)):
        raise ValueError("there are no patches to learn from")
    spool.flush()
    return np.concatenate(labels), width


def _held_out_pairs(
    labels: NDArray[np.integer],
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.bool_]] | None:
    """Pairs of held-out patches: their rows, and whether they match. None if there are too few."""
    rows = np.flatnonzero(held_out(labels))
    rows = rows[np.argsort(labels[rows], kind="stable")]
    rng = np.random.default_rng(0)
    # Each patch with the next of its point; across points, with one at random.
    next_ = np.flatnonzero(labels[rows[1:]] == labels[rows[:-1]])
    if len(next_) < 2:
        return None
    if len(next_) > SCORED:
        next_ = rng.choice(next_, SCORED, replace=False)
    one, other = rng.choice(rows, (2, len(next_)))
    different = labels[one] != labels[other]
    if not different.any():
        return None
    first = np.concatenate([rows[next_], one[different]])
    second = np.concatenate([rows[next_ + 1], other[different]])
    return first, second, np.arange(len(first)) < len(next_)

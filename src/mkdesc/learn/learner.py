"""From blocks of labelled patches to a model: describe, gather statistics, solve, and score.

Every source of training data (labels, Phototourism, HPatches, COLMAP, photographs) yields blocks
of patches with labels; patches of equal labels match. One patch in ten points is held out, and
the score on those is reported.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress
from mkdesc._support.threads import checked_threads
from mkdesc.descriptor import MKD
from mkdesc.heads.head import Head
from mkdesc.heads.statistics import Statistics
from mkdesc.heads.whitening import METHODS, Whitening
from mkdesc.learn.photos import FreshPhotos
from mkdesc.learn.trained import TrainedHead, split_points
from mkdesc.learn.views import FixedViews, FreshViews, Replacement
from mkdesc.measures.distances import pair_distances
from mkdesc.measures.ranking import fpr95
from mkdesc.models import Card, save_model

__all__ = ["Learned", "Report", "TrainingBlock", "learn_model"]

#: One point in so many is held out of the learning, to score it.
HELD_OUT = 10
#: Pairs of held-out patches that are compared, at most, matching and not.
SCORED = 50_000
#: Rows of descriptors that are read back at a time.
ROWS = 32_768


class TrainingBlock(NamedTuple):
    """Patches (n, W, W) and the labels (n,) of what they show."""

    patches: NDArray[Any]
    labels: NDArray[np.integer]


@dataclass(frozen=True)
class Report:
    """What came of learning.

    Attributes
    ----------
    patches, points, pairs
        How many patches and distinct points there were, and how many matching pairs of them
        were learned from.
    held_out_pairs
        Matching pairs that were kept aside for the two scores.
    fpr95_raw, fpr95_learned
        False positive rate at 95% recall, in per cent, of the descriptors before and after the
        head, on held-out points; NaN if there were too few.
    seconds
        How long it took.
    fpr95_linear
        For heads that were trained: the same after the whitening that it began as.
    steps, interrupted
        For heads that were trained: how many steps, and whether Ctrl-C ended it early.
    """

    patches: int
    points: int
    pairs: int
    held_out_pairs: int
    fpr95_raw: float
    fpr95_learned: float
    seconds: float
    fpr95_linear: float = np.nan
    steps: int = 0
    interrupted: bool = False

    def lines(self) -> list[str]:
        """The report for reading."""
        text = [
            f"{self.patches:,} patches of {self.points:,} points, {self.pairs:,} matching pairs, "
            f"{self.seconds:.1f} s"
        ]
        if self.interrupted:
            text.append(f"interrupted after {self.steps:,} steps: this is the best until then")
        if np.isnan(self.fpr95_learned):
            return [*text, "too few points to hold any out for a score"]
        trained = not np.isnan(self.fpr95_linear)
        rates = {
            "raw": self.fpr95_raw,
            "linear": self.fpr95_linear,
            "trained" if trained else "learned": self.fpr95_learned,
        }
        known = (f"{rate:.2f}% {name}" for name, rate in rates.items() if not np.isnan(rate))
        return [
            *text,
            f"held out: {self.held_out_pairs:,} matching pairs, FPR95 {', '.join(known)}",
        ]


@dataclass(frozen=True)
class Learned:
    """What was learned.

    Attributes
    ----------
    mkd
        The descriptor with its whitening, or with the head that was trained.
    report
        How the learning went.
    source
        What it was learned from, for the card of the model.
    training
        How a head was trained, for the card too.
    """

    mkd: MKD
    report: Report
    source: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)

    def with_source(self, source: str, **settings: Any) -> Learned:
        """The same, with the source and settings noted."""
        return replace(self, source={"source": source, **settings})

    def save(self, path: str | os.PathLike[str]) -> Card:
        """Write the model to a safetensors file; returns its card."""
        facts = {name: value for name, value in asdict(self.report).items() if value == value}
        facts.pop("seconds")
        if not facts["steps"]:  # nothing was trained
            del facts["steps"], facts["interrupted"]
        for name in ("fpr95_raw", "fpr95_linear", "fpr95_learned"):
            if name in facts:
                facts[name] = round(facts[name], 2)
        return save_model(self.mkd, path, self.source | self.training | facts)


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
    mkd = MKD(**(MKD() if mkd is None else mkd).get_params(deep=False))
    mkd.set_params(whitening=None, head=None, output="float32")
    # A copy: the caller's stays as it is.
    chosen = Whitening("gda", power=0.75) if whitening is None else whitening
    whitening = Whitening(**chosen.get_params())
    whitening.check()
    further = None if trained is None else TrainedHead(**trained.get_params(deep=False))
    if further is not None:  # said before the work if it cannot be
        further.check()
        further.chosen_device()
    with tempfile.TemporaryFile() as spool:
        labels, width = _describe_all(blocks, mkd, spool)
        raw = np.memmap(spool, np.float32, "r+", shape=(len(labels), width))
        # Which points are held out depends on their labels alone, not on their order.
        points, point_of = np.unique(labels, return_inverse=True)
        held = np.random.default_rng(0).permutation(len(points)) % HELD_OUT == HELD_OUT - 1
        held_row = held[point_of]
        statistics = _gather(raw, point_of, held_row, pairs, whitening)
        whitening.fit_statistics(statistics)
        heads: dict[str, Head | None] = {"raw": None, "learned": whitening.learned()}
        learned: dict[str, Any] = {"whitening": whitening}
        facts: dict[str, Any] = {}
        training: dict[str, Any] = {}
        if further is not None:
            further.whitening = whitening
            _train(further, raw, point_of, held_row, statistics, mkd, progress, fresh)
            heads["linear"], heads["learned"] = heads["learned"], further.head_
            learned, training = {"head": further.head_}, further.facts()
            facts["steps"] = further.trained_.steps
            facts["interrupted"] = further.trained_.interrupted
        compared = _held_out_pairs(point_of, held_row)
        for name, score in _score(raw, compared, heads).items():
            facts[f"fpr95_{name}"] = score
        del raw
    report = Report(
        patches=len(labels),
        points=len(points),
        pairs=statistics.n_pairs,
        held_out_pairs=0 if compared is None else int(compared[2].sum()),
        seconds=time.perf_counter() - start,
        **facts,
    )
    return Learned(MKD(**mkd.get_params(deep=False) | learned), report, training=training)


def _train(
    trained: TrainedHead,
    raw: NDArray[np.float32],
    point_of: NDArray[np.integer],
    held_row: NDArray[np.bool_],
    statistics: Statistics,
    mkd: MKD,
    progress: Progress | None,
    fresh: FreshPhotos | None,
) -> None:
    """Train a head on everything that is not held out."""
    rows = np.flatnonzero(~held_row)
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


def _score(
    raw: NDArray[np.float32],
    compared: tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.bool_]] | None,
    heads: dict[str, Head | None],
) -> dict[str, float]:
    """The false positive rate of each head, in per cent; NaN if there is nothing to compare."""
    if compared is None:
        return dict.fromkeys(heads, np.nan)
    first, second, matching = compared
    rows, where = np.unique([first, second], return_inverse=True)
    kept, where = np.array(raw[rows]), where.reshape(2, -1)
    found = {}
    for name, head in heads.items():
        descriptors = kept if head is None else head.apply(kept)
        found[name] = 100 * float(fpr95(-pair_distances(descriptors, *where), matching))
    return found


def _describe_all(
    blocks: Iterable[TrainingBlock], mkd: MKD, spool: Any
) -> tuple[NDArray[np.integer], int]:
    """Write raw descriptors of all blocks to ``spool``; their labels and length."""
    labels: list[NDArray[np.integer]] = []
    done = width = 0
    for patches, block_labels in blocks:
        if np.shape(block_labels) != (len(patches),):
            raise ValueError(
                f"labels: expected one per patch, ({len(patches)},), got {np.shape(block_labels)}"
            )
        raw = mkd.transform(patches, first=done)
        spool.write(raw.tobytes())
        labels.append(np.asarray(block_labels))
        done, width = done + len(raw), raw.shape[1]
    if not done:
        raise ValueError("there are no patches to learn from")
    spool.flush()
    return np.concatenate(labels), width


def _gather(
    raw: NDArray[np.float32],
    point_of: NDArray[np.integer],
    held_row: NDArray[np.bool_],
    pairs: tuple[NDArray[np.integer], NDArray[np.integer]] | None,
    whitening: Whitening,
) -> Statistics:
    """Statistics of everything that is not held out."""
    statistics = Statistics(raw.shape[1], whitening.power)
    labelled = METHODS[whitening.method] and pairs is None
    rows = np.flatnonzero(~held_row)
    order = rows[np.argsort(point_of[rows], kind="stable")]
    first = 0
    while first < len(order):
        last = min(first + ROWS, len(order))
        while last < len(order) and point_of[order[last]] == point_of[order[last - 1]]:
            last += 1  # all views of a point together
        part = order[first:last]
        statistics.update(raw[part], point_of[part] if labelled else None)
        first = last
    if pairs is not None:
        kept = [index[~held_row[pairs[0]]] for index in pairs]
        for start in range(0, len(kept[0]), ROWS):
            p, q = (raw[index[start : start + ROWS]] for index in kept)
            statistics.update_differences(p, q)
    return statistics


def _held_out_pairs(
    point_of: NDArray[np.integer], held_row: NDArray[np.bool_]
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.bool_]] | None:
    """Pairs of held-out patches: their rows, and whether they match. None if there are too few."""
    rows = np.flatnonzero(held_row)
    rows = rows[np.argsort(point_of[rows], kind="stable")]
    rng = np.random.default_rng(0)
    # Each patch with the next of its point; across points, with one at random.
    next_ = np.flatnonzero(point_of[rows[1:]] == point_of[rows[:-1]])
    if len(next_) < 2:
        return None
    if len(next_) > SCORED:
        next_ = rng.choice(next_, SCORED, replace=False)
    one, other = rng.choice(rows, (2, len(next_)))
    different = point_of[one] != point_of[other]
    if not different.any():
        return None
    first = np.concatenate([rows[next_], one[different]])
    second = np.concatenate([rows[next_ + 1], other[different]])
    return first, second, np.arange(len(first)) < len(next_)

"""From labelled patches to a model: describe, gather statistics, solve, and score.

Every source of training data (labels, Phototourism, HPatches, COLMAP, photographs) is a list of
shards that yield blocks of patches with labels; patches of equal labels match. One point in ten is
held out, and the score on those is reported.
"""

from __future__ import annotations

import hashlib
import operator
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import accumulate
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.threads import checked_threads
from mkdesc._support.work import Workers, share_memory
from mkdesc._support.workfolder import WorkFolder
from mkdesc.descriptor import MKD
from mkdesc.heads.head import Head
from mkdesc.heads.whitening import Whitening
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.learn.clock import remaining
from mkdesc.learn.photos import FreshPhotos
from mkdesc.learn.report import Learned, Report
from mkdesc.learn.shards import Part, Shard, held_out, parts_of
from mkdesc.learn.trained_head import TrainedHead, split_points
from mkdesc.learn.views import FixedViews, FreshViews, Replacement
from mkdesc.measures.distances import pair_distances
from mkdesc.measures.ranking import fpr95

#: Pairs of held-out patches that are compared, at most, matching and not.
SCORED = 50_000
#: Where a folder of parts says what they are made of.
RECORD = "mkdesc.json"


class LearnOptions(TypedDict, total=False):
    """What every source of training data passes on to :func:`learn_model`."""

    whitening: Whitening | None
    trained: TrainedHead | None
    workers: Workers
    parts: str | Path | None
    progress: Progress


def learn_model(
    shards: Sequence[Shard],
    mkd: MKD | None = None,
    *,
    whitening: Whitening | None = None,
    trained: TrainedHead | None = None,
    expected: int = 0,
    workers: Workers = None,
    parts: str | Path | None = None,
    progress: Progress = no_progress,
) -> Learned:
    """Learn a whitening from labelled patches, and train a head further if that is asked for.

    Each shard is described and added up on its own, wherever that is done; the whitening is the
    same however the data are cut. Of several shards nothing but sums, and a sample of the points
    that are held out, is kept: there may be any number of them. Raw descriptors wait in temporary
    files, so that memory does not grow with their number.

    Parameters
    ----------
    shards
        Objects with a method ``blocks()`` that yields :class:`TrainingBlock`; a block is one
        itself. No label is in two of them. For processes and clusters they must be picklable, and
        some ten thousand patches are a good size.
    mkd
        The descriptor, without whitening; default: the paper's.
    whitening
        What to learn; default: ``Whitening("gda", power=0.75)``, as the bundled models have it.
    trained
        How to train a head that begins as this whitening, in this process; default: it is not.
    expected
        How many patches there are, about; if there are millions, it keeps the sample small.
    workers
        So many threads (None: one per core), an executor, or a Dask client.
    parts
        For executors and clusters, a folder that all processes see: what is kept of shards waits
        there. Started again with the same folder, those that are there are not done again.
    progress
        Told of every shard: one step, or as many as its ``size`` says. Then of the steps of the
        training.

    Returns
    -------
    Learned
        The descriptor with its whitening or head, and a report.

    Examples
    --------
    >>> from mkdesc.learn import TrainingBlock
    >>> rng = np.random.default_rng(0)
    >>> points = np.repeat(rng.random((400, 16, 16)), 2, axis=0)
    >>> patches = (points + rng.uniform(-0.3, 0.3, points.shape)).astype(np.float32)
    >>> block = TrainingBlock(patches, np.repeat(np.arange(400), 2))
    >>> learned = learn_model([block], MKD("cartesian", 16), whitening=Whitening("lw", 32))
    >>> learned.mkd.transform(patches).shape, learned.report.points
    ((800, 32), 400)
    """
    start = time.perf_counter()
    mkd, whitening = _checked(mkd, whitening)
    here = share_memory(workers)
    further = None if trained is None else TrainedHead(**trained.get_params(deep=False))
    if further is not None:  # said before the work if it cannot be
        if not here:
            raise ValueError("trained: executors and clusters learn linear heads; expected None")
        further.check()
        further.chosen_device()
    folder = None
    if not here:
        if parts is None:
            raise ValueError("parts: expected a folder that all workers see, got None")
        folder = Path(parts)
        _begin(folder, shards, mkd.get_params(), whitening.get_params(), expected)
    # What there is of one shard here, or is trained on, stays whole; otherwise a sample is enough.
    whole = here and (further is not None or len(shards) == 1)
    found = parts_of(shards, mkd, whitening, None if whole else expected, workers, folder)
    total = _merged(shards, found, progress)
    check_points(total.points, total.patches)
    whitening.fit_statistics(total.statistics)
    heads: dict[str, Head | None] = {"raw": None, "learned": whitening.learned()}
    learned: dict[str, Any] = {"whitening": whitening}
    facts: dict[str, Any] = {}
    training: dict[str, Any] = {}
    if further is not None:
        further.whitening = whitening
        further.seconds = remaining(further.seconds, start)
        fresh = getattr(shards[0], "fresh", None) if len(shards) == 1 else None
        _train(further, total, mkd, progress, fresh)
        heads["linear"], heads["learned"] = heads["learned"], further.head_
        learned, training = {"head": further.head_}, further.facts()
        facts["steps"] = further.trained_.steps
        facts["interrupted"] = further.trained_.interrupted
    report = Report(
        patches=total.patches,
        points=total.points,
        pairs=total.statistics.n_pairs,
        **_scores(total.raw, total.labels, heads),
        seconds=time.perf_counter() - start,
        **facts,
    )
    return Learned(MKD(**mkd.get_params(deep=False) | learned), report, training=training)


def _merged(shards: Sequence[Shard], parts: Iterable[Part], progress: Progress) -> Part:
    """What is kept of all shards, as of one."""
    sizes = [getattr(shard, "size", 1) for shard in shards]
    progress("learning", 0, sum(sizes))
    found: list[Part] = []
    for done, part in zip(accumulate(sizes), parts, strict=True):
        for reason in part.skipped:
            warnings.warn(f"skipped: {reason}", RuntimeWarning, stacklevel=3)
        found.append(part)
        progress("learning", done, sum(sizes))
    if not any(part.patches for part in found):
        why = next((f"; {part.skipped[0]}" for part in found if part.skipped), "")
        raise ValueError(f"no patches to learn from{why}")
    if len(found) == 1:  # whose descriptors may be in a file: they stay there
        return found[0]
    own = np.concatenate([np.unique(part.labels) for part in found])
    if len(np.unique(own)) < len(own):
        raise ValueError("shards: expected each label in one of them, got some that are in two")
    return Part(
        sum(part.patches for part in found),
        sum(part.points for part in found),
        reduce(operator.add, (part.statistics for part in found)),
        np.concatenate([part.raw for part in found]),
        np.concatenate([part.labels for part in found]),
    )


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


def work_folder(parts: Path) -> WorkFolder:
    """The folder of parts as what is begun, continued, and discarded when all is done."""
    return WorkFolder(str(parts), str(parts / RECORD))


def _begin(folder: Path, shards: Sequence[Shard], *settings: Any) -> None:
    """Make a folder of parts, or refuse one that has parts of something else."""
    with np.printoptions(threshold=sys.maxsize):  # all of every array
        made_of = repr([*shards, *settings])
    digest = hashlib.sha256(made_of.encode()).hexdigest()
    inputs = {str(file): file for shard in shards for file in getattr(shard, "inputs", ())}
    work_folder(folder).open({"data and settings": digest}, inputs)


def _checked(mkd: MKD | None, whitening: Whitening | None) -> tuple[MKD, Whitening]:
    """Copies of what to learn with: the caller's stay as they are."""
    mkd = MKD(**(MKD() if mkd is None else mkd).get_params(deep=False))
    mkd.set_params(whitening=None, head=None, ratio=None, output="float32")
    chosen = Whitening("gda", power=0.75) if whitening is None else whitening
    chosen.check()
    most = as_parametrization(mkd.parametrization).dims  # a small descriptor keeps all it has
    whitening = Whitening(**chosen.get_params() | {"dims": min(chosen.dims, most)})
    return mkd, whitening


def _train(
    trained: TrainedHead,
    data: Part,
    mkd: MKD,
    progress: Progress,
    fresh: FreshPhotos | None,
) -> None:
    """Train a head on everything that is not held out."""
    raw, labels, statistics = data.raw, data.labels, data.statistics
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

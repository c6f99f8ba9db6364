"""HPatches retrieval: find a patch's other images among distractors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress, no_progress
from mkdesc.datasets.hpatches.layout import NOISES, image_name, sequence_type
from mkdesc.datasets.hpatches.task_lists import RetrievalTask
from mkdesc.evaluation.hpatches.retrieval_pools import POOLS, pool_precisions
from mkdesc.evaluation.hpatches.scores import (
    Descriptors,
    Scores,
    TaskResult,
    get_descriptors,
)


def retrieval(
    descriptors: Descriptors,
    task: RetrievalTask,
    pools: Sequence[int] = POOLS,
    progress: Progress = no_progress,
) -> TaskResult:
    """Find a reference patch's five other images in pools of growing size.

    A pool of size k holds the query's 5 images of one level of noise and the first k - 5 of the
    distractors that are not of the query's own sequence. ``ap`` ranks the pool by distance to
    the query. The task's score is the mean over queries, pools and levels of noise. Where there
    are fewer distractors than that, all there are are taken; of the pools that would then be the
    same, the largest that is whole and one of all are left.

    Parameters
    ----------
    descriptors
        (N, D) by (sequence, image).
    task
        Queries and distractors.
    pools
        Sizes, increasing; by default 100, 500, 1k, 5k, 10k, 15k and 20k.
    progress
        Told of every sequence whose queries are done.

    Returns
    -------
    TaskResult
        ``detail[noise][pool]`` holds the mean over the queries; ``by_type`` is over the queries
        of sequences of that type.
    """
    if not len(task.queries):
        raise ValueError("task.queries: expected at least one, got none")
    names, queries, distractors = task.sequences, task.queries, task.distractors
    sizes = [size for size in pools if size < 5 + len(distractors)]
    if len(sizes) < len(pools):
        sizes.append(5 + len(distractors))
    pool = _in_order(descriptors, names, distractors)
    precision = np.empty((len(queries), len(NOISES), len(sizes), 2))
    dims = pool.shape[1]
    score = pool_precisions(pool, distractors[:, 0], sizes)
    asking = np.unique(queries[:, 0])
    for done, s in enumerate(asking, 1):
        mine = np.flatnonzero(queries[:, 0] == s)
        patches = queries[mine, 1]
        asked = _rows(descriptors, names[s], "ref", patches, dims)
        positives = np.stack(
            [
                _rows(descriptors, names[s], image_name(noise, k), patches, dims)
                for noise in NOISES
                for k in range(1, 6)
            ],
            axis=1,
        )
        precision[mine] = score(asked, positives, int(s))
        progress("retrieval", done, len(asking))

    def mean(values: NDArray[np.float64]) -> Scores:
        trec, trapezoid = values.reshape(-1, 2).mean(axis=0).tolist()
        return {"ap": trec, "ap_trapezoid": trapezoid}

    by_noise = {noise: mean(precision[:, n]) for n, noise in enumerate(NOISES)}
    kinds = np.array([sequence_type(name) for name in names])[queries[:, 0]]
    detail = {
        noise: {str(size): mean(precision[:, n, p]) for p, size in enumerate(sizes)}
        for n, noise in enumerate(NOISES)
    }
    by_type = {str(kind): mean(precision[kinds == kind]) for kind in np.unique(kinds)}
    return TaskResult("retrieval", mean(precision), by_noise, by_type, detail)


def _in_order(
    descriptors: Descriptors, names: Sequence[str], patches: NDArray[np.integer]
) -> NDArray[np.float32]:
    """Descriptors of a list of reference patches, in its order, each sequence looked up once."""
    ordered: NDArray[np.float32] | None = None
    for s in np.unique(patches[:, 0]):
        mine = patches[:, 0] == s
        dims = None if ordered is None else ordered.shape[1]
        part = _rows(descriptors, names[s], "ref", patches[mine, 1], dims)
        if ordered is None:
            ordered = np.empty((len(patches), part.shape[1]), np.float32)
        ordered[mine] = part
    if ordered is None:
        raise ValueError("task.distractors: expected at least one, got none")
    return ordered


def _rows(
    descriptors: Descriptors,
    sequence: str,
    image: str,
    patches: NDArray[np.integer],
    dims: int | None = None,
) -> NDArray[np.float32]:
    values = get_descriptors(descriptors, sequence, image, dims=dims)
    if len(patches) and patches.max() >= len(values):
        raise ValueError(
            f"descriptors[{sequence!r}, {image!r}]: expected more than {patches.max()} rows, "
            f"got {len(values)}"
        )
    return values[patches]

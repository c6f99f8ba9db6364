"""HPatches verification: tell whether two patches show the same surface."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.datasets.hpatches.layout import NOISES, image_name, sequence_type
from mkdesc.datasets.hpatches.task_lists import VerificationTask
from mkdesc.evaluation.hpatches.scores import (
    Descriptors,
    Scores,
    TaskResult,
    both_precisions,
    get_descriptors,
    mean_scores,
)
from mkdesc.measures.distances import pair_distances
from mkdesc.measures.ranking import precision_recall_curve, roc_auc, roc_curve


def _stack(
    descriptors: Descriptors, names: tuple[str, ...], noise: str, images: int
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """All descriptors of one level of noise in one array.

    Returns it (rows, D), the row where each sequence begins, and each sequence's patches; the
    images of a sequence follow each other.
    """
    shapes = [get_descriptors(descriptors, name, "ref").shape for name in names]
    count, dims = np.array([shape[0] for shape in shapes]), shapes[0][1]
    start = np.concatenate([[0], np.cumsum(count * images)])
    stacked = np.empty((start[-1], dims), np.float32)
    for name, row, patches in zip(names, start[:-1], count, strict=True):
        for k in range(images):
            values = get_descriptors(descriptors, name, image_name(noise, k), int(patches), dims)
            stacked[row + k * patches : row + (k + 1) * patches] = values
    return stacked, start[:-1], count


def verification(
    descriptors: Descriptors, task: VerificationTask, curves: int | None = None
) -> TaskResult:
    """Tell pairs that show the same patch from pairs that do not.

    For each level of noise and each kind of negatives (intra: two patches of one sequence;
    inter: of two sequences), ``ap`` ranks the negatives and the first fifth of the positives by
    distance (of the published lists, a million and 0.2 million), and ``auc`` is the area under
    the ROC curve of all positives against the negatives. The task's score is the mean over the
    six cases. An image k of a pair is the strip ``ek``, ``hk`` or ``tk``, 0 the reference.

    Parameters
    ----------
    descriptors
        (N, D) by (sequence, image).
    task
        The pairs.
    curves
        Number of points of the precision-recall and ROC curves to return, if any.

    Returns
    -------
    TaskResult
        ``detail[noise]["intra" | "inter"]`` holds the six cases. ``by_type`` is the mean over
        the cases where both patches of the pairs are of a sequence of that type.
    """
    names = task.sequences
    kinds = np.array([sequence_type(name) for name in names])
    tables = {"positives": task.positives, "intra": task.intra, "inter": task.inter}
    images = 1 + max(int(table[:, [1, 4]].max(initial=0)) for table in tables.values())
    detail: dict[str, dict[str, Scores]] = {}
    typed: dict[str, list[Scores]] = {kind: [] for kind in sorted(set(kinds))}
    plots: dict[str, Any] = {}
    for noise in NOISES:
        stacked, start, count = _stack(descriptors, names, noise, images)
        similarity = {}
        for key, table in tables.items():
            s1, t1, i1, s2, t2, i2 = table.T
            if (i1 >= count[s1]).any() or (i2 >= count[s2]).any():
                raise ValueError(f"task.{key}: a pair points past the end of its sequence")
            rows = start[s1] + t1 * count[s1] + i1, start[s2] + t2 * count[s2] + i2
            similarity[key] = -pair_distances(stacked, *rows)
        del stacked
        detail[noise] = {}
        for key in ("intra", "inter"):
            positive, negative = similarity["positives"], similarity[key]
            detail[noise][key] = _verify(positive, negative)
            if curves is not None:
                plots.setdefault(noise, {})[key] = _curves(positive, negative, curves)
            for kind, scores in typed.items():
                mine = kinds == kind
                chosen = [
                    similarity[part][mine[tables[part][:, 0]] & mine[tables[part][:, 3]]]
                    for part in ("positives", key)
                ]
                if all(map(len, chosen)):
                    scores.append(_verify(*chosen))
    by_noise = {noise: mean_scores(list(cases.values())) for noise, cases in detail.items()}
    by_type = {kind: mean_scores(scores) for kind, scores in typed.items() if scores}
    return TaskResult(
        "verification", mean_scores(list(by_noise.values())), by_noise, by_type, detail, plots
    )


def _joined(
    positive: NDArray[np.float32], negative: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    labels = np.arange(len(positive) + len(negative)) < len(positive)
    return np.concatenate([positive, negative]), labels


def _verify(positive: NDArray[np.float32], negative: NDArray[np.float32]) -> Scores:
    few = positive[: max(1, len(positive) // 5)]
    return {
        **both_precisions(*_joined(few, negative)),
        "auc": roc_auc(*_joined(positive, negative)),
    }


def _curves(
    positive: NDArray[np.float32], negative: NDArray[np.float32], points: int
) -> dict[str, list[float]]:
    few = positive[: max(1, len(positive) // 5)]
    roc = roc_curve(*_joined(positive, negative), points)
    pr = precision_recall_curve(*_joined(few, negative), points=points)
    return {
        "fpr": roc.x.tolist(),
        "tpr": roc.y.tolist(),
        "recall": pr.x.tolist(),
        "precision": pr.y.tolist(),
    }

"""The pose benchmark: how well matches tell where the second camera was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress
from mkdesc._support.work import Workers
from mkdesc.datasets.poses import MAX_ANGLE, PosePair, read_pose_pairs
from mkdesc.evaluation.photographs.extracting import FoundFeatures
from mkdesc.evaluation.photographs.homography import DEFAULT_METHODS
from mkdesc.evaluation.photographs.homography_scores import area_under_errors
from mkdesc.evaluation.photographs.pose_scores import PoseScores, score_pose
from mkdesc.evaluation.photographs.scoring import (
    MethodScores,
    PhotographOptions,
    score_methods,
)
from mkdesc.evaluation.report.plots import Plot
from mkdesc.evaluation.report.runs import Results, save_results
from mkdesc.evaluation.report.table import Row, Table, short_names

#: Degrees up to which the accuracy of poses is told.
LIMITS = (5.0, 10.0, 20.0)

#: Thresholds of MAGSAC++, in pixels, that are tried where the best is to be chosen.
THRESHOLDS = (0.5, 1.0, 1.5, 2.0, 3.0)

#: Of so many pairs one is held out to choose the threshold on.
HELD_OUT = 4

_COLUMNS = (
    *(f"AUC {limit:g} deg" for limit in LIMITS),
    "inliers",
    "precision",
    "keypoints",
    "threshold, px",
    "CPU s/MP",
    "s/pair",
)


def run_pose(
    truth: str | Path,
    methods: Iterable[str] = DEFAULT_METHODS,
    *,
    options: PhotographOptions | None = None,
    threshold: float | None = 1.0,
    max_angle: float = MAX_ANGLE,
    output: str | Path | None = None,
    progress: Progress | None = None,
    workers: Workers = None,
) -> Results:
    """Judge local features by the relative poses that their matches give.

    Parameters
    ----------
    truth, max_angle
        As for :func:`mkdesc.datasets.poses.read_pose_pairs`.
    methods
        Names, as :mod:`mkdesc.evaluation.photographs.methods` has them.
    options
        What is asked of every method; None: 2,000 keypoints of photographs of 1,024 px.
    threshold
        Of MAGSAC++, pixels; None: for each method the best of :data:`THRESHOLDS` on every fourth
        pair, and the results are those of the other pairs.
    output, progress, workers
        As for :func:`mkdesc.evaluation.run_homography`.
    """
    if threshold is not None and not 0 < threshold < np.inf:
        raise ValueError(f"threshold: expected a finite number > 0, got {threshold!r}")
    pairs = read_pose_pairs(truth, max_angle)
    tried = THRESHOLDS if threshold is None else (threshold,)
    judged = score_methods(
        "pose",
        pairs,
        partial(_score_pair, tried),
        methods,
        options or PhotographOptions(max_size=1024),
        output,
        progress,
        workers,
        {"thresholds": list(tried), "pairs": [pair.name for pair in pairs]},
    )
    results = _results(pairs, judged, tried)
    if output is not None:
        save_results(output, results)
    return results


def _score_pair(
    thresholds: Sequence[float],
    pair: PosePair,
    found: tuple[FoundFeatures, FoundFeatures],
    matches: NDArray[np.int64],
) -> list[PoseScores]:
    """The scores of a pair, for each threshold."""
    rays, focals = [], []
    for one, camera, rows in zip(found, pair.cameras, matches.T, strict=True):
        xy = (one.features.xy[rows] + 0.5) / one.scale - 0.5
        rays.append(camera.rays(xy))
        focal = np.sqrt(abs(np.linalg.det(camera.matrix[:2, :2])))
        focals.append(float(focal * np.sqrt(one.scale[0] * one.scale[1])))
    return [
        score_pose(
            (rays[0], rays[1]),
            (focals[0], focals[1]),
            pair.rotation,
            pair.translation,
            threshold,
        )
        for threshold in thresholds
    ]


def _results(
    pairs: list[PosePair],
    judged: dict[str, MethodScores[list[PoseScores]]],
    tried: Sequence[float],
) -> Results:
    labels = short_names(judged)
    chosen = len(tried) > 1
    reported = [i for i in range(len(pairs)) if not chosen or i % HELD_OUT]
    rows, curves, details = [], {}, {}
    for name, one in judged.items():
        best = _best_threshold(one) if chosen else 0
        scores = [one.scores[i][best] for i in reported]
        errors = [score.error for score in scores]
        matches = sum(score.matches for score in scores)
        values = (
            *(100 * area for area in area_under_errors(errors, LIMITS)),
            round(float(np.mean([score.inliers for score in scores]))),
            sum(score.right for score in scores) / matches if matches else None,
            round(one.keypoints),
            tried[best],
            one.cost,
            one.seconds,
        )
        rows.append(Row(labels[name], values))
        degrees = np.linspace(0, LIMITS[-1], 41)
        shares = (np.asarray(errors)[:, None] <= degrees).mean(axis=0)
        curves[labels[name]] = {"x": degrees.tolist(), "y": shares.tolist()}
        details[name] = {
            "pairs": {pairs[i].name: one.scores[i][best]._asdict() for i in reported},
            "threshold": tried[best],
        }
    held = f"; thresholds chosen on {len(pairs) - len(reported)} others" if chosen else ""
    title = f"Relative poses: {len(reported)} pairs{held}"
    table = Table("pose", title, _COLUMNS, tuple(rows), corner="method")
    plot = Plot(
        "pose-errors", "Pose errors", "curves", {"all pairs": curves}, "degrees", "share of pairs"
    )
    return Results("pose", (table,), details, (plot,))


def _best_threshold(judged: MethodScores[list[PoseScores]]) -> int:
    held_out = judged.scores[::HELD_OUT]
    areas = [
        area_under_errors([scores[i].error for scores in held_out], LIMITS)
        for i in range(len(held_out[0]))
    ]
    return int(np.argmax([sum(area) for area in areas]))

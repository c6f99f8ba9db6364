"""The pose benchmark: how well matches tell where the second camera was."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from mkdesc._support.arrays import is_number
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.work import Workers
from mkdesc.datasets.poses import MAX_ANGLE, PosePair, read_pose_pairs
from mkdesc.evaluation.photographs.base import PhotographOptions
from mkdesc.evaluation.photographs.gallery import KEY, draw_gallery
from mkdesc.evaluation.photographs.homography import DEFAULT_METHODS
from mkdesc.evaluation.photographs.homography_scores import area_under_errors
from mkdesc.evaluation.photographs.pose_scores import PoseScores, epipolar_distances, score_pose
from mkdesc.evaluation.photographs.scoring import (
    COST_COLUMNS,
    Floats,
    Matched,
    MethodScores,
    by_pair,
    pair_plot,
    score_methods,
)
from mkdesc.evaluation.report.plots import Plot
from mkdesc.evaluation.report.runs import Results, save_results
from mkdesc.evaluation.report.table import Row, Table, short_names
from mkdesc.geometry.estimate import DEFAULT_OPTIONS
from mkdesc.geometry.options import EstimatorOptions

#: Degrees up to which the accuracy of poses is told.
LIMITS = (1.0, 2.0, 5.0, 10.0, 20.0)

#: Thresholds in pixels that are tried where the best is to be chosen.
THRESHOLDS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)

#: Of so many pairs one is held out to choose the threshold on.
HELD_OUT = 4

_COLUMNS = (
    *(f"AUC {limit:g} deg" for limit in LIMITS),
    "inliers",
    "precision",
    "threshold, px",
    *COST_COLUMNS,
)


def run_pose(
    truth: str | Path,
    methods: Iterable[str] = DEFAULT_METHODS,
    *,
    options: PhotographOptions | None = None,
    threshold: float | Literal["auto"] = 1.0,
    estimator: EstimatorOptions = DEFAULT_OPTIONS,
    max_angle: float = MAX_ANGLE,
    output: str | Path | None = None,
    progress: Progress = no_progress,
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
        Largest error of an inlier, in pixels. ``"auto"``: for each method the best of
        :data:`THRESHOLDS` on a quarter of the pairs, chosen by a hash of their names; the
        results are those of the others.
    estimator
        How poses are estimated, and with which library.
    output, progress, workers
        As for :func:`mkdesc.evaluation.run_homography`.
    """
    if threshold != "auto" and not (is_number(threshold) and 0 < threshold < np.inf):
        raise ValueError(f"threshold: expected a finite number > 0 or 'auto', got {threshold!r}")
    pairs = read_pose_pairs(truth, max_angle)
    tried = THRESHOLDS if threshold == "auto" else (float(threshold),)
    held_out = hold_out([pair.name for pair in pairs]) if threshold == "auto" else set()
    judged = score_methods(
        "pose",
        pairs,
        partial(_score_pair, tried, estimator),
        methods,
        options or PhotographOptions(max_size=1024),
        output,
        progress,
        workers,
        {
            "thresholds": list(tried),
            "estimator": {**asdict(estimator), "backend": estimator.library},
            "pairs": [pair.name for pair in pairs],
        },
    )
    scored = {
        name: _at_best_threshold(one, tried, held_out) for name, one in judged.methods.items()
    }
    reported = [pair for i, pair in enumerate(pairs) if i not in held_out]
    results = _results(reported, scored, len(held_out), estimator.library)
    if output is not None:
        ranks = {name: [score.error for score in one.scores] for name, one in scored.items()}
        drawn = draw_gallery(judged, reported, ranks, _errors, "degrees")
        save_results(output, results, pictures=drawn, key=KEY)
    return results


def hold_out(names: Sequence[str]) -> set[int]:
    """Which of the pairs of these names to choose on: a quarter, whatever their order.

    Examples
    --------
    >>> len(hold_out(["a", "b", "c", "d", "e"]))
    2
    """
    if len(names) < 2:
        raise ValueError("threshold: 'auto' needs two pairs or more, to choose on some of them")
    digests = [hashlib.sha256(name.encode()).digest() for name in names]
    order = sorted(range(len(names)), key=lambda i: (digests[i], i))
    return set(order[: -(-len(names) // HELD_OUT)])


class _Scored(NamedTuple):
    """A method at one threshold: its scores on the pairs that are reported, and the rest."""

    scores: list[PoseScores]
    threshold: float
    judged: MethodScores[list[PoseScores]]


def _at_best_threshold(
    judged: MethodScores[list[PoseScores]], tried: Sequence[float], held_out: set[int]
) -> _Scored:
    """At the threshold that is best on what is held out; at the first, if nothing is."""
    areas = [
        sum(area_under_errors([judged.scores[i][k].error for i in sorted(held_out)], LIMITS))
        for k in range(len(tried))
    ]
    best = int(np.argmax(areas))
    scores = [one[best] for i, one in enumerate(judged.scores) if i not in held_out]
    return _Scored(scores, tried[best], judged)


def _score_pair(
    thresholds: Sequence[float], estimator: EstimatorOptions, pair: PosePair, matched: Matched
) -> list[PoseScores]:
    """The scores of a pair, for each threshold."""
    rays, focals = _rays(pair, matched)
    return [
        score_pose(rays, focals, pair.rotation, pair.translation, threshold, estimator)
        for threshold in thresholds
    ]


def _errors(pair: PosePair, matched: Matched) -> Floats:
    """Pixels (K,) of matches from the true epipolar lines, in the images as they were judged."""
    rays, focals = _rays(pair, matched)
    return epipolar_distances(rays, pair.rotation, pair.translation) * np.sqrt(np.prod(focals))


def _rays(pair: PosePair, matched: Matched) -> tuple[tuple[Floats, Floats], tuple[float, float]]:
    """Rays (K, 2) of the matches in either camera, and pixels for each unit of them."""
    rays, focals = [], []
    for one, camera, points in zip(matched.found, pair.cameras, matched.points, strict=True):
        rays.append(camera.rays((points + 0.5) / one.scale - 0.5))
        focal = np.sqrt(abs(np.linalg.det(camera.matrix[:2, :2])))
        focals.append(float(focal * np.sqrt(one.scale[0] * one.scale[1])))
    return (rays[0], rays[1]), (focals[0], focals[1])


def _results(
    pairs: list[PosePair], scored: dict[str, _Scored], held_out: int, library: str
) -> Results:
    labels = short_names(scored)
    degrees = np.linspace(0, LIMITS[-1], 41)
    rows, details = [], {}
    curves: dict[str, dict[str, list[float]]] = {}
    for name, (scores, threshold, one) in scored.items():
        errors = [score.error for score in scores]
        matches = sum(score.matches for score in scores)
        values = (
            *(100 * area for area in area_under_errors(errors, LIMITS)),
            round(float(np.mean([score.inliers for score in scores]))),
            sum(score.right for score in scores) / matches if matches else None,
            threshold,
            *one.costs(),
        )
        rows.append(Row(labels[name], values))
        shares = (np.asarray(errors)[:, None] <= degrees).mean(axis=0)
        curves[labels[name]] = {"x": degrees.tolist(), "y": shares.tolist()}
        details[name] = {
            "pairs": by_pair(pairs, scores),
            "threshold": threshold,
            "CPU seconds per pair": one.seconds,
        }
    held = f"; thresholds chosen on {held_out} others" if held_out else ""
    name = {"poselib": "PoseLib", "opencv": "OpenCV's MAGSAC++"}[library]
    title = f"Relative poses by {name}: {len(pairs)} pairs{held}"
    table = Table("pose", title, _COLUMNS, tuple(rows), corner="method")
    words = "degrees", "share of pairs"
    plots = (
        Plot("pose-errors", "Pose errors", "curves", {"": curves}, *words),
        pair_plot("Pose errors", "error", "degrees", details, labels, log=True),
        pair_plot("Inliers", "inliers", "inliers", details, labels),
    )
    return Results("pose", (table,), details, plots)

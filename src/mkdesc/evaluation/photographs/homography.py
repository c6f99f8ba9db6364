"""The homography benchmark: sequences of photographs of planes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.work import Workers
from mkdesc.datasets.homographies import HomographyPair, read_sequences
from mkdesc.evaluation.photographs.base import FoundFeatures, PhotographOptions
from mkdesc.evaluation.photographs.gallery import KEY, draw_gallery
from mkdesc.evaluation.photographs.homography_scores import (
    CURVE,
    HomographyScores,
    area_under_errors,
    moved,
    score_homography,
)
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

#: What is judged when nothing is named.
DEFAULT_METHODS = ("rootsift", "mkdesc", "mkdesc+grow", "orb")

#: Pixels up to which the accuracy of homographies is told.
LIMITS = (3.0, 5.0, 10.0)

_COLUMNS = (
    "distinct right matches",
    "times the first",
    "precision",
    "within 1 px",
    "cells",
    "solved",
    *(f"AUC {limit:g} px" for limit in LIMITS),
    "repeatability",
    *COST_COLUMNS,
)


def run_homography(
    root: str | Path,
    methods: Iterable[str] = DEFAULT_METHODS,
    *,
    options: PhotographOptions | None = None,
    threshold: float = 3.0,
    output: str | Path | None = None,
    progress: Progress = no_progress,
    workers: Workers = None,
) -> Results:
    """Judge local features by homographies between photographs of planes.

    Parameters
    ----------
    root
        As for :func:`mkdesc.datasets.homographies.read_sequences`.
    methods
        Names, as :mod:`mkdesc.evaluation.photographs.methods` has them; the others are compared
        with the first.
    options
        What is asked of every method.
    threshold
        Largest error of an inlier of the estimate, in pixels.
    output
        Run folder; None: nothing is written. The methods that it has already stay in it.
    progress
        Called with what is being done, how much of it is done, and how much there is.
    workers
        Threads, an executor or a Dask client; ``output`` must then be a place that they see.
    """
    if not 0 < threshold < np.inf:
        raise ValueError(f"threshold: expected a finite number > 0, got {threshold!r}")
    pairs = read_sequences(root)
    judged = score_methods(
        "homography",
        pairs,
        partial(_score_pair, threshold),
        methods,
        options or PhotographOptions(),
        output,
        progress,
        workers,
        {"threshold": threshold, "sequences": sorted({pair.scene for pair in pairs})},
    )
    scored = judged.methods
    results = _results(pairs, scored)
    if output is not None:
        ranks = {name: [one.corner_error for one in had.scores] for name, had in scored.items()}
        drawn = draw_gallery(judged, pairs, ranks, _errors, "px")
        save_results(output, results, pictures=drawn, key=KEY)
    return results


def _score_pair(threshold: float, pair: HomographyPair, matched: Matched) -> HomographyScores:
    a, b = matched.found
    truth, shapes = _truth(pair, matched.found), (a.shape, b.shape)
    return score_homography(matched.points, (a.xy, b.xy), truth, shapes, threshold)


def _errors(pair: HomographyPair, matched: Matched) -> Floats:
    """Pixels (K,) of matches from where the truth has them."""
    here, there = matched.points
    return np.linalg.norm(moved(here, _truth(pair, matched.found)) - there, axis=1)


def _truth(pair: HomographyPair, found: tuple[FoundFeatures, FoundFeatures]) -> Floats:
    """The true homography (3, 3), between the images as they were judged."""
    first, second = (_to_file_pixels(one) for one in found)
    homography = np.linalg.inv(second) @ pair.homography @ first
    return np.asarray(homography / homography[2, 2], np.float64)


def _to_file_pixels(found: FoundFeatures) -> Floats:
    """(3, 3): from the pixels that features were found in to those of the file."""
    x, y = found.scale
    return np.array([[1 / x, 0, 0.5 / x - 0.5], [0, 1 / y, 0.5 / y - 0.5], [0, 0, 1]])


def _results(
    pairs: list[HomographyPair], judged: dict[str, MethodScores[HomographyScores]]
) -> Results:
    labels = short_names(judged)
    first = next(iter(judged.values()))
    rows = [Row(labels[name], _cells(one, first)) for name, one in judged.items()]
    title = f"Homographies: {len(pairs)} pairs"
    tables = [Table("homography", title, _COLUMNS, tuple(rows), corner="method")]
    by_scene = []
    for name, one in judged.items():
        counts = dict.fromkeys((pair.scene for pair in pairs), 0)
        for pair, score in zip(pairs, one.scores, strict=True):
            counts[pair.scene] += score.distinct
        by_scene.append(Row(labels[name], tuple(counts.values())))
    title = "Distinct right matches by sequence"
    scenes = tuple(dict.fromkeys(pair.scene for pair in pairs))
    tables.append(Table("homography-scenes", title, scenes, tuple(by_scene), corner="method"))
    curves = {
        labels[name]: {
            "x": list(CURVE),
            "y": [float(y) for y in np.mean([score.accuracy for score in one.scores], axis=0)],
        }
        for name, one in judged.items()
    }
    details = {
        name: {"pairs": by_pair(pairs, one.scores), "CPU seconds per pair": one.seconds}
        for name, one in judged.items()
    }
    title, words = "Mean matching accuracy", ("pixels", "share of matches within")
    plots = (
        Plot("matching-accuracy", title, "curves", {"": curves}, *words),
        pair_plot("Distinct right matches", "distinct", "matches", details, labels),
        pair_plot("Errors of the corners", "corner_error", "pixels", details, labels, log=True),
    )
    return Results("homography", tuple(tables), details, plots)


def _cells(
    judged: MethodScores[HomographyScores], first: MethodScores[HomographyScores]
) -> tuple[float | str | None, ...]:
    scores = judged.scores
    distinct, base = (sum(score.distinct for score in one.scores) for one in (judged, first))
    matches = sum(score.matches for score in scores)
    return (
        distinct,
        distinct / base if base else None,
        sum(score.right for score in scores) / matches if matches else None,
        sum(score.exact for score in scores),
        sum(score.cells for score in scores),
        f"{sum(score.solved for score in scores)} of {len(scores)}",
        *area_under_errors([score.corner_error for score in scores], LIMITS),
        float(np.mean([score.repeatability for score in scores])),
        *judged.costs(),
    )

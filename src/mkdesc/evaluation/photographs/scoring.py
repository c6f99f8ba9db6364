"""All methods on all pairs: features once for each photograph, then matches, then scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_integer, check_number
from mkdesc._support.progress import Progress
from mkdesc._support.work import Workers, in_order
from mkdesc.evaluation.photographs.extracting import (
    Extraction,
    FoundFeatures,
    extract_all,
    known_method,
    mean_cost,
)
from mkdesc.evaluation.photographs.methods import get_method, get_methods
from mkdesc.evaluation.report.plots import Plot
from mkdesc.evaluation.report.runs import open_run, with_earlier
from mkdesc.matching.nearest import match_descriptors

S = TypeVar("S")


class _ImagePair(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def images(self) -> tuple[Path, Path]: ...


P = TypeVar("P", bound=_ImagePair)


class PhotographOptions(NamedTuple):
    """What is asked of every method.

    Attributes
    ----------
    keypoints
        How many to find at most.
    max_size
        Pixels of the longer side that photographs are reduced to; None: they stay as they are.
    ratio
        Of Lowe's test; None: mutual nearest neighbours alone. Matchers of their own have none.
    """

    keypoints: int = 2000
    max_size: int | None = None
    ratio: float | None = None

    def check(self) -> None:
        """Refuse what makes no sense."""
        check_integer("keypoints", self.keypoints)
        check_integer("max_size", self.max_size, optional=True)
        check_number("ratio", self.ratio, above=0, most=1, optional=True)


class MethodScores(NamedTuple, Generic[S]):
    """How one method did.

    Attributes
    ----------
    scores
        One for each pair, in their order.
    keypoints
        Mean number of keypoints of a photograph.
    cost
        CPU seconds per megapixel to find and describe them.
    seconds
        By the clock, per pair, to match and to estimate.
    """

    scores: list[S]
    keypoints: float
    cost: float
    seconds: float


def score_methods(
    benchmark: str,
    pairs: Sequence[P],
    score: Callable[[P, tuple[FoundFeatures, FoundFeatures], NDArray[np.int64]], S],
    methods: Iterable[str],
    options: PhotographOptions,
    output: str | Path | None,
    progress: Progress,
    workers: Workers,
    more: dict[str, Any],
) -> dict[str, MethodScores[S]]:
    """Score all methods on all pairs, those that the run folder already has among them.

    Parameters
    ----------
    benchmark
        Its name.
    pairs
        Those to match.
    score
        Given a pair, the features of both photographs, and the matches (K, 2) between them. For
        processes and clusters a function of a module.
    methods
        Names, as :mod:`mkdesc.evaluation.photographs.methods` has them.
    options
        What is asked of every method.
    output
        Run folder; None: nothing is kept.
    progress, workers
        Who is told of what is done, and who does it.
    more
        What else the scores depend on, for the configuration of the run.
    """
    options.check()
    chosen = with_earlier(output, get_methods(list(methods)), get_method)
    names = photograph_names(pairs)
    files = {name: path for path, name in names.items()}
    config = {
        "benchmark": benchmark,
        **options._asdict(),
        **more,
        "descriptors": {method.name: method.identity for method in chosen},
    }
    judged = {}
    with open_run(output, config, files) as folder:
        settings = Extraction(folder.absolute(), options.keypoints, options.max_size)
        extract_all(chosen, files, settings, workers, progress)
        for method in chosen:
            work = partial(_score, settings, method.name, options.ratio, names, score)
            rows: list[tuple[S, float]] = []
            for row in in_order(work, pairs, workers):
                rows.append(row)
                progress(f"pairs: {method.name}", len(rows), len(pairs))
            found = [settings.load(method.name, name) for name in files]
            judged[method.name] = MethodScores(
                [row for row, _ in rows],
                float(np.mean([len(one.features.xy) for one in found])),
                mean_cost(found),
                float(np.mean([seconds for _, seconds in rows])),
            )
    return judged


def photograph_names(pairs: Iterable[_ImagePair]) -> dict[Path, str]:
    """Names of photographs: folder and file, or the whole path where these are not enough."""
    paths = dict.fromkeys(path for pair in pairs for path in pair.images)
    short = {path: f"{path.parent.name}/{path.name}" for path in paths}
    if len(set(short.values())) == len(short):
        return short
    return {path: path.as_posix().lstrip("/") for path in paths}


def _score(
    settings: Extraction,
    method: str,
    ratio: float | None,
    names: dict[Path, str],
    score: Callable[[P, tuple[FoundFeatures, FoundFeatures], NDArray[np.int64]], S],
    pair: P,
) -> tuple[S, float]:
    a, b = (settings.load(method, names[path]) for path in pair.images)
    start = time.perf_counter()
    found = score(pair, (a, b), match_photographs(method, a, b, ratio))
    return found, time.perf_counter() - start


def match_photographs(
    method: str, a: FoundFeatures, b: FoundFeatures, ratio: float | None
) -> NDArray[np.int64]:
    """Matches (K, 2) between two photographs, by rows of their features.

    Parameters
    ----------
    method
        Its name: it may have a matcher of its own.
    a, b
        What it found in either.
    ratio
        As for :class:`PhotographOptions`.
    """
    if not len(a.features.xy) or not len(b.features.xy):
        return np.empty((0, 2), np.int64)
    own = known_method(method).match
    if own is not None:
        return own(a.features, b.features, (a.shape, b.shape))
    rows = a.features.descriptors, b.features.descriptors
    return match_descriptors(*rows, ratio=ratio).pairs


class _Scores(Protocol):
    def _asdict(self) -> dict[str, Any]: ...


def by_pair(pairs: Sequence[P], scores: Sequence[_Scores]) -> dict[str, dict[str, Any]]:
    """Scores by the names of their pairs, as plain values; None for what is not finite."""
    return {
        pair.name: {
            key: None if isinstance(value, float) and not np.isfinite(value) else value
            for key, value in score._asdict().items()
        }
        for pair, score in zip(pairs, scores, strict=True)
    }


def pair_plot(
    title: str,
    key: str,
    unit: str,
    details: dict[str, Any],
    labels: dict[str, str],
    log: bool = False,
) -> Plot:
    """One score of every pair, by each method against the first.

    Parameters
    ----------
    title, unit
        Above the plot, and along its axes.
    key
        Which score.
    details
        By method, with what :func:`by_pair` gives as ``pairs``.
    labels
        What methods are called in plots.
    log
        Whether axes are logarithmic.
    """
    series = {
        labels[name]: {pair: scores[key] for pair, scores in one["pairs"].items()}
        for name, one in details.items()
    }
    name = f"pairs-{key.replace('_', '-')}"
    return Plot(name, f"{title}, pair by pair", "pairs", {"": series}, unit, unit, log)

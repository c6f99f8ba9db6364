"""All methods on all pairs: features once for each photograph, then matches, then scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress
from mkdesc._support.work import Workers, in_order
from mkdesc.evaluation.photographs.base import FoundFeatures, Method, PhotographOptions
from mkdesc.evaluation.photographs.extracting import (
    Extraction,
    PhotographFile,
    extract_all,
    known_method,
    mean_cost,
    one_thread_for_each_piece,
    read_photograph,
    timed,
)
from mkdesc.evaluation.photographs.methods import get_method, get_methods
from mkdesc.evaluation.report.plots import Plot
from mkdesc.evaluation.report.runs import open_run, with_earlier
from mkdesc.matching.growing.grow import grow_matches
from mkdesc.matching.nearest import match_descriptors

Floats = NDArray[np.float64]
S = TypeVar("S")


class _ImagePair(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def images(self) -> tuple[Path, Path]: ...


P = TypeVar("P", bound=_ImagePair)


class Matched(NamedTuple):
    """A pair of photographs as a method has matched it.

    Attributes
    ----------
    found
        Features of both photographs.
    points
        (K, 2) and (K, 2): positions of the matches in either.
    seconds
        Of CPU, in one thread, to match and to grow.
    """

    found: tuple[FoundFeatures, FoundFeatures]
    points: tuple[Floats, Floats]
    seconds: float


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
        Of CPU, per pair, to match and to grow.
    """

    scores: list[S]
    keypoints: float
    cost: float
    seconds: float

    def costs(self) -> tuple[float, ...]:
        """The cells of :data:`COST_COLUMNS`."""
        return round(self.keypoints), self.cost, round(1000 * self.seconds)


#: Columns that every benchmark has.
COST_COLUMNS = ("keypoints", "CPU s/MP", "CPU ms/pair")


class Judged(NamedTuple, Generic[S]):
    """What came of a run.

    Attributes
    ----------
    settings
        The cache, with the features of all methods.
    files
        All photographs, by the paths that pairs have.
    methods
        Scores of each, by name.
    """

    settings: Extraction
    files: dict[Path, PhotographFile]
    methods: dict[str, MethodScores[S]]


def score_methods(
    benchmark: str,
    pairs: Sequence[P],
    score: Callable[[P, Matched], S],
    methods: Iterable[str],
    options: PhotographOptions,
    output: str | Path | None,
    progress: Progress,
    workers: Workers,
    more: dict[str, Any],
) -> Judged[S]:
    """Score all methods on all pairs, those that the run folder already has among them.

    Parameters
    ----------
    benchmark
        Its name.
    pairs
        Those to match.
    score
        Given a pair and its matches. For processes and clusters a function of a module.
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
    files = photograph_files(pairs)
    config = {
        "benchmark": benchmark,
        **options._asdict(),
        **more,
        "descriptors": {method.name: method.identity for method in chosen},
    }
    inputs = dict(files.values())
    with open_run(output, config, inputs) as folder, one_thread_for_each_piece():
        settings = Extraction(folder.absolute(), options)
        judged: Judged[S] = Judged(settings, files, {})
        extract_all(chosen, files.values(), settings, workers, progress)
        pieces = [(pair, files_of(pair, files)) for pair in pairs]
        for method in chosen:
            rows: list[tuple[S, float]] = []
            for row in in_order(partial(_score, settings, method.name, score), pieces, workers):
                rows.append(row)
                progress(f"pairs: {method.name}", len(rows), len(pairs))
            found = [settings.load(method.features, name) for name in inputs]
            judged.methods[method.name] = MethodScores(
                [row for row, _ in rows],
                float(np.mean([len(one.xy) for one in found])),
                mean_cost(found),
                float(np.mean([seconds for _, seconds in rows])),
            )
    return judged


def photograph_files(pairs: Iterable[_ImagePair]) -> dict[Path, PhotographFile]:
    """Photographs by path; named by folder and file, or the whole path if these do not suffice."""
    paths = dict.fromkeys(path for pair in pairs for path in pair.images)
    names = [f"{path.parent.name}/{path.name}" for path in paths]
    if len(set(names)) < len(names):
        names = [path.as_posix().lstrip("/") for path in paths]
    return {
        path: PhotographFile(name, path.absolute())
        for path, name in zip(paths, names, strict=True)
    }


def files_of(
    pair: _ImagePair, files: dict[Path, PhotographFile]
) -> tuple[PhotographFile, PhotographFile]:
    """The two photographs of a pair."""
    first, second = pair.images
    return files[first], files[second]


def _score(
    settings: Extraction,
    method: str,
    score: Callable[[P, Matched], S],
    piece: tuple[P, tuple[PhotographFile, PhotographFile]],
) -> tuple[S, float]:
    pair, files = piece
    matched = match_photographs(settings, method, files)
    return score(pair, matched), matched.seconds


def match_photographs(
    settings: Extraction, name: str, files: tuple[PhotographFile, PhotographFile]
) -> Matched:
    """Match two photographs, and grow the matches if the method says so.

    Parameters
    ----------
    settings
        The cache, with the features of both.
    name
        Of the method.
    files
        The photographs.
    """
    method, options = known_method(name), settings.options
    a, b = (settings.load(method.features, file.name) for file in files)
    images = [read_photograph(file, options.max_size).gray for file in files if method.grows]

    def matches() -> tuple[Floats, Floats]:
        pairs = _pairs(method, a, b, options.ratio)
        if not method.grows:
            return a.xy[pairs[:, 0]], b.xy[pairs[:, 1]]
        one, two = images
        grown = grow_matches(one, two, a.keypoints, b.keypoints, pairs, n_threads=1)
        return grown.points_a, grown.points_b

    points, seconds = timed(f"matches {name}", matches)
    return Matched((a, b), points, seconds)


def _pairs(
    method: Method, a: FoundFeatures, b: FoundFeatures, ratio: float | None
) -> NDArray[np.int64]:
    """Matches (K, 2) by rows of the features."""
    if not len(a.xy) or not len(b.xy):
        return np.empty((0, 2), np.int64)
    if method.match is not None:
        return method.match(a, b)
    return match_descriptors(a.descriptors, b.descriptors, ratio=ratio).pairs


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

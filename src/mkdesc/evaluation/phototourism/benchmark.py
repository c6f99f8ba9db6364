"""The Phototourism benchmark whole: descriptors, training and test subsets, tables.

The paper's Table 1 is what :func:`run_phototourism` gives when no descriptors are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.work import Workers
from mkdesc.datasets.phototourism.layout import PatchPairs, Subset
from mkdesc.evaluation.cache import DescriptorCache
from mkdesc.evaluation.cache_filling import fill_cache
from mkdesc.evaluation.contenders.base import (
    CsvDescriptor,
    Descriptor,
    LearnedDescriptor,
    PatchDescriptor,
    ProjectedDescriptor,
    base_of,
)
from mkdesc.evaluation.contenders.registry import get_descriptor, get_descriptors
from mkdesc.evaluation.phototourism.protocols import evaluate_revisited, score_pairs
from mkdesc.evaluation.report.plots import Plot
from mkdesc.evaluation.report.published import PAPER_ROWS, REVISITED, TABLE_1
from mkdesc.evaluation.report.runs import Results, files_in, open_run, save_results, with_earlier
from mkdesc.evaluation.report.table import Row, Table, short_names
from mkdesc.evaluation.training import learn, subset_rows, subset_statistics
from mkdesc.heads.head import Head
from mkdesc.measures.distances import pair_distances
from mkdesc.measures.ranking import roc_curve

#: Protocols, the score of each, and its published values.
PROTOCOLS = {"fpr95": TABLE_1, "revisited": REVISITED}
#: Points of the curves that are kept.
POINTS = 200

Vectors = NDArray[np.float32]
Scores = dict[str, Any]
#: A test subset and the training subset of a column; None where nothing was learned.
Case = tuple[str, str | None]


def find_subsets(root: str | Path, names: Sequence[str] | None = None) -> dict[str, Subset]:
    """The subsets in a folder by name: its folders with sheets and info.txt, or itself.

    Parameters
    ----------
    root
        Folder of subsets, or one subset.
    names
        Those wanted, in this order; None: all.
    """
    folder = Path(root)
    if not folder.is_dir():
        raise ValueError(f"{folder}: not a folder")
    if (folder / "info.txt").is_file():
        found = {Subset(folder).name: folder}
    else:
        found = {file.parent.name: file.parent for file in sorted(folder.glob("*/info.txt"))}
    if not found:
        raise ValueError(f"{folder}: no subsets (folders with info.txt and sheets) in it")
    unknown = [name for name in names or () if name not in found]
    if unknown:
        raise ValueError(f"{folder}: no subset {unknown[0]!r}; there are {', '.join(found)}")
    return {name: Subset(found[name]) for name in (found if names is None else names)}


def subset_files(subset: Subset) -> dict[str, Path]:
    """All that is read of a subset: sheets and text files."""
    return files_in(subset.folder, subset.name, "*.bmp", "*.txt")


def run_phototourism(
    root: str | Path,
    descriptors: Iterable[str | Descriptor | Callable[..., Any]] | None = None,
    *,
    subsets: Sequence[str] | None = None,
    protocol: str = "fpr95",
    public_code: bool = False,
    output: str | Path | None = None,
    progress: Progress = no_progress,
    workers: Workers = None,
) -> Results:
    """Evaluate descriptors on all combinations of training and test subsets.

    Parameters
    ----------
    root
        Folder of subsets in the Phototourism layout.
    descriptors
        Names, descriptors or callables (:func:`mkdesc.evaluation.get_descriptor`); None: the seven
        rows of the paper's Table 1. Those that are learned are learned on the training subset
        alone: on all its patches and the matching pairs of its largest file of pairs.
    subsets
        Names of the subsets; None: all there are.
    protocol
        ``fpr95`` (Table 1), or ``revisited``: mean AP with Lowe's ratio as the score.
    public_code
        With ``revisited``: do what its public code does;
        see :func:`mkdesc.evaluation.evaluate_revisited`.
    output
        Run folder; None: nothing is written. The descriptors that it has already stay in it.
    progress
        Called with what is being described, the patches done and their number.
    workers
        An executor or a Dask client whose processes describe; ``output`` must be a folder that
        they see. None: this process describes.
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol: expected {' or '.join(PROTOCOLS)}, got {protocol!r}")
    if public_code and protocol != "revisited":
        raise ValueError("public_code: only for the protocol 'revisited'")
    found = find_subsets(root, subsets)
    asked = get_descriptors(PAPER_ROWS if descriptors is None else descriptors)
    chosen = with_earlier(output, asked, get_descriptor)
    learned = any(isinstance(one, LearnedDescriptor) for one in chosen)
    if learned and len(found) < 2:
        raise ValueError(
            f"{root}: learning on one subset and testing on another needs two, got "
            f"{', '.join(found)}; name descriptors that are not learned"
        )
    labels = short_names(one.name for one in chosen)
    config = {
        "benchmark": "phototourism",
        "protocol": protocol,
        "public_code": public_code,
        "subsets": {name: len(subset_files(subset)) for name, subset in found.items()},
        "descriptors": {one.name: one.identity for one in chosen},
    }
    cases: list[Case] = [
        (test, train)
        for test in found
        for train in (found if learned else (None,))
        if train != test
    ]
    files = {name: file for one in found.values() for name, file in subset_files(one).items()}
    with open_run(output, config, files) as folder:
        cache = DescriptorCache(folder, progress)
        if workers is not None:
            for subset in found.values():
                fill_cache(cache, chosen, subset.folder, [None], workers, progress)
        details: dict[str, dict[Case, Scores]] = {one.name: {} for one in chosen}
        for name, case, scores in _all_scores(cache, chosen, found, cases, protocol, public_code):
            details[name][case] = scores
        results = _results(details, labels, cases, protocol, public_code)
        if output is not None:
            save_results(output, results)
    return results


def _all_scores(
    cache: DescriptorCache,
    chosen: Sequence[Descriptor],
    subsets: dict[str, Subset],
    cases: Sequence[Case],
    protocol: str,
    public_code: bool,
) -> Iterator[tuple[str, Case, Scores]]:
    """Name, case and scores, test subset by test subset."""
    heads: dict[tuple[str, str], Head] = {}
    for test in dict.fromkeys(case[0] for case in cases):
        score, needed = _protocol(subsets[test], protocol, public_code)
        gather = _gatherer(cache, subsets[test], needed)
        for one in chosen:
            values = gather(base_of(one))
            trains = [train for tested, train in cases if tested == test]
            if not isinstance(one, LearnedDescriptor):
                if isinstance(one, ProjectedDescriptor):
                    values = one.head.apply(values)
                same = score(values)  # whatever the training subset
                yield from ((one.name, (test, train), same) for train in trains)
                continue
            for train in trains:
                if train is None:
                    continue
                key = (one.name, train)
                if key not in heads:
                    statistics = subset_statistics(cache, one.base, subsets[train])
                    heads[key] = learn(one, statistics)
                yield one.name, (test, train), score(heads[key].apply(values))


def _gatherer(
    cache: DescriptorCache, subset: Subset, needed: NDArray[np.integer] | None
) -> Callable[[PatchDescriptor | CsvDescriptor], Vectors]:
    """A function that gives the needed rows of a descriptor, read from disk once."""
    gathered: dict[str, Vectors] = {}

    def gather(base: PatchDescriptor | CsvDescriptor) -> Vectors:
        if isinstance(base, PatchDescriptor) and base.whole is not None:
            return gather(base.whole)[:, slice(*base.columns)]
        if base.name not in gathered:
            rows = subset_rows(cache, base, subset)
            gathered[base.name] = rows if needed is None else np.array(rows[needed])
        return gathered[base.name]

    return gather


def _protocol(
    subset: Subset, protocol: str, public_code: bool
) -> tuple[Callable[[Vectors], Scores], NDArray[np.integer] | None]:
    """A function that scores descriptors, and the patches it wants them of; None: all."""
    if protocol == "revisited":
        points, images = subset.labels(), subset.interest().image

        def revisited(values: Vectors) -> Scores:
            found = asdict(evaluate_revisited(values, points, images, public_code))
            return {"score": 100 * found["mean_ap"], "dims": values.shape[1], **found}

        return revisited, None
    pairs = subset.pairs()
    needed, where = np.unique([pairs.first, pairs.second], return_inverse=True)
    first, second = where.reshape(2, -1)
    renumbered = PatchPairs(first, second, pairs.matching)

    def fpr95(values: Vectors) -> Scores:
        found = asdict(score_pairs(values, renumbered))
        similarity = -pair_distances(np.ascontiguousarray(values), first, second)
        curve = roc_curve(similarity, pairs.matching, POINTS)
        roc = {"x": curve.x.tolist(), "y": curve.y.tolist()}
        return {"score": 100 * found["fpr95"], "dims": values.shape[1], **found, "roc": roc}

    return fpr95, needed


def _column(case: Case) -> str:
    return case[0] if case[1] is None else f"{case[0]} ← {case[1]}"


def _results(
    details: dict[str, dict[Case, Scores]],
    labels: dict[str, str],
    cases: Sequence[Case],
    protocol: str,
    public_code: bool,
) -> Results:
    published = PROTOCOLS[protocol]
    rows = []
    for name, scores in details.items():
        values = [scores[case]["score"] for case in cases]
        beside = _beside(published.get(name, {}), cases)
        dims = scores[cases[0]]["dims"]
        rows.append(Row(labels[name], (dims, float(np.mean(values)), *values), beside))
    if protocol == "fpr95":
        title = "FPR95, per cent (lower is better)"
    else:
        how = ", as the public code has it" if public_code else ""
        title = f"Phototour Revisited{how}: mean average precision, per cent (higher is better)"
    notes = () if cases[0][1] is None else ("Columns: test subset ← training subset.",)
    table = Table(protocol, title, ("D", "mean", *map(_column, cases)), tuple(rows), notes)
    plots = [_bars(details, labels, cases, title)]
    if protocol == "fpr95":
        plots.append(_roc(details, labels, cases))
    plain = {
        labels[name]: {
            _column(case): {key: value for key, value in one.items() if key != "roc"}
            for case, one in scores.items()
        }
        for name, scores in details.items()
    }
    return Results("phototourism", (table,), plain, tuple(plots))


def _beside(
    published: Mapping[tuple[str, str], float], cases: Sequence[Case]
) -> tuple[float | None, ...]:
    """Published values for the columns D, mean, and the cases; nothing if there are none."""
    known = [None if train is None else published.get((test, train)) for test, train in cases]
    numbers = [one for one in known if one is not None]
    if not numbers:
        return ()
    mean = float(np.mean(numbers)) if len(numbers) == len(published) == len(known) else None
    return (None, mean, *known)


def _bars(
    details: dict[str, dict[Case, Scores]],
    labels: dict[str, str],
    cases: Sequence[Case],
    title: str,
) -> Plot:
    series = {
        labels[name]: {_column(case): scores[case]["score"] for case in cases}
        for name, scores in details.items()
    }
    return Plot("bars", title, "bars", {"": series}, y_label="per cent")


def _roc(
    details: dict[str, dict[Case, Scores]], labels: dict[str, str], cases: Sequence[Case]
) -> Plot:
    panels = {
        _column(case): {labels[name]: scores[case]["roc"] for name, scores in details.items()}
        for case in cases
    }
    return Plot(
        "roc", "ROC", "curves", panels, "false positive rate", "recall (true positive rate)", True
    )

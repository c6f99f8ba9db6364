"""The HPatches benchmark whole: descriptors, splits, the three tasks, tables.

The paper's Tables 2 and 4 are in :mod:`mkdesc.evaluation.hpatches.report`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkdesc._support.check import check_not_both
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.work import Workers
from mkdesc.datasets.hpatches.layout import HPatches, Split
from mkdesc.datasets.phototourism.layout import Subset
from mkdesc.evaluation.cache import DescriptorCache
from mkdesc.evaluation.cache_filling import fill_cache
from mkdesc.evaluation.contenders.base import (
    CsvDescriptor,
    Descriptor,
    LearnedDescriptor,
    ProjectedDescriptor,
    base_of,
)
from mkdesc.evaluation.contenders.registry import (
    default_descriptors,
    get_descriptor,
    get_descriptors,
)
from mkdesc.evaluation.hpatches.report import hpatches_results
from mkdesc.evaluation.hpatches.scores import TaskResult
from mkdesc.evaluation.hpatches.tasks import DescribedSequences, TaskRunner
from mkdesc.evaluation.phototourism.benchmark import subset_files
from mkdesc.evaluation.report.published import PAPER_ROWS, TASKS
from mkdesc.evaluation.report.runs import Results, files_in, open_run, save_results, with_earlier
from mkdesc.evaluation.report.table import short_names
from mkdesc.evaluation.training import (
    learn,
    sequence_rows,
    sequence_statistics,
    subset_statistics,
)


@dataclass(frozen=True)
class _Entry:
    """A row of the tables: its label, the descriptor, and what it is learned on, if it is."""

    label: str
    descriptor: Descriptor
    training: Path | None = None


def run_hpatches(
    root: str | Path,
    descriptors: Iterable[str | Descriptor | Callable[..., Any]] | None = None,
    *,
    split: str = "full",
    splits: str | Path | None = None,
    tasks: Sequence[str] = TASKS,
    tasks_dir: str | Path | None = None,
    seed: int = 42,
    table: int | None = None,
    train_on: str | Path | None = None,
    output: str | Path | None = None,
    progress: Progress = no_progress,
    workers: Workers = None,
) -> Results:
    """Evaluate descriptors by verification, matching and retrieval.

    Parameters
    ----------
    root
        Folder of sequences in the HPatches layout.
    descriptors
        Names, descriptors or callables (:func:`mkdesc.evaluation.get_descriptor`); None: those of
        ``table``, or the bundled models for patches, raw MKD, SIFT and RootSIFT. Those that are
        learned are learned on the training sequences of the split, or on ``train_on``.
    split, splits
        Name of the split, and the file that defines it: see
        :meth:`mkdesc.datasets.HPatches.split`.
    tasks
        Which of ``verification``, ``matching``, ``retrieval``.
    tasks_dir
        Folder of the official task files; None: the lists are drawn from ``seed`` by the
        published rules.
    table
        2: the paper's Table 2, whitening learned on the training sequences. 4: its Table 4, the
        whitening learned on Liberty (``train_on``) and on the training sequences, among the
        published rivals.
    train_on
        A Phototourism subset to learn on instead. For table 4 also a model that was learned on
        it, by the name of a descriptor such as ``mkd-concat-64.safetensors:liberty:lw``.
    output
        Run folder; None: nothing is written. The descriptors that it has already stay in it.
    progress
        Called with what is being done, how much of it is done, and how much there is.
    workers
        An executor or a Dask client whose processes describe; ``output`` must be a folder that
        they see. None: this process describes.
    """
    odd = [task for task in tasks if task not in TASKS]
    if odd or not tasks:
        raise ValueError(f"tasks: expected some of {', '.join(TASKS)}, got {', '.join(odd)!r}")
    dataset = HPatches(root)
    chosen = dataset.split(split, splits)
    entries = _entries(descriptors, table, train_on, chosen, output)
    config = {
        "benchmark": "hpatches",
        "split": split,
        "sequences": [*chosen.test, *chosen.train],
        "tasks": list(tasks),
        "lists": f"seed {seed}" if tasks_dir is None else "files",
        "table": table,
        "descriptors": {
            entry.label if table == 4 else entry.descriptor.name: {
                **entry.descriptor.identity,
                **_learned_on(entry, chosen),
            }
            for entry in entries
        },
    }
    with open_run(output, config, _files(dataset, chosen, tasks_dir, entries)) as folder:
        cache = DescriptorCache(folder, progress)
        if workers is not None:
            every = [entry.descriptor for entry in entries]
            fill_cache(cache, every, dataset.root, chosen.test, workers, progress)
            learned = [one for one in every if isinstance(one, LearnedDescriptor)]
            if train_on is None:
                fill_cache(cache, learned, dataset.root, chosen.train, workers, progress)
        runner = TaskRunner(dataset, chosen, tasks, tasks_dir, seed, progress)
        found: dict[str, dict[str, TaskResult]] = {}
        dims: dict[str, int] = {}
        for entry in entries:
            described, dims[entry.label] = _describe(cache, dataset, chosen, entry)
            found[entry.label] = runner.run(described, entry.label)
        names = {entry.label: entry.descriptor.name for entry in entries}
        results = hpatches_results(found, dims, names, table, chosen)
        if output is not None:
            save_results(output, results)
    return results


def _entries(
    descriptors: Iterable[Any] | None,
    table: int | None,
    train_on: str | Path | None,
    split: Split,
    output: str | Path | None,
) -> list[_Entry]:
    """The rows of the tables, those that a run folder has already among them."""
    if table not in (None, 2, 4):
        raise ValueError(f"table: expected 2 or 4, got {table}")
    check_not_both(table=table, descriptors=descriptors)
    if table == 4:
        return _entries_of_table_4(train_on, split)
    training = None if train_on is None else Path(train_on)
    if descriptors is None:
        descriptors = default_descriptors() if table is None else PAPER_ROWS
    chosen = get_descriptors(descriptors)
    if table is None:
        chosen = with_earlier(output, chosen, get_descriptor)
    labels = short_names(one.name for one in chosen)
    learned = [one for one in chosen if isinstance(one, LearnedDescriptor)]
    if learned and training is None and not split.train:
        raise ValueError(
            f"split {split.name!r} has no training sequences for {learned[0].name}: choose one "
            "that has (a, b or c of splits.json), or a Phototourism subset to learn on"
        )
    return [_Entry(labels[one.name], one, training) for one in chosen]


def _entries_of_table_4(train_on: str | Path | None, split: Split) -> list[_Entry]:
    entries = []
    learned = get_descriptor("mkd-raw+lw")
    if train_on is not None and Path(train_on).is_dir():
        entries.append(_Entry("PCW", learned, Path(train_on)))
    elif train_on is not None:
        entries.append(_Entry("PCW", get_descriptor(str(train_on))))
    if split.train:
        entries.append(_Entry("PCW*", learned))
    if not entries:
        raise ValueError(
            "table 4: expected something to learn on: a Phototourism subset or a model learned on "
            f"it, or a split with training sequences (split {split.name!r} has none)"
        )
    return entries


def _files(
    dataset: HPatches, split: Split, tasks_dir: str | Path | None, entries: Iterable[_Entry]
) -> dict[str, Path]:
    """All that a run reads."""
    files: dict[str, Path] = {}
    for name in (*split.test, *split.train):
        files |= files_in(dataset.root / name, name, "*.png")
    if tasks_dir is not None:
        files |= files_in(Path(tasks_dir), "lists", f"*_split-{split.name}.csv")
    for entry in entries:
        base = base_of(entry.descriptor)
        if isinstance(base, CsvDescriptor):
            files |= files_in(base.folder, base.name, "*/*.csv")
        if entry.training is not None and isinstance(entry.descriptor, LearnedDescriptor):
            files |= subset_files(Subset(entry.training))
    return files


def _learned_on(entry: _Entry, split: Split) -> dict[str, str]:
    if not isinstance(entry.descriptor, LearnedDescriptor):
        return {}
    if entry.training is None:
        return {"learned on": f"the training sequences of split {split.name}"}
    subset = Subset(entry.training)
    return {"learned on": f"{subset.name}, {len(subset_files(subset))} files"}


def _describe(
    cache: DescriptorCache, dataset: HPatches, split: Split, entry: _Entry
) -> tuple[DescribedSequences, int]:
    """Descriptors of the test sequences, and their length."""
    one, base = entry.descriptor, base_of(entry.descriptor)
    head = one.head if isinstance(one, ProjectedDescriptor) else None
    if isinstance(one, LearnedDescriptor):
        if entry.training is None:
            statistics = sequence_statistics(cache, base, dataset, split.name, split.train)
        else:
            # In a folder of its own: a subset may be named like a sequence.
            own_cache = cache.within("train-on")
            statistics = subset_statistics(own_cache, base, Subset(entry.training))
        head = learn(one, statistics)
    described = DescribedSequences(
        lambda name, image: sequence_rows(cache, base, dataset, name, image),
        split.test,
        head,
    )
    first = described[split.test[0], "ref"]
    for name in split.test[1:]:
        described[name, "ref"]  # describes the sequence, with progress, before the tasks begin
    return described, first.shape[1]

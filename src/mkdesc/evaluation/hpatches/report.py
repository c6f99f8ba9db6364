"""Tables and plots of HPatches results, the paper's Tables 2 and 4 among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mkdesc.datasets.hpatches.layout import NOISES, Split
from mkdesc.evaluation.hpatches.scores import TaskResult
from mkdesc.evaluation.report.plots import Plot
from mkdesc.evaluation.report.published import TABLE_2, TABLE_4_ALL, TABLE_4_OTHERS, TASKS
from mkdesc.evaluation.report.runs import Results
from mkdesc.evaluation.report.table import Row, Table

#: Test sequences of the published splits a, b and c.
PUBLISHED_TEST = 40

Found = Mapping[str, Mapping[str, TaskResult]]


def hpatches_results(
    found: Found,
    dims: Mapping[str, int],
    names: Mapping[str, str],
    table: int | None,
    split: Split,
) -> Results:
    """Everything there is to show of a run.

    Parameters
    ----------
    found
        Results by label and task.
    dims, names
        Length of the descriptors, and the name of each, by label.
    table
        2 or 4: the table of the paper to set beside them.
    split
        What was evaluated.
    """
    tasks = [task for task in TASKS if all(task in one for one in found.values())]
    tables = [_main(found, dims, names, tasks, table == 2), _by_noise(found, tasks)]
    tables += _by_type(found, tasks)
    if table == 4:
        tables += _ranks(found, tasks)
    if table is not None and len(split.test) != PUBLISHED_TEST:
        note = "The published numbers are for the original HPatches, not for these sequences."
        tables = [
            Table(**{**vars(one), "notes": (*one.notes, note)})
            if one.key in ("hpatches", "table-4-all", "table-4-others")
            else one
            for one in tables
        ]
    details = {
        label: {task: _plain(result) for task, result in one.items()}
        for label, one in found.items()
    }
    return Results("hpatches", tuple(tables), details, tuple(_plots(found, tasks)))


def _plain(result: TaskResult) -> dict[str, Any]:
    values = result.to_dict()
    del values["curves"]  # they are in the plots
    return values


def _main(
    found: Found,
    dims: Mapping[str, int],
    names: Mapping[str, str],
    tasks: list[str],
    published: bool,
) -> Table:
    rows = []
    for label, one in found.items():
        values = [100 * one[task].mean["ap"] for task in tasks]
        others = [100 * one[task].mean["ap_trapezoid"] for task in tasks]
        if "verification" in tasks:
            others.append(100 * one["verification"].mean["auc"])
        known = TABLE_2.get(names[label]) if published else None
        beside: tuple[float | None, ...] = ()
        if known is not None:
            paper = [known[TASKS.index(task)] for task in tasks]
            beside = (None, *paper, *[None] * len(others))
        rows.append(Row(label, (dims[label], *values, *others), beside))
    columns = ["D", *tasks, *(f"{task}, trapezoid" for task in tasks)]
    if "verification" in tasks:
        columns.append("ROC AUC")
    title = "Mean average precision (TREC unless it says trapezoid), per cent"
    return Table("hpatches", title, tuple(columns), tuple(rows))


def _by_noise(found: Found, tasks: list[str]) -> Table:
    rows = [
        Row(
            label,
            tuple(100 * one[task].by_noise[noise]["ap"] for task in tasks for noise in NOISES),
        )
        for label, one in found.items()
    ]
    columns = tuple(f"{task} {noise}" for task in tasks for noise in NOISES)
    title = "By noise: mean average precision (TREC), per cent"
    return Table("hpatches-noise", title, columns, tuple(rows))


def _kinds(found: Found, tasks: list[str]) -> list[str]:
    """Types of sequences that every task has results for."""
    lists = [one[task].by_type for one in found.values() for task in tasks]
    return [kind for kind in lists[0] if all(kind in one for one in lists)]


def _by_type(found: Found, tasks: list[str]) -> list[Table]:
    kinds = _kinds(found, tasks)
    if len(kinds) < 2:
        return []
    rows = [
        Row(label, tuple(100 * one[task].by_type[kind]["ap"] for task in tasks for kind in kinds))
        for label, one in found.items()
    ]
    columns = tuple(f"{task} {kind}" for task in tasks for kind in kinds)
    title = "By type of sequence: mean average precision (TREC), per cent"
    return [Table("hpatches-type", title, columns, tuple(rows))]


def _ranks(found: Found, tasks: list[str]) -> list[Table]:
    """Table 4: best first, the published ones marked as such."""
    halves = {
        "table-4-all": ("all methods", TABLE_4_ALL, list(found)),
        # What was learned on HPatches has no place in the right half.
        "table-4-others": (
            "methods that have not used HPatches for training",
            TABLE_4_OTHERS,
            [label for label in found if label != "PCW*"],
        ),
    }
    tables = []
    for key, (title, published, labels) in halves.items():
        if not labels:
            continue
        ranked = []
        for task in tasks:
            entries = {f"{name} (published)": value for name, value in published[task].items()}
            entries |= {f"{name}, ours": 100 * found[name][task].mean["ap"] for name in labels}
            ranked.append(sorted(entries.items(), key=lambda entry: -entry[1]))
        rows = tuple(
            Row(str(rank), tuple(cell for entry in line for cell in entry))
            for rank, line in enumerate(zip(*ranked, strict=True), 1)
        )
        columns = tuple(cell for task in tasks for cell in (task, "AP"))
        tables.append(Table(key, f"Table 4, {title}", columns, rows, corner="rank"))
    return tables


def _plots(found: Found, tasks: list[str]) -> list[Plot]:
    def bars(name: str, title: str, groups: list[str], get: Callable[..., Any]) -> Plot:
        panels = {
            task: {
                label: {group: 100 * get(one[task])[group]["ap"] for group in groups}
                for label, one in found.items()
            }
            for task in tasks
        }
        return Plot(name, title, "bars", panels, y_label="mean average precision, %")

    plots = [bars("noise", "By level of noise", list(NOISES), lambda one: one.by_noise)]
    kinds = _kinds(found, tasks)
    if kinds:
        plots.append(bars("types", "By type of sequence", kinds, lambda one: one.by_type))
    if "verification" in tasks:
        for name, title, x, y in (
            ("precision-recall", "Verification: precision and recall", "recall", "precision"),
            ("roc", "Verification: ROC", "fpr", "tpr"),
        ):
            panels = {
                f"{noise}, {kind}": {
                    label: {"x": curve[x], "y": curve[y]}
                    for label, one in found.items()
                    for curve in [one["verification"].curves[noise][kind]]
                }
                for kind in ("intra", "inter")
                for noise in NOISES
            }
            plots.append(Plot(name, title, "curves", panels, x, y, name == "roc"))
    return plots

"""Several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mkdesc.evaluation.report.plots import Plot
from mkdesc.evaluation.report.runs import Results, read_run
from mkdesc.evaluation.report.table import Row, Table

#: What must agree for numbers to be comparable, beside the benchmark.
_DATA = (
    *("subsets", "sequences", "split", "lists", "protocol", "public_code"),
    *("pairs", "keypoints", "max_size", "ratio", "threshold", "thresholds"),
)


def compare_runs(folders: Sequence[str | Path]) -> Results:
    """The tables and plots of several runs of one benchmark, merged.

    Parameters
    ----------
    folders
        Run folders, two or more. Rows are named by folder and descriptor.
    """
    if len(folders) < 2:
        raise ValueError(f"runs: expected two or more, got {len(folders)}")
    names = _names(folders)
    runs = {name: read_run(folder) for name, folder in zip(names, folders, strict=True)}
    kinds = {results.benchmark for _, results in runs.values()}
    if len(kinds) > 1:
        raise ValueError(f"runs: expected one benchmark, got {' and '.join(sorted(kinds))}")
    first_config, first = next(iter(runs.values()))
    differing = [
        key
        for key in _DATA
        if any(config.get(key) != first_config.get(key) for config, _ in runs.values())
    ]
    every = [item for config, _ in runs.values() for item in config["inputs"].items()]
    if len({*every}) > len(dict(every)):
        differing.append("the content of the data")
    notes = (f"The runs differ in: {', '.join(differing)}.",) if differing else ()
    tables = []
    for table in first.tables:
        parts = {
            name: [one for one in results.tables if one.key == table.key]
            for name, (_, results) in runs.items()
        }
        if table.corner != "rank" and all(parts.values()):
            tables.append(_merged({name: part[0] for name, part in parts.items()}, notes))
    if not tables:
        raise ValueError("runs: they have no table in common")
    plots = [
        _merged_plot(plot, {name: results for name, (_, results) in runs.items()})
        for plot in first.plots
    ]
    details = {name: results.details for name, (_, results) in runs.items()}
    merged = tuple(plot for plot in plots if plot is not None)
    return Results(first.benchmark, tuple(tables), details, merged)


def _names(folders: Sequence[str | Path]) -> list[str]:
    """Short names of the folders, or the paths if those would be the same."""
    short = [Path(folder).resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]


def _merged(tables: dict[str, Table], notes: tuple[str, ...]) -> Table:
    """One table of the rows of several; columns that only some have are left empty elsewhere."""
    columns = list(dict.fromkeys(column for one in tables.values() for column in one.columns))
    rows = []
    for name, table in tables.items():
        for row in table.rows:
            values = dict(zip(table.columns, row.values, strict=True))
            beside = dict(zip(table.columns, row.published, strict=False))
            published = tuple(beside.get(column) for column in columns) if beside else ()
            rows.append(
                Row(
                    f"{name}: {row.name}",
                    tuple(values.get(column) for column in columns),
                    published,
                )
            )
    first = next(iter(tables.values()))
    return Table(first.key, first.title, tuple(columns), tuple(rows), notes, "run: descriptor")


def _merged_plot(plot: Plot, runs: dict[str, Results]) -> Plot | None:
    """A plot with the series of all runs in the panels that all have; None if there is none."""
    same = {
        name: one.panels
        for name, results in runs.items()
        for one in results.plots
        if one.name == plot.name
    }
    panels = {
        panel: {
            f"{name}: {series}": values
            for name, own in same.items()
            for series, values in own[panel].items()
        }
        for panel in plot.panels
        if len(same) == len(runs) and all(panel in own for own in same.values())
    }
    if plot.kind == "bars":
        # Groups that are not in all runs would leave holes.
        for series in panels.values():
            common = set.intersection(*(set(values) for values in series.values()))
            for name, values in series.items():
                series[name] = {key: value for key, value in values.items() if key in common}
        panels = {panel: series for panel, series in panels.items() if all(series.values())}
    return Plot(**{**vars(plot), "panels": panels}) if panels else None

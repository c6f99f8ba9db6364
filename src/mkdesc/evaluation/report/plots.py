"""Plots of results, with matplotlib if it is installed (``pip install 'mkdesc[plots]'``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.arrays import is_number
from mkdesc._support.files import atomic_path

#: What a plot can be.
KINDS = ("curves", "bars", "pairs")


@dataclass(frozen=True)
class Plot:
    """A figure, as data.

    Attributes
    ----------
    name, title
        Of the file, and above the figure.
    kind
        ``curves``, ``bars``, or ``pairs``: every series after the first is drawn against the
        first, one dot for each pair of photographs.
    panels
        By panel and series: ``{"x": [...], "y": [...]}`` for curves, ``{group: value}`` for bars
        and pairs (None: no estimate).
    x_label, y_label
        Along the axes.
    log_x
        Whether the x axis is logarithmic; of ``pairs``, both.
    """

    name: str
    title: str
    kind: str
    panels: dict[str, dict[str, dict[str, Any]]]
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Plot:
        """A plot of plain values, as JSON has them; TypeError for anything else."""
        plot = cls(**values)
        series = [one for panel in plot.panels.values() for one in panel.values()]
        words = (plot.name, plot.title, plot.kind, plot.x_label, plot.y_label)
        if (
            plot.kind not in KINDS
            or not all(isinstance(one, dict) for one in series)
            or not all(isinstance(word, str) for word in words)
            or not all(_is_drawable(plot.kind, one) for one in series)
        ):
            raise TypeError("not a plot")
        return plot

    def pairs_of(self, panel: str) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
        """Pairs that all series of a panel have, and each one's values of them.

        What there is no estimate of is as bad as the worst of all.

        Examples
        --------
        >>> values = {"a": {"1-2": 3.0, "1-3": None}, "b": {"1-2": 4.0, "1-3": 9.0, "1-4": 1.0}}
        >>> Plot("errors", "Errors", "pairs", {"degrees": values}).pairs_of("degrees")[1]
        {'a': array([3., 9.]), 'b': array([4., 9.])}
        """
        series = self.panels[panel]
        first = next(iter(series.values()), {})
        names = [name for name in first if all(name in values for values in series.values())]
        known = [v for values in series.values() for n in names if (v := values[n]) is not None]
        worst = max(known, default=1.0)
        return names, {
            key: np.array([worst if values[n] is None else values[n] for n in names], np.float64)
            for key, values in series.items()
        }


def _is_drawable(kind: str, series: dict[str, Any]) -> bool:
    """Whether a series has the numbers that its kind of plot needs."""
    if kind == "curves":
        x, y = series.get("x"), series.get("y")
        lists = isinstance(x, list) and isinstance(y, list) and len(x) == len(y)
        return lists and all(map(is_number, [*x, *y]))  # type: ignore[misc]
    return all(
        is_number(value) or (kind == "pairs" and value is None) for value in series.values()
    )


#: By which a plot is known as one of this package's.
OWN_PLOT = b"Software\0mkdesc"
_METADATA = {"Software": "mkdesc"}


def can_plot() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw_plots(folder: Path, plots: Iterable[Plot]) -> list[str]:
    """Write each plot as a PNG file; returns their names, none without matplotlib."""
    if not can_plot():
        return []
    names = []
    for plot in plots:
        if plot.kind == "pairs" and min(map(len, plot.panels.values())) < 2:
            continue  # nothing to be compared with
        file = folder / f"{plot.name}.png"
        with atomic_path(file) as partial:
            _figure(plot).savefig(partial, format="png", dpi=120, metadata=_METADATA)
        names.append(file.name)
    return names


def _figure(plot: Plot) -> Any:
    # No pyplot: it keeps global state, and looks for a display.
    from matplotlib.figure import Figure

    columns = min(len(plot.panels), 3)
    rows = -(-len(plot.panels) // columns)
    width = max(4.6 * columns, 9.0)  # the legend has three columns
    figure = Figure(figsize=(width, 3.8 * rows + 0.9), layout="constrained")
    figure.suptitle(plot.title)
    kinds: dict[str, Callable[[Any, dict[str, dict[str, Any]]], None]]
    kinds = {"curves": _curves, "bars": _bars, "pairs": partial(_pairs, plot)}
    draw = kinds[plot.kind]
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (title, series) in zip(grid, plot.panels.items(), strict=False):
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel(plot.x_label)
        axes.set_ylabel(plot.y_label)
        draw(axes, series)
        if plot.log_x:
            axes.set_xscale("log")
        axes.grid(alpha=0.3)
    for axes in grid[len(plot.panels) :]:
        axes.set_visible(False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small")
    return figure


def _curves(axes: Any, series: dict[str, dict[str, Any]]) -> None:
    for name, curve in series.items():
        axes.plot(curve["x"], curve["y"], label=name, linewidth=1.2)


def _pairs(plot: Plot, axes: Any, series: dict[str, dict[str, Any]]) -> None:
    names, values = plot.pairs_of(axes.get_title())
    first, *others = series
    for name in others:
        axes.plot(values[first], values[name], ".", label=name)
    if names:
        most = max(float(one.max()) for one in values.values())
        least = min(float(one.min()) for one in values.values())
        axes.plot([least, most], [least, most], color="gray", linewidth=0.8)
    axes.set_xlabel(first)
    if plot.log_x:
        axes.set_yscale("log")


def _bars(axes: Any, series: dict[str, dict[str, Any]]) -> None:
    groups = list(next(iter(series.values())))
    width = 0.85 / len(series)
    for place, (name, values) in enumerate(series.items()):
        left = [k + (place - (len(series) - 1) / 2) * width for k in range(len(groups))]
        axes.bar(left, [values[group] for group in groups], width, label=name)
    axes.set_xticks(range(len(groups)), groups, fontsize="small")

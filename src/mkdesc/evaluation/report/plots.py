"""Plots of results, with matplotlib if it is installed (``pip install 'mkdesc[plots]'``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mkdesc._support.files import atomic_path


@dataclass(frozen=True)
class Plot:
    """A figure, as data.

    Attributes
    ----------
    name, title
        Of the file, and above the figure.
    kind
        ``curves`` or ``bars``.
    panels
        By panel and series: ``{"x": [...], "y": [...]}`` for curves, ``{group: value}`` for bars.
    x_label, y_label
        Along the axes.
    log_x
        Whether the x axis is logarithmic.
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
        if not all(isinstance(one, dict) for one in series) or not all(
            isinstance(word, str) for word in words
        ):
            raise TypeError("not a plot")
        return plot


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
    draw = _curves if plot.kind == "curves" else _bars
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (title, series) in zip(grid, plot.panels.items(), strict=False):
        axes.set_title(title, fontsize="medium")
        draw(axes, series)
        axes.set_xlabel(plot.x_label)
        axes.set_ylabel(plot.y_label)
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


def _bars(axes: Any, series: dict[str, dict[str, Any]]) -> None:
    groups = list(next(iter(series.values())))
    width = 0.85 / len(series)
    for place, (name, values) in enumerate(series.items()):
        left = [k + (place - (len(series) - 1) / 2) * width for k in range(len(groups))]
        axes.bar(left, [values[group] for group in groups], width, label=name)
    axes.set_xticks(range(len(groups)), groups, fontsize="small")

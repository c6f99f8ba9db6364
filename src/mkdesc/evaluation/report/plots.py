"""Plots of results, as data; :mod:`mkdesc.evaluation.report.svg` draws them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.arrays import is_number

#: What a plot can be.
KINDS = ("curves", "bars", "pairs")


@dataclass(frozen=True)
class Plot:
    """A figure, as data.

    Attributes
    ----------
    name, title
        In files of results, and above the figure.
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

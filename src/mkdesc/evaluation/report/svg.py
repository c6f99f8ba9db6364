"""Plots as SVG inside a page: curves, bars, and pairs against pairs; no package is needed."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, NamedTuple

import numpy as np

from mkdesc.evaluation.report.plots import Plot
from mkdesc.visual.colours import LINES

#: Size of a plot in its own units, and the space for what stands left of and below it.
WIDTH, HEIGHT, LEFT, BOTTOM, EDGE = 520, 340, 58, 46, 12

#: Dashes of lines, once all colours have been used.
_DASHES = ("", "6 3", "2 3")


class _Axis(NamedTuple):
    """From values to positions along one side of a plot."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (self._scaled(one) for one in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def _scaled(self, value: float) -> float:
        return float(np.log10(max(value, self.low))) if self.log else value

    def ticks(self) -> list[float]:
        """Round numbers, about five."""
        if self.log:
            powers = range(
                int(np.floor(np.log10(self.low))), int(np.ceil(np.log10(self.high))) + 1
            )
            found = [10.0**power for power in powers]
        else:
            rough = (self.high - self.low) / 5
            unit = 10.0 ** np.floor(np.log10(rough))
            step = unit * next(k for k in (1, 2, 2.5, 5, 10) if k * unit >= 0.999 * rough)
            first = int(np.ceil(self.low / step - 1e-9))
            found = [step * k for k in range(first, first + 12)]
        slack = 1e-9 * abs(self.high)
        return [float(one) for one in found if self.low - slack <= one <= self.high + slack]


def _style(number: int) -> tuple[str, str]:
    """Colour and dashes of a series."""
    turn = number // len(LINES) % len(_DASHES)
    return LINES[number % len(LINES)], _DASHES[turn]


def legend(names: Iterable[str], first: int = 0) -> str:
    """A list of series with the lines that they are drawn with.

    Parameters
    ----------
    names
        Of all series.
    first
        How many to leave out before the first that is listed.

    Examples
    --------
    >>> legend(["rootsift", "orb"], first=1).count("<li>")
    1
    """
    items = []
    for number, name in enumerate(names):
        if number < first:
            continue
        colour, dashes = _style(number)
        items.append(
            f'<li><svg width="26" height="10" aria-hidden="true"><line x1="1" x2="25" y1="5" '
            f'y2="5" stroke="{colour}" stroke-width="3" stroke-dasharray="{dashes}"/></svg> '
            f"{escape(name)}</li>"
        )
    return f'<ul class="legend">{"".join(items)}</ul>'


def panel_svg(plot: Plot, panel: str) -> str:
    """One panel of a plot.

    Parameters
    ----------
    plot, panel
        The plot, and which of its panels.

    Examples
    --------
    >>> curve = {"x": [1, 2, 3], "y": [0.1, 0.5, 0.6]}
    >>> panel_svg(Plot("demo", "Demo", "curves", {"": {"ours": curve}}), "").count("<polyline")
    1
    """
    return {"curves": _curves, "bars": _bars, "pairs": _pairs}[plot.kind](plot, panel)


def _frame(plot: Plot, x: _Axis, y: _Axis, x_label: str, y_label: str, inner: str) -> str:
    """Axes with ticks and words, and what is drawn between them."""
    lines = [
        f'<line x1="{x.start}" x2="{x.end}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" class="grid"/>'
        f'<text x="{x.start - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in y.ticks()
    ]
    lines += [
        f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{y.start}" y2="{y.end}" class="grid"/>'
        f'<text x="{x(tick):.1f}" y="{y.start + 16}" text-anchor="middle">{tick:g}</text>'
        for tick in (x.ticks() if plot.kind != "bars" else ())
    ]
    middle = (y.start + y.end) / 2
    words = (
        f'<text x="{(x.start + x.end) / 2}" y="{HEIGHT - 8}" text-anchor="middle" class="label">'
        f"{escape(x_label)}</text>"
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle" '
        f'class="label">{escape(y_label)}</text>'
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(plot.title)}">'
        f"{''.join(lines)}{inner}{words}</svg>"
    )


def _axes(x: tuple[float, float], y: tuple[float, float], log: tuple[bool, bool]) -> Any:
    across = _Axis(*_widened(*x, log[0]), LEFT, WIDTH - EDGE, log[0])
    return across, _Axis(*_widened(*y, log[1]), HEIGHT - BOTTOM, EDGE, log[1])


def _widened(low: float, high: float, log: bool) -> tuple[float, float]:
    """Limits of an axis that differ, and that have a logarithm if they must."""
    if log:
        low = max(low, high / 1e5, 1e-9)
    return (low, high) if high > low else (low, low + (abs(low) or 1.0))


def _curves(plot: Plot, panel: str) -> str:
    series = plot.panels[panel]
    xs, ys = (
        np.concatenate([np.asarray(one[axis], np.float64) for one in series.values()])
        for axis in "xy"
    )
    low = float(xs[xs > 0].min(initial=1.0)) if plot.log_x else float(xs.min())
    x, y = _axes((low, float(xs.max())), (0.0, float(ys.max())), (plot.log_x, False))
    lines = []
    for number, (name, curve) in enumerate(series.items()):
        colour, dashes = _style(number)
        points = " ".join(
            f"{x(a):.1f},{y(b):.1f}" for a, b in zip(curve["x"], curve["y"], strict=True)
        )
        lines.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dashes}"><title>{escape(name)}</title></polyline>'
        )
    return _frame(plot, x, y, plot.x_label, plot.y_label, "".join(lines))


def _bars(plot: Plot, panel: str) -> str:
    series = plot.panels[panel]
    groups = list(next(iter(series.values())))
    most = max((value for values in series.values() for value in values.values()), default=1.0)
    x, y = _axes((-0.5, len(groups) - 0.5), (0.0, float(most)), (False, False))
    width = 0.85 / len(series)
    marks = []
    for number, (name, values) in enumerate(series.items()):
        for k, group in enumerate(groups):
            left = k + (number - len(series) / 2) * width
            top = y(values[group])
            marks.append(
                f'<rect x="{x(left):.1f}" y="{top:.1f}" width="{x(width) - x(0):.1f}" '
                f'height="{y.start - top:.1f}" fill="{_style(number)[0]}"><title>{escape(name)}, '
                f"{escape(group)}: {values[group]:.4g}</title></rect>"
            )
    marks += [
        f'<text x="{x(k):.1f}" y="{y.start + 16}" text-anchor="middle">{escape(group)}</text>'
        for k, group in enumerate(groups)
    ]
    return _frame(plot, x, y, plot.x_label, plot.y_label, "".join(marks))


def _pairs(plot: Plot, panel: str) -> str:
    names, values = plot.pairs_of(panel)
    every = np.concatenate(list(values.values()))
    positive = every[every > 0]
    least = float(positive.min(initial=1.0)) if plot.log_x else 0.0
    span = least, float(every.max(initial=0.0))
    x, y = _axes(span, span, (plot.log_x, plot.log_x))
    marks = [
        f'<line x1="{x.start}" y1="{y.start}" x2="{x.end}" y2="{y.end}" class="equal"/>',
    ]
    first, *others = values
    for number, name in enumerate(others, 1):
        marks += [
            f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3.5" fill="{_style(number)[0]}">'
            f"<title>{escape(pair)}: {escape(first)} {a:.3g}, {escape(name)} {b:.3g}</title>"
            "</circle>"
            for pair, a, b in zip(names, values[first], values[name], strict=True)
        ]
    return _frame(
        plot, x, y, f"{first}, {plot.x_label}", f"others, {plot.x_label}", "".join(marks)
    )

"""One page that shows a run: tables, plots, and pictures of matches; it needs no other file."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from mkdesc.evaluation.report.plots import Plot
from mkdesc.evaluation.report.svg import legend, panel_svg
from mkdesc.evaluation.report.table import Table

#: By which a page is known as one of this package's.
OWN_PAGE = rb"<meta name='generator' content='mkdesc evaluate'>"

_STYLE = """
:root{color-scheme:light}
body{font:16px/1.45 system-ui,sans-serif;margin:2em auto;padding:0 1em;max-width:1200px;
color:#263238}
h1{font-size:1.6em}h2{font-size:1.2em;margin:1.8em 0 .4em}h3{font-size:1em;margin:1.2em 0 .3em}
.table{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9em}
th,td{padding:.3em .7em;text-align:right;border-bottom:1px solid #dde3e6;white-space:nowrap}
thead th{vertical-align:bottom;white-space:normal;min-width:3.5em}
th:first-child{text-align:left;position:sticky;left:0;background:#fff}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:0 2em}
.plots section.wide{grid-column:1/-1}.plots figure{max-width:600px}
.wide .panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(360px,100%),1fr))}
.plots figure svg{width:100%;height:auto}
figure{margin:0}figcaption{font-size:.9em}
svg text{font:12px system-ui,sans-serif;fill:#455a64}svg .label{font-size:13px}
.grid{stroke:#e3e8ea}.equal{stroke:#90a4ae;stroke-dasharray:4 4}circle{fill-opacity:.65}
.legend{display:flex;flex-wrap:wrap;gap:.3em 1.4em;list-style:none;padding:0;margin:.4em 0;
font-size:.9em}
.gallery{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(360px,100%),1fr));gap:1em}
.gallery svg{width:100%;height:auto}
"""


class Picture(NamedTuple):
    """Matches of a pair, drawn.

    Attributes
    ----------
    method
        Whose they are.
    caption
        What is to be seen.
    svg
        The picture.
    """

    method: str
    caption: str
    svg: str


def page_of(
    title: str,
    tables: Sequence[Table],
    plots: Sequence[Plot],
    pictures: Sequence[Picture] = (),
    key: str = "",
) -> str:
    """The page as HTML.

    Parameters
    ----------
    title
        Of the page.
    tables, plots
        Those of the results.
    pictures
        Of matches, those of a method one after the other.
    key
        What the colours of the pictures mean, as HTML.

    Examples
    --------
    >>> "<h1>Demo &lt;1&gt;</h1>" in page_of("Demo <1>", [], [])
    True
    """
    parts = [_table(table) for table in tables]
    parts.append(f"<div class='plots'>{''.join(map(_plot, plots))}</div>")
    if pictures:
        parts.append(f"<h2>Best, median and worst pairs</h2>{key}")
    for method in dict.fromkeys(one.method for one in pictures):
        shown = "".join(
            f"<figure>{one.svg}<figcaption>{escape(one.caption)}</figcaption></figure>"
            for one in pictures
            if one.method == method
        )
        parts.append(f"<h3>{escape(method)}</h3><div class='gallery'>{shown}</div>")
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"{OWN_PAGE.decode()}<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{''.join(parts)}</body></html>\n"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th scope='col'>{escape(one)}</th>" for one in (table.corner, *table.columns))
    rows = "".join(
        f"<tr><th scope='row'>{escape(row.name)}</th>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in table.cells(row))
        + "</tr>"
        for row in table.rows
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    return (
        f"<h2>{escape(table.title)}</h2><div class='table' tabindex='0'><table><thead><tr>{head}"
        f"</tr></thead><tbody>{rows}</tbody></table></div>{notes}"
    )


def _plot(plot: Plot) -> str:
    words, names = "", list(next(iter(plot.panels.values())))
    against = plot.kind == "pairs"
    if against and len(names) < 2:
        return ""
    if against:
        words = "<p>Each dot is a pair of photographs; on the line both methods do as well.</p>"
    figures = "".join(
        f"<figure>{f'<figcaption>{escape(panel)}</figcaption>' if panel else ''}"
        f"{panel_svg(plot, panel)}</figure>"
        for panel in plot.panels
    )
    lines = legend(names, first=int(against))
    kind = " class='wide'" if len(plot.panels) > 1 else ""
    return (
        f"<section{kind}><h2>{escape(plot.title)}</h2>{words}"
        f"<div class='panels'>{figures}</div>{lines}</section>"
    )


def pairs_csv(details: dict[str, Any]) -> str | None:
    """The scores of all pairs of photographs, one line for each method and pair.

    Parameters
    ----------
    details
        By method, or by run and method; None is returned where they hold no pairs.

    Examples
    --------
    >>> print(pairs_csv({"ours": {"pairs": {"1-2": {"error": 3.0, "right": 9}}}}), end="")
    method,pair,error,right
    ours,1-2,3.0,9
    """
    methods: dict[str, Any] = {}
    for name, one in details.items():
        if isinstance(one, dict) and "pairs" not in one:
            methods |= {f"{name}: {method}": inner for method, inner in one.items()}
        else:
            methods[name] = one
    rows = [
        {"method": name, "pair": pair, **scores}
        for name, one in methods.items()
        if isinstance(one, dict) and isinstance(one.get("pairs"), dict)
        for pair, scores in one["pairs"].items()
        if isinstance(scores, dict)
    ]
    if not rows:
        return None
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return text.getvalue()


def _cell(value: object) -> object:
    """A list as numbers with spaces between; anything else as it is."""
    return " ".join(f"{one:.4g}" for one in value) if isinstance(value, list) else value

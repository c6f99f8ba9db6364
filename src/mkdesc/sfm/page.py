"""One page that shows a reconstruction: cameras, points, image graph, tracks and errors."""

from __future__ import annotations

import html
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path
from mkdesc.sfm.report import SfmReport
from mkdesc.sfm.scenes import certain_pairs

#: Name of the page in the folder of a reconstruction.
PAGE = "report.html"
#: Points and edges of the graph shown at most: a page of some megabytes.
POINTS, EDGES = 20_000, 3_000
#: Images whose names stand beside their dots at most; of more, the pointer shows them.
LABELS = 40
#: What the colours of a view are, and its numbers.
_KEY = "Red: cameras, with the names of their images. Lengths are in a unit of the model's own."
_INK, _CAMERAS, _LINES = "#37474f", "#c62828", "rgba(70,110,150,0.35)"


def write_page(path: Path, report: SfmReport, models: Mapping[int, Any], database: Path) -> bool:
    """Write the page of a reconstruction; False, and nothing, if plotly is not there.

    Parameters
    ----------
    path
        Of the page: one file that needs no network.
    report
        The numbers.
    models
        ``pycolmap.Reconstruction`` by number; the first is shown.
    database
        Its verified pairs are the image graph.
    """
    try:
        from plotly.io import to_html
    except ImportError:
        return False
    model = models[0]
    figures = [
        ("Cameras and points", f"{_KEY} Drag to turn.", _space(model)),
        ("Seen from above", _KEY, _above(model)),
        (
            "Which images agree",
            "Each dot is an image, in the colour of its model; a line joins two that agree.",
            _graph(database, models),
        ),
        ("Keypoints that see a point", "How long its track is.", _tracks(model)),
        (
            "Errors of reprojection",
            "How far, on average, keypoints are from where their point is seen.",
            _errors(model),
        ),
    ]
    parts = []
    for number, (title, words, figure) in enumerate(figures):
        height = 400 if number else 640
        margin = {"l": 50, "r": 10, "t": 10, "b": 40} if number else dict.fromkeys("lrtb", 0)
        figure.update_layout(height=height, margin=margin, showlegend=False)
        figure.update_layout(template="plotly_white")
        inner = to_html(
            figure, full_html=False, include_plotlyjs=number == 0, div_id=f"figure-{number}"
        )
        parts.append(f"<section><h2>{title}</h2><p>{words}</p>{inner}</section>")
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in report.lines())
    style = (
        "body{font:16px sans-serif;margin:2em auto;padding:0 1em;max-width:1200px;color:#37474f}"
        "main{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(520px,100%),1fr));gap:1em}"
        "section:first-child{grid-column:1/-1}"
    )
    page = (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Reconstruction</title>"
        "<meta name='viewport' content='width=device-width'>"
        f"<style>{style}</style><h1>Reconstruction</h1>{lines}<main>{''.join(parts)}</main></html>"
    )
    with atomic_path(path) as partial:
        partial.write_text(page, encoding="utf-8")
    return True


def _cameras(model: Any) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Names, positions (N, 3) and directions of view (N, 3) of the cameras."""
    images = sorted(
        (image for image in model.images.values() if image.has_pose), key=lambda one: one.name
    )
    positions = np.array([image.projection_center() for image in images]).reshape(-1, 3)
    views = np.array([image.viewing_direction() for image in images]).reshape(-1, 3)
    return [image.name for image in images], positions, views


def _points(model: Any) -> tuple[NDArray[np.float64], list[str]]:
    """Positions (N, 3) and colours of points, evenly chosen; none of the furthest hundredth."""
    found = list(model.points3D.values())
    positions = np.array([point.xyz for point in found]).reshape(-1, 3)
    if not len(positions):
        return positions, []
    away = np.linalg.norm(positions - np.median(positions, axis=0), axis=1)
    near = np.flatnonzero(away <= np.quantile(away, 0.99))
    chosen = near[np.unique(np.linspace(0, len(near) - 1, min(POINTS, len(near))).astype(int))]
    colours = [f"rgb({','.join(map(str, found[i].color.tolist()))})" for i in chosen]
    return positions[chosen].round(4), colours


#: What the axes of views are.
_DIRECTIONS = ("right", "ahead", "up")


def _upright(model: Any) -> NDArray[np.float64]:
    """(3, 3): right, ahead and up, as the cameras have them on average."""
    turns = [image.cam_from_world().rotation.matrix() for image in _posed(model)]
    up = -np.mean([turn[1] for turn in turns], axis=0)
    ahead = np.mean([turn[2] for turn in turns], axis=0)
    up /= np.linalg.norm(up) or 1
    ahead = ahead - ahead @ up * up
    if np.linalg.norm(ahead) < 1e-6:  # cameras all around: any direction will do
        ahead = np.cross(up, [1.0, 0, 0])
    ahead /= np.linalg.norm(ahead)
    return np.array([np.cross(ahead, up), ahead, up])


def _posed(model: Any) -> list[Any]:
    return [image for image in model.images.values() if image.has_pose]


def _labels(names: list[str], more: list[str] | None = None) -> dict[str, Any]:
    """Names beside dots, as plotly takes them; the whole of them, and more, under the pointer."""
    few = len(names) <= LABELS
    return {
        "text": [Path(name).stem for name in names],
        "mode": "markers+text" if few else "markers",
        "textposition": "top center",
        "hovertext": names
        if more is None
        else [f"{a}<br>{b}" for a, b in zip(names, more, strict=True)],
        "hoverinfo": "text",
    }


def _space(model: Any) -> Any:
    import plotly.graph_objects as go

    axes = _upright(model)
    positions, colours = _points(model)
    names, cameras, views = _cameras(model)
    x, y, z = (positions @ axes.T).T
    cx, cy, cz = (cameras @ axes.T).T
    length = 0.05 * float(np.linalg.norm(np.ptp(cameras, axis=0)) or 1)
    ends = (cameras + length * views) @ axes.T
    lines = np.full((3 * len(cameras), 3), np.nan)
    lines[0::3], lines[1::3] = cameras @ axes.T, ends
    small = {"size": 1.5, "color": colours}
    figure = go.Figure(
        [
            go.Scatter3d(x=x, y=y, z=z, mode="markers", marker=small, name="points"),
            go.Scatter3d(
                x=cx,
                y=cy,
                z=cz,
                **_labels(names),
                marker={"size": 4, "color": _CAMERAS},
                name="cameras",
            ),
            go.Scatter3d(
                x=lines[:, 0],
                y=lines[:, 1],
                z=lines[:, 2],
                mode="lines",
                line={"color": _CAMERAS, "width": 4},
                name="views",
                hoverinfo="skip",
            ),
        ]
    )
    # Behind the cameras, a little to the left, above; all that is there can be seen.
    behind = {"eye": {"x": -0.7, "y": -1.9, "z": 0.9}, "center": {"z": -0.15}}
    titles = {f"{axis}axis_title": name for axis, name in zip("xyz", _DIRECTIONS, strict=True)}
    figure.update_scenes(aspectmode="data", camera=behind, **titles)
    return figure


def _above(model: Any) -> Any:
    import plotly.graph_objects as go

    axes = _upright(model)
    positions, _ = _points(model)
    names, cameras, _ = _cameras(model)
    x, y, _ = (positions @ axes.T).T
    cx, cy, _ = (cameras @ axes.T).T
    figure = go.Figure(
        [
            go.Scattergl(
                x=x, y=y, mode="markers", marker={"size": 2, "color": _LINES}, name="points"
            ),
            go.Scatter(x=cx, y=cy, **_labels(names), marker={"color": _CAMERAS}, name="cameras"),
        ]
    )
    right, ahead, _ = _DIRECTIONS
    figure.update_xaxes(title=right).update_yaxes(title=ahead, scaleanchor="x")
    return figure


def _graph(database: Path, models: Mapping[int, Any]) -> Any:
    """Images around a circle, those of a model together, with lines between those that agree."""
    import plotly.graph_objects as go

    with closing(sqlite3.connect(database)) as base:
        names = [name for (name,) in base.execute("SELECT name FROM images")]
    of = {image.name: n for n, model in models.items() for image in _posed(model)}
    order = sorted(names, key=lambda name: (of.get(name, len(models)), name))
    angles = {name: 2 * np.pi * k / len(order) for k, name in enumerate(order)}
    where = {name: (np.cos(angle), np.sin(angle)) for name, angle in angles.items()}
    x: list[float | None] = []
    y: list[float | None] = []
    for one, other in certain_pairs(database)[:EDGES]:
        x += [where[one][0], where[other][0], None]
        y += [where[one][1], where[other][1], None]
    groups = [of.get(name) for name in order]
    said = ["in no model" if group is None else f"model {group}" for group in groups]
    # Names are outside of the circle.
    beside = [
        f"{'top' if angle <= np.pi else 'bottom'} "
        f"{'right' if np.cos(angle) > 0.1 else 'left' if np.cos(angle) < -0.1 else 'center'}"
        for angle in angles.values()
    ]
    figure = go.Figure(
        [
            go.Scatter(x=x, y=y, mode="lines", line={"color": _LINES, "width": 1}, name="agree"),
            go.Scatter(
                x=[where[name][0] for name in order],
                y=[where[name][1] for name in order],
                **_labels(order, said) | {"textposition": beside},
                marker={"color": [-1 if g is None else g for g in groups], "colorscale": "Turbo"},
                name="images",
            ),
        ]
    )
    figure.update_xaxes(visible=False, range=[-1.4, 1.4])
    return figure.update_yaxes(visible=False, range=[-1.2, 1.2], scaleanchor="x")


def _tracks(model: Any) -> Any:
    import plotly.graph_objects as go

    lengths = np.bincount([point.track.length() for point in model.points3D.values()])
    figure = go.Figure(go.Bar(x=np.arange(2, len(lengths)), y=lengths[2:], marker_color=_INK))
    return figure.update_layout(xaxis_title="keypoints", yaxis_title="points", bargap=0.1)


def _errors(model: Any) -> Any:
    import plotly.graph_objects as go

    counts, edges = np.histogram([point.error for point in model.points3D.values()], bins=40)
    middles = (edges[:-1] + edges[1:]) / 2
    figure = go.Figure(go.Bar(x=middles, y=counts, marker_color=_INK))
    return figure.update_layout(xaxis_title="pixels", yaxis_title="points", bargap=0)

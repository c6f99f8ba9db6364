"""Drawing with matplotlib: maps with isocontours, and figures written to files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path
from mkdesc._support.optional import needed
from mkdesc._support.targets import check_target
from mkdesc.images.writing import OWN_PICTURE, own_png
from mkdesc.visual.colours import MAP, MARK, MARK_EDGE, colour_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Kinds of files that figures are written as, and what keeps the date out of each.
FORMATS: dict[str, dict[str, str | None]] = {
    "png": {"Software": "mkdesc"},
    "pdf": {"CreationDate": None, "Creator": "mkdesc"},
    "svg": {"Date": None, "Creator": "mkdesc"},
}
#: What such files have in them.
_OWN = {"png": OWN_PICTURE, "pdf": rb"/Creator \(mkdesc\)", "svg": rb"<dc:title>mkdesc</dc:title>"}

#: Isocontours of a map, as in the paper.
CONTOURS = 10
#: Share of a map's range below zero from which on zero is shown in it; the weak swings of few
#: frequencies about zero would only clutter it.
MUCH = 0.25
#: Fonts that printers take (TrueType), and the same names inside a file each time.
_STYLE = {"pdf.fonttype": 42, "svg.hashsalt": "mkdesc"}


def new_figure(width: float, height: float) -> Figure:
    """An empty matplotlib figure of a size in inches, without pyplot's global state."""
    with needed("drawing needs matplotlib", "plots"):
        from matplotlib.figure import Figure
    return Figure(figsize=(width, height), layout="constrained")


def draw_map(
    axes: Any,
    values: NDArray[np.float64],
    pixel: Sequence[float] | None = None,
    limits: tuple[float, float] | None = None,
) -> Any:
    """Draw a map (W, W) with ten isocontours, uniform between its limits, and mark a pixel.

    Below zero they are dashed. Where much is below zero, a white line shows where it begins.
    """
    low, high = (float(values.min()), float(values.max())) if limits is None else limits
    levels = np.linspace(low, high if high > low else low + 1, CONTOURS + 2)
    bands = axes.contourf(np.clip(values, low, high), levels, cmap=colour_map(MAP))
    bands.set_rasterized(True)  # viewers show seams between the bands of vector files
    if 0 < MUCH * (high - low) < -low:
        axes.contour(values, [0], colors=MARK, linewidths=1.2)
    axes.contour(values, levels[1:-1], colors="black", linewidths=0.4)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    if pixel is not None:
        for colour, width in ((MARK_EDGE, 3.5), (MARK, 1.5)):
            axes.plot(pixel[1], pixel[0], "x", color=colour, markersize=6, markeredgewidth=width)
    _bare(axes)
    return bands


def add_scale(figure: Any, drawn: Any, axes: Any, **more: Any) -> Any:
    """A colour bar beside axes, with a few round ticks; zero is marked where signs change."""
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(drawn, ax=axes, ticks=MaxNLocator(6, steps=[1, 2, 5, 10]), **more)
    bar.ax.tick_params(labelsize="x-small", length=2)
    if bar.vmin < 0 < bar.vmax:
        bar.ax.axhline(0, color=MARK, linewidth=1.2)
    return bar


def draw_image(axes: Any, image: NDArray[Any], cmap: Any = "gray", **limits: float) -> Any:
    """Draw an image (W, W), in gray unless told otherwise, or (W, W, 3)."""
    drawn = axes.imshow(image, cmap=cmap, interpolation="nearest", **limits)
    _bare(axes)
    return drawn


def _bare(axes: Any) -> None:
    axes.set_xticks([])
    axes.set_yticks([])


def check_output(
    path: str | os.PathLike[str],
    reads: Iterable[str | os.PathLike[str] | None] = (),
    overwrite: bool = False,
) -> str:
    """The format that the name of a file ends in, or an error, also if matplotlib is missing.

    Parameters
    ----------
    path
        Of the file.
    reads, overwrite
        As for ``check_target`` of ``mkdesc._support.targets``.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ValueError(f"output: expected a name ending in .{', .'.join(FORMATS)}, got {path}")
    check_target(path, reads, _OWN[kind], overwrite)
    new_figure(1, 1)
    return kind


def write_figure(
    figure: Figure,
    path: str | os.PathLike[str],
    few_colours: bool = False,
    *,
    overwrite: bool = False,
) -> Path:
    """Write a figure in the format that the name ends in: png, pdf or svg.

    A PNG of ``few_colours`` gets a palette and is a third as large. A file that is no such figure
    is replaced only if ``overwrite`` says so.
    """
    from matplotlib import rc_context
    from PIL import Image  # matplotlib needs it too

    target = Path(path)
    kind = check_output(target, overwrite=overwrite)
    data = BytesIO()
    with rc_context(_STYLE):
        figure.savefig(data, format=kind, dpi=150, metadata=FORMATS[kind])
    if kind == "png" and few_colours:
        with Image.open(data) as image:
            data = BytesIO()
            few = image.convert("RGB").quantize(256)
            few.save(data, "png", optimize=True, pnginfo=own_png())
    with atomic_path(target) as partial:
        partial.write_bytes(data.getvalue())
    return target

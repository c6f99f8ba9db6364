"""The figures of the paper, and one of the extended descriptor, drawn from the kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.targets import check_folder, make_folder
from mkdesc.descriptor import MKD
from mkdesc.kernels.parametrization import CARTESIAN, POLAR, as_parametrization
from mkdesc.kernels.vonmises import VonMises
from mkdesc.models import model_file
from mkdesc.visual.colours import LINES
from mkdesc.visual.extended import extended_figure
from mkdesc.visual.patchmaps import patch_map
from mkdesc.visual.plotting import (
    FORMATS,
    add_scale,
    check_output,
    draw_map,
    new_figure,
    write_figure,
)
from mkdesc.visual.whitenings import bundled_whitenings, load_whitening

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: The pixel of Figures 2 and 3, and the three of Figure 4: (row, column).
PIXEL = (20, 20)
PIXELS = ((30, 30), (20, 20), (12, 40))
#: Gradient angles of q, and what rows are called that show them; that of p is 0.
TURNS = (
    (0.0, "same gradient angle\n" r"$\Delta\theta = 0$"),
    (-np.pi / 8, "gradient of q turned\n" r"$\Delta\theta = \pi/8$"),
)

_POLAR = "polar\n" r"$k_\phi k_\rho k_{\tilde\theta}$"
_CARTESIAN = "cartesian\n" r"$k_x k_y k_\theta$"
_BOTH = "polar + cartesian\n" r"$k_\phi k_\rho k_{\tilde\theta} + k_x k_y k_\theta$"
_METHODS = {"pca": "PCA", "lw": "whitened (LW)"}

#: Descriptors with whitenings, by the names of the bundled ones that they stand for.
Whitenings = dict[str, MKD]
#: Of a grid of maps, a row or a column: its label, and what its maps have in common, as
#: :func:`~mkdesc.patch_map` takes it.
Line = tuple[str, dict[str, Any]]


def choose_whitenings(given: Iterable[str | os.PathLike[str]] = ()) -> Whitenings:
    """The bundled whitenings, each replaced by one of ``given`` on the same kernels.

    Parameters
    ----------
    given
        What :func:`~mkdesc.visual.whitenings.load_whitening` takes, on the kernels ``polar``,
        ``cartesian`` or ``polar+cartesian``. Those of PCA on ``polar`` replace the PCA of
        Figure 3, all others the learned whitenings.

    Examples
    --------
    >>> choose_whitenings(["paper"])["polar-cartesian-lw"].whitening.method
    'gda'
    """
    chosen = {name: load_whitening(name) for name in bundled_whitenings()}
    roles = {POLAR: "polar", CARTESIAN: "cartesian", POLAR + CARTESIAN: "polar-cartesian"}
    for name in given:
        mkd = load_whitening(name)
        kernels = as_parametrization(mkd.parametrization)
        if kernels not in roles:
            raise ValueError(
                f"{name}: learned on {kernels}, expected polar, cartesian or polar+cartesian"
            )
        is_pca = kernels == POLAR and _method(mkd).startswith("pca")
        chosen[f"{roles[kernels]}-{'pca' if is_pca else 'lw'}"] = mkd
    return chosen


def _method(mkd: MKD) -> str:
    return "" if mkd.whitening is None else mkd.whitening.method


def _label(mkd: MKD) -> str:
    """What a whitening is called in a figure."""
    return _METHODS.get(_method(mkd), _method(mkd).upper())


def kernels_figure() -> Figure:
    """Figure 1: the kernels of the paper and what their few frequencies make of them."""
    panels = [
        (
            VonMises(8, 3),
            "gradient angle",
            r"difference $\Delta\theta$ or $\Delta\tilde\theta$",
            r"$k_\theta$ or $k_{\tilde\theta}$",
        ),
        (
            VonMises(8, 2),
            "polar position",
            r"difference $\Delta\phi$ or $\Delta\rho$",
            r"$k_\phi$ or $k_\rho$",
        ),
        (
            VonMises(1, 1),
            "cartesian position",
            r"difference $\Delta x$ or $\Delta y$",
            r"$k_x$ or $k_y$",
        ),
    ]
    figure = new_figure(7.2, 2.6)
    delta = np.linspace(0, np.pi, 257)
    for axes, (kernel, words, across, up) in zip(figure.subplots(1, 3), panels, strict=True):
        axes.plot(delta, kernel(delta), "--", color="0.4", linewidth=1.2, label="exact")
        axes.plot(delta, kernel.approximate(delta), color=LINES[0], linewidth=2, label="as used")
        numbers = rf"$\kappa = {kernel.kappa:g},\ N = {kernel.n}$"
        axes.set_title(f"{words}\n{numbers}", fontsize="medium")
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.set_xlim(0, np.pi)
        axes.set_ylim(-0.2, 1.05)
        axes.set_xticks(
            np.arange(5) * np.pi / 4, ["0", r"$\pi/4$", r"$\pi/2$", r"$3\pi/4$", r"$\pi$"]
        )
        axes.set_yticks([0, 0.5, 1])
        axes.axhline(0, color="0.5", linewidth=0.8, zorder=0)
        axes.legend(fontsize="small", frameon=False)
    return figure


def _map_grid(rows: Sequence[Line], columns: Sequence[Line]) -> Figure:
    """Maps, each of what its row and its column say, and with its own scale."""
    figure = new_figure(2.05 * len(columns) + 0.4, 1.7 * len(rows) + 0.7)
    grid = figure.subplots(len(rows), len(columns), squeeze=False)
    for line, (_, shared) in zip(grid, rows, strict=True):
        for axes, (_, own) in zip(line, columns, strict=True):
            settings = shared | own
            drawn = draw_map(axes, patch_map(**settings), settings["pixel"])
            add_scale(figure, drawn, axes, cax=axes.inset_axes((1.03, 0, 0.07, 1)))
    for axes, (label, _) in zip(grid[:, 0], rows, strict=True):
        axes.set_ylabel(label, fontsize="medium")
    for axes, (label, _) in zip(grid[0], columns, strict=True):
        axes.set_title(label, fontsize="medium")
    figure.supxlabel(
        "colour: how similar to p (the cross) a pixel q at that place is; white: zero",
        fontsize="small",
    )
    return figure


def parametrizations_figure() -> Figure:
    """Figure 2: four parametrizations, with equal gradients and with gradients turned."""
    kernels = {
        "polar-absolute": "polar, absolute angle\n" r"$k_\phi k_\rho k_\theta$",
        "polar": _POLAR.replace("polar", "polar, relative angle"),
        "cartesian": _CARTESIAN.replace("cartesian", "cartesian, absolute angle"),
        "cartesian-relative": "cartesian, relative angle\n" r"$k_x k_y k_{\tilde\theta}$",
    }
    return _map_grid(
        _turns(), [(label, {"parametrization": name}) for name, label in kernels.items()]
    )


def _turns() -> list[Line]:
    return [(label, {"pixel": PIXEL, "q_theta": turn}) for turn, label in TURNS]


def whitening_figure(whitenings: Whitenings) -> Figure:
    """Figure 3: the polar kernel as it is, after PCA, and after learned whitening."""
    polar = {"parametrization": "polar"}
    columns: list[Line] = [("polar,\nraw", polar)]
    for name in ("polar-pca", "polar-lw"):
        mkd = whitenings[name]
        columns.append((f"polar,\n{_label(mkd)}", polar | {"whitening": mkd}))
    return _map_grid(_turns(), columns)


def combination_figure(whitenings: Whitenings) -> Figure:
    """Figure 4: polar, cartesian and both, for three pixels, before and after whitening."""
    kernels = [
        (_POLAR, "polar", "polar-lw"),
        (_CARTESIAN, "cartesian", "cartesian-lw"),
        (_BOTH, "polar+cartesian", "polar-cartesian-lw"),
    ]
    rows: list[Line] = [(f"{label}\nraw", {"parametrization": name}) for label, name, _ in kernels]
    for label, name, role in kernels:
        mkd = whitenings[role]
        rows.append((f"{label}\n{_label(mkd)}", {"parametrization": name, "whitening": mkd}))
    columns: list[Line] = [
        (f"pixel p at row {row},\ncolumn {column}", {"pixel": (row, column)})
        for row, column in PIXELS
    ]
    return _map_grid(rows, columns)


def draw_figures(
    folder: str | os.PathLike[str],
    formats: Sequence[str] = ("png", "pdf"),
    whitenings: Iterable[str | os.PathLike[str]] = (),
    progress: Progress = no_progress,
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Draw all figures into a folder, which is made if it is not there.

    Parameters
    ----------
    folder
        Where to.
    formats
        Any of png, pdf and svg.
    whitenings
        Instead of the bundled ones; see :func:`choose_whitenings`.
    progress
        Told of every file that was written, by its path.
    overwrite
        Whether to replace files that are no figures of this package.

    Returns
    -------
    list of Path
        The files.
    """
    unknown = [kind for kind in formats if kind not in FORMATS]
    if unknown or not formats:
        raise ValueError(f"formats: expected any of {', '.join(FORMATS)}, got {list(formats)}")
    whitenings = list(whitenings)
    chosen = choose_whitenings(whitenings)
    target = Path(folder)
    check_folder(target)
    figures: dict[str, Callable[[], Figure]] = {
        "figure1-kernels": kernels_figure,
        "figure2-parametrizations": parametrizations_figure,
        "figure3-whitening": partial(whitening_figure, chosen),
        "figure4-combination": partial(combination_figure, chosen),
        "figure5-extended": extended_figure,
    }
    new_figure(1, 1)  # without matplotlib, no folder is made
    make_folder(target)
    reads = [model_file(whitening) for whitening in whitenings]
    for name in figures:
        for kind in formats:
            check_output(target / f"{name}.{kind}", reads, overwrite)
    written = []
    for name, make in figures.items():
        figure = make()
        for kind in formats:
            file = target / f"{name}.{kind}"
            written.append(write_figure(figure, file, few_colours=True, overwrite=overwrite))
            progress(str(written[-1]), len(written), len(figures) * len(formats))
    return written

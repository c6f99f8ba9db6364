"""``mkdesc figures``: the paper's figures, drawn from the kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc.cli.options import Overwrite


def command(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write them.")
    ],
    formats: Annotated[
        str, typer.Option("--formats", help="Comma-separated list of png, pdf and svg.")
    ] = "png,pdf",
    whitening: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="Model on polar, cartesian or polar+cartesian to show instead of a bundled "
            "whitening: a name, a file, or FILE:SET:METHOD for the layout of kornia/mkd. "
            "May be repeated.",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw the figures of the paper, and one of our own."""
    from mkdesc.visual.figures import draw_figures

    kinds = [kind.strip() for kind in formats.split(",")]
    draw_figures(
        output,
        kinds,
        whitening or (),
        lambda path, *_: print(f"written: {path}"),
        overwrite=overwrite,
    )

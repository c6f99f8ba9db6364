"""``mkdesc explore``: kernels, patch maps and patches in the browser."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.check import check_ending
from mkdesc.cli.options import Overwrite


def command(
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html", help="Write the page to a single file instead of serving it."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one.")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, but open no browser.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Explore kernels, patch maps and two patches in the browser."""
    if export is not None:
        from mkdesc.explorer.page import export_page

        check_ending("--export", export, [".html", ".htm"])
        export_page(export, overwrite=overwrite)
        print(f"written: {export}")
        return
    from mkdesc.explorer.server import is_loopback, serve

    if not is_loopback(host):
        warnings.warn(f"--host {host}: anyone who can reach this machine can use it", stacklevel=1)
    serve(host, port, not no_browser)

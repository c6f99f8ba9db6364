"""The ``mkdesc`` command, and how it ends: 0, 2 with one line for bad input, 130 on Ctrl-C."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import mkdesc
from mkdesc.cli import describe, features, info, learn, match, models, sfm

__all__ = ["app", "main"]

app = typer.Typer(
    name="mkdesc",
    help="The multiple-kernel local-patch descriptor.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("match")(match.command)
app.command("features")(features.command)
app.command("sfm")(sfm.command)
app.command("describe")(describe.command)
app.add_typer(learn.app, name="learn")
app.add_typer(models.app, name="models")
app.command("info")(info.command)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"mkdesc {mkdesc.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    try:
        app()
    except KeyboardInterrupt:
        print("interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)

"""The ``mkdesc`` command and its subcommands."""

from __future__ import annotations

from typing import Annotated

import typer

from mkdesc._support.version import __version__
from mkdesc.cli import (
    compare,
    datasets,
    demo,
    describe,
    evaluate,
    explore,
    export,
    features,
    figures,
    find,
    groups,
    index,
    info,
    inspect,
    learn,
    make_hpatches,
    match,
    models,
    pairs,
    sfm,
)

__all__ = ["app"]

app = typer.Typer(
    name="mkdesc",
    help="The multiple-kernel local-patch descriptor.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.command)
app.command("match")(match.command)
app.command("features")(features.command)
app.command("index")(index.command)
app.command("find")(find.command)
app.command("groups")(groups.command)
app.command("pairs")(pairs.command)
app.command("sfm")(sfm.command)
app.command("describe")(describe.command)
app.add_typer(learn.app, name="learn")
app.add_typer(models.app, name="models")
app.add_typer(evaluate.app, name="evaluate")
app.command("compare")(compare.command)
app.add_typer(datasets.app, name="datasets")
app.command("make-hpatches")(make_hpatches.command)
app.add_typer(export.app, name="export")
app.command("explore")(explore.command)
app.command("inspect")(inspect.command)
app.command("figures")(figures.command)
app.command("info")(info.command)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"mkdesc {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    pass

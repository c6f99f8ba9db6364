"""The ``mkdesc`` command and its subcommands."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from mkdesc._support.version import __version__

#: The commands, in the order of the help; each is a module of this folder.
COMMANDS = (
    "demo",
    "match",
    "features",
    "index",
    "find",
    "groups",
    "pairs",
    "sfm",
    "describe",
    "learn",
    "models",
    "evaluate",
    "compare",
    "datasets",
    "make-hpatches",
    "export",
    "explore",
    "inspect",
    "figures",
    "info",
)


def make_app(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """The application with these commands; to run one of them, the others need not be imported."""
    app = typer.Typer(
        name="mkdesc",
        help="The multiple-kernel local-patch descriptor.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=_options,
    )
    for name in commands:
        module = import_module(f"mkdesc.cli.{name.replace('-', '_')}")
        if hasattr(module, "app"):  # it has commands of its own
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(module.command)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        print(f"mkdesc {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    pass

"""The ``mkdesc`` command and its subcommands."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from mkdesc._support.version import __version__
from mkdesc.cli.plain_help import PlainCommand, PlainGroup

#: The commands by the group in which the help lists them; each is a module of this folder.
PANELS = {
    "Everyday": (
        "demo",
        "match",
        "align",
        "features",
        "describe",
        "index",
        "find",
        "groups",
        "pairs",
        "sfm",
        "models",
        "info",
        "compile",
    ),
    "Learn": ("learn",),
    "Evaluate": ("evaluate", "compare", "datasets", "make-hpatches", "export"),
    "The paper: kernels and patch maps": ("explore", "inspect", "figures"),
}
COMMANDS = tuple(name for names in PANELS.values() for name in names)


class _Main(PlainGroup):
    names = COMMANDS


def make_app(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """The application with these commands; to run one of them, the others need not be imported."""
    app = typer.Typer(
        name="mkdesc",
        help="Local features for plain CPUs: match, index, reconstruct, and learn your own.\n\n"
        "Results go to stdout; progress, warnings and errors go to stderr. Exit codes: 0 done, 1 "
        "not found, or some photographs could not be read, 2 bad arguments or files, 3 repeated "
        "structure, 130 interrupted.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=_options,
        cls=_Main,
    )
    panels = {name: panel for panel, names in PANELS.items() for name in names}
    for name in commands:
        module = import_module(f"mkdesc.cli.{name.replace('-', '_')}")
        if hasattr(module, "app"):  # it has commands of its own
            for command in module.app.registered_commands:
                command.cls = PlainCommand
            app.add_typer(module.app, name=name, cls=PlainGroup, rich_help_panel=panels[name])
        else:
            app.command(name, cls=PlainCommand, rich_help_panel=panels[name])(module.command)
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

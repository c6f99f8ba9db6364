"""How commands talk: help flows into the width of the terminal, errors name what was typed."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import Any

from typer.core import TyperCommand, TyperGroup

from mkdesc.cli.typed_names import as_typed

#: An argument ``-``, or an option with it.
_DASH = re.compile(r"(-o|--[a-z-]+=)?-")


def flow(text: str | None) -> str | None:
    r"""The paragraphs of a docstring, each on one line; the terminal wraps them.

    >>> flow("Do it.\n\n    If it is\n    there.")
    'Do it.\n\nIf it is there.'
    """
    if text is None:
        return None
    return "\n\n".join(" ".join(part.split()) for part in cleandoc(text).split("\n\n"))


class _Plain:
    """What commands and groups of them have in common."""

    def __init__(self, *arguments: Any, help: str | None = None, **options: Any) -> None:
        super().__init__(*arguments, help=flow(help), **options)  # type: ignore[call-arg]

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; nothing is shown as the type of a flag."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class PlainCommand(_Plain, TyperCommand):
    """A command, whose errors name options and arguments as they are typed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse ``-``, which elsewhere stands for stdin or stdout, and parse the rest."""
        if any(_DASH.fullmatch(word) for word in args):
            raise ValueError(
                "-: mkdesc neither reads stdin nor writes files to stdout; expected the name of a "
                "file (./- is one that is called so)"
            )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        try:
            return super().invoke(ctx)
        except (ValueError, OSError) as error:
            said = as_typed(str(error), self.params)
            if said == str(error):
                raise
            raise ValueError(said) from error


class PlainGroup(_Plain, TyperGroup):
    """A group of commands, listed in the order in which ``names`` has them."""

    names: tuple[str, ...] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        there = super().list_commands(ctx)
        return sorted(there, key=self.names.index) if self.names else there

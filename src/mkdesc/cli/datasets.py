"""``mkdesc datasets``: the public sets, and checks of folders of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc.cli.progress import console
from mkdesc.datasets.catalogue import CATALOGUE, check_folder

app = typer.Typer(help="List public datasets and where to get them, or check a copy.")


@app.callback(invoke_without_command=True)
def _list(context: typer.Context) -> None:
    if context.invoked_subcommand is not None:
        return
    for info in CATALOGUE:
        print(f"{info.name}\n  {info.what}\n  size   {info.size}\n  where  {info.where}")
        if info.note:
            print(f"  note   {info.note}")
    print("Nothing is downloaded; `mkdesc datasets check FOLDER` looks at what you have.")


@app.command("check")
def _check(
    folder: Annotated[Path, typer.Argument(help="A dataset in one of these layouts.")],
) -> None:
    """Identify a dataset, and check its files, counts and known hashes."""
    with console.status("reading"):
        found = check_folder(folder)
    print(f"{folder}: {found.kind}")
    print("\n".join(found.lines))

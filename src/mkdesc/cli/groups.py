"""``mkdesc groups``: the scenes that the photographs of an index show."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from mkdesc.cli.progress import progress_bar, resumable, say_what_changed


def command(
    index: Annotated[Path, typer.Argument(help="Index that `mkdesc index` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="SCENES",
            help="Folder to create, with a folder per scene and links to its photographs.",
        ),
    ] = None,
    least: Annotated[
        int, typer.Option(metavar="N", help="Leave out scenes with fewer photographs.")
    ] = 2,
    k: Annotated[
        int | None,
        typer.Option(
            "-k", metavar="N", help="How many others to match each photograph with, on average."
        ),
    ] = None,
) -> None:
    """Group photographs by the scene they show."""
    from mkdesc._support.files import atomic_folder
    from mkdesc._support.targets import check_folder, check_target, is_inside
    from mkdesc.retrieval.groups import find_groups
    from mkdesc.retrieval.index import Index
    from mkdesc.retrieval.manifest import check_outside

    if output is not None and output.exists():
        raise ValueError(f"--output: expected a folder that does not exist yet, got {output}")
    if output is not None:
        check_folder(output)
        check_target(output)
        check_outside(output)
    opened = Index(index)
    say_what_changed(opened)
    if output is not None:
        for source in opened.sources:
            if is_inside(output, source):
                raise ValueError(
                    f"--output: {output} lies in {source}: the links in it would count as "
                    "photographs; choose another place"
                )
        for name in opened:
            opened.image_path(name)  # refuses to link to what is not there, before the work
    with resumable(), progress_bar("items") as progress:
        groups = find_groups(opened, k, progress)
    shown = [names for names in groups if len(names) >= least]
    for number, names in enumerate(shown, 1):
        print(f"{number:>3}  {len(names):>3} photographs: {', '.join(names)}")
    alone = sum(len(names) for names in groups if len(names) < least)
    print(f"scenes: {len(shown)}; photographs without a scene: {alone}")
    if output is not None:
        with atomic_folder(output, new=True) as partial:
            for number, names in enumerate(shown, 1):
                for name in names:
                    link = partial / f"{number:03d}" / name
                    link.parent.mkdir(parents=True, exist_ok=True)
                    photograph = opened.image_path(name).resolve()
                    try:
                        link.symlink_to(photograph)
                    except OSError:  # not everybody may link, on Windows: a copy then
                        shutil.copyfile(photograph, link)
        print(f"written: {output}")

"""``mkdesc demo``: photographs to try the other commands with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["command"]


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder to write to; made if need be.")
    ] = Path("demo"),
) -> None:
    """Write photographs to try things with, and say what to type next.

    A portrait, two changed copies of it, and eight views of a small scene. Files that are there
    already stay.
    """
    from mkdesc.images.demo import write_demo

    files = write_demo(folder)
    print(f"written: {len(files)} photographs in {folder}")
    print("type next:")
    print(f"  mkdesc match {folder / 'photo.png'} {folder / 'warped.png'} -o matches.jpg")
    print(f"  mkdesc match {folder / 'photo.png'} {folder / 'slanted.png'} --wide -o wide.jpg")
    print(f"  mkdesc learn photos {folder} -o mine.safetensors --like photo")
    print(f"  mkdesc sfm {folder / 'views'} -o model        # pip install 'mkdesc[colmap]'")

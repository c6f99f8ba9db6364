"""``mkdesc demo``: photographs to try the other commands with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder to write to; created if needed.")
    ] = Path("demo"),
) -> None:
    """Write sample photographs, and print commands to try on them.

    Two photographs of a street and two of a town; a portrait, two changed copies of it, eight
    drawn views of a room, and two sequences with their homographies. Existing files are kept.
    """
    from mkdesc.images.demo import write_demo

    photographs = [path for path in write_demo(folder) if path.suffix in (".jpg", ".png")]
    print(f"{folder}: {len(photographs)} photographs")
    print("try:")
    print(f"  mkdesc match {folder / 'street_a.jpg'} {folder / 'street_b.jpg'} -o matches.jpg")
    print(f"  mkdesc match {folder / 'town_a.jpg'} {folder / 'town_b.jpg'} --wide -o wide.jpg")
    print(f"  mkdesc features {folder / 'street_a.jpg'} -o keypoints.jpg")
    print(f"  mkdesc learn photos {folder / 'views'} -o mine.safetensors --like photo")
    print(f"  mkdesc sfm {folder / 'views'} -o model        # needs the extra colmap")

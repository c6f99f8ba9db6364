"""``mkdesc make-hpatches``: strips from your own images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mkdesc.cli.options import Detector
from mkdesc.cli.progress import progress, resumable
from mkdesc.datasets.hpatches.layout import Sequence
from mkdesc.datasets.hpatches.make_strips import SIDE, check_made, check_strips, make_sequence


def command(
    sequences: Annotated[
        list[Path],
        typer.Argument(help="Folders with the images 1 .. 6 and the homographies H_1_2 .. H_1_6."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="ROOT", help="Folder to write the strips to.")
    ],
    seed: Annotated[int, typer.Option(help="The same seed gives the same strips.")] = 0,
    max_patches: Annotated[
        int | None, typer.Option(help="Patches per sequence, the strongest; default: all.")
    ] = None,
    side: Annotated[float, typer.Option(help="Side of a patch in units of sigma.")] = SIDE,
    min_sigma: Annotated[
        float, typer.Option(help="Leave out keypoints with a smaller sigma, in pixels.")
    ] = 1.6,
    detector: Detector = "sift",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace sequences that were made before.")
    ] = False,
) -> None:
    """Cut HPatches-style strips of 65-px patches from your own images."""
    names = [folder.resolve().name for folder in sequences]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"SEQUENCES: expected different names, got {twice!r} twice")
    settings: dict[str, Any] = {
        "seed": seed,
        "max_patches": max_patches,
        "side": side,
        "min_sigma": min_sigma,
        "detector": detector,
    }
    for name in names if overwrite else ():
        check_strips(output / name, sequences)
    made = 0
    with resumable(), progress("sequences") as bar:
        task = bar.add_task("making strips", total=len(sequences))
        for folder, name in zip(sequences, names, strict=True):
            bar.update(task, description=name)
            if overwrite or not (output / name / "ref.png").exists():
                make_sequence(folder, output, overwrite=overwrite, **settings)
                made += 1
            else:
                check_made(folder, output / name, **settings)
            bar.advance(task)
    for name in names:
        print(f"{name}: {len(Sequence(output / name))} patches")
    kept = len(names) - made
    there = f", {kept} were there already" if kept else ""
    print(f"{output}: {made} sequences made{there}")

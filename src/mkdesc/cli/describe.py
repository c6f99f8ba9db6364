"""``mkdesc describe``: patches on disk to an array of descriptors on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from mkdesc.cli.progress import console, progress, warm_up
from mkdesc.datasets.sources import open_patches
from mkdesc.descriptor import MKD
from mkdesc.files import atomic_path

__all__ = ["command"]


def command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="Patches: .npy or .npz (N, W, W), a folder of Phototourism sheets (*.bmp), or "
            "an HPatches strip (.png).",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT.npy", help="Where to write (N, D).")
    ],
    parametrization: Annotated[
        str, typer.Option(help="Kernels, by name or as products such as 'x(1,1)*theta(8,3)'.")
    ] = "polar+cartesian",
    threads: Annotated[int | None, typer.Option(help="Threads; default: one per core.")] = None,
) -> None:
    """Describe patches: one unit vector of float32 per patch, in the order of the input."""
    if output.suffix != ".npy":
        raise ValueError(f"--output: expected a file name ending in .npy, got {output.name}")
    patches = open_patches(source)
    mkd = MKD(parametrization, patch_size=patches.size, n_threads=threads)
    width = mkd.transform(np.empty((0, patches.size, patches.size), np.uint8)).shape[1]
    with atomic_path(output) as partial, partial.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (patches.count, width)}
        np.lib.format.write_array_header_1_0(file, header)
        warm_up("uint8" if patches.dtype == np.uint8 else "float32")
        done = 0
        with progress("patches") as bar:
            task = bar.add_task("describing", total=patches.count)
            for block in patches.blocks():
                file.write(mkd.transform(block, first=done).tobytes())
                done += len(block)
                bar.update(task, advance=len(block))
    console.print(f"{output}: {patches.count} descriptors of {width} numbers")

"""``mkdesc describe``: patches on disk to an array of descriptors on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from mkdesc._support.files import atomic_path
from mkdesc.cli.options import Device, on_device
from mkdesc.cli.progress import console, progress, warm_up
from mkdesc.datasets.patch_files import open_patches
from mkdesc.descriptor import MKD
from mkdesc.models import open_model

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
    model: Annotated[
        str | None,
        typer.Option(
            help="Bundled model, model file, or FILE:SET:METHOD; default: 'default', or "
            "'default-32' for 32 px."
        ),
    ] = None,
    raw: Annotated[
        str | None,
        typer.Option(
            metavar="KERNELS",
            help="No whitening: the raw descriptor of these kernels, such as 'polar+cartesian' "
            "or 'x(1,1)*theta(8,3)'.",
        ),
    ] = None,
    resize: Annotated[
        bool, typer.Option(help="Resample patches of another size than the model's.")
    ] = False,
    threads: Annotated[int | None, typer.Option(help="Threads; default: one per core.")] = None,
    device: Device = "cpu",
) -> None:
    """Describe patches: one unit vector of float32 per patch, in the order of the input."""
    if output.suffix != ".npy":
        raise ValueError(f"--output: expected a file name ending in .npy, got {output.name}")
    if raw is not None and model is not None:
        raise ValueError("--raw and --model: expected one of them, got both")
    patches = open_patches(source)
    if output.exists() and source.exists() and output.samefile(source):
        raise ValueError(f"--output: {output} is the input")
    if raw is not None:
        mkd = MKD(raw, patches.size)
    else:
        mkd = open_model(model or ("default-32" if patches.size == 32 else "default"))
    mkd.set_params(n_threads=threads, resize=resize, **on_device(device))
    width = mkd.transform(np.empty((0, patches.size, patches.size), np.uint8)).shape[1]
    with atomic_path(output) as partial, partial.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (patches.count, width)}
        np.lib.format.write_array_header_1_0(file, header)
        plain = patches.dtype == np.uint8 and patches.size == mkd.patch_size
        warm_up(mkd, "uint8" if plain else "float32")
        done = 0
        with progress("patches") as bar:
            task = bar.add_task("describing", total=patches.count)
            for block in patches.blocks():
                file.write(mkd.transform(block, first=done).tobytes())
                done += len(block)
                bar.update(task, advance=len(block))
    console.print(f"{output}: {patches.count} descriptors of {width} numbers")

"""``mkdesc describe``: patches on disk to an array of descriptors on disk."""

from __future__ import annotations

from typing import Annotated

import typer

from mkdesc._support.threads import checked_threads
from mkdesc.batches import describe_file
from mkdesc.cli.cluster import workers_at
from mkdesc.cli.options import Cluster, Device, Overwrite
from mkdesc.cli.progress import console, progress_bar, resumable

__all__ = ["command"]


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="Patches: .npy or .npz (N, W, W), .zarr, .parquet (column 'patch'), a folder of "
            "Phototourism sheets (*.bmp), or an HPatches strip (.png).",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Where to write (N, D): .npy, .zarr or .parquet; addresses such as s3://... for "
            "the latter two.",
        ),
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
    cluster: Cluster = None,
    overwrite: Overwrite = False,
) -> None:
    """Describe patches: one unit vector of float32 per patch, in the order of the input.

    A second run goes on where the first one stopped.
    """
    where = None if device == "cpu" else device
    alone = checked_threads(threads) if where is None else 1
    with resumable(), workers_at(cluster, alone) as workers, progress_bar("patches") as tell:
        count, width = describe_file(
            source,
            output,
            model=model,
            raw=raw,
            resize=resize,
            device=where,
            workers=workers,
            progress=tell,
            overwrite=overwrite,
        )
    console.print(f"{output}: {count} descriptors of {width} numbers", soft_wrap=True)

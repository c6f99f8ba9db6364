"""``mkdesc describe``: patches on disk to an array of descriptors on disk."""

from __future__ import annotations

from typing import Annotated

import typer

from mkdesc._support.threads import checked_threads
from mkdesc.batches import describe_file
from mkdesc.cli.cluster import long_work
from mkdesc.cli.options import Cluster, Device, Dtype, Overwrite


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="Patches: .npy, .npz or .zarr (N, W, W), or (N, K, W, W) for a model of K "
            "squares; .parquet (column 'patch'), a folder of Phototourism sheets (*.bmp), or an "
            "HPatches strip (.png). Floats must be from 0 to 1.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Descriptors (N, D) to write: .npy, .zarr or .parquet; the last two "
            "also at addresses such as s3://...",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="Bundled model, model file, or FILE:SET:METHOD; default: extended."),
    ] = None,
    raw: Annotated[
        str | None,
        typer.Option(
            metavar="KERNELS",
            help="Use no model: the raw descriptor of these kernels, such as "
            "'polar+cartesian' or 'x(1,1)*theta(8,3)'.",
        ),
    ] = None,
    resize: Annotated[
        bool,
        typer.Option("--resize", help="Resample patches to the size that the model expects."),
    ] = False,
    dtype: Dtype = "float32",
    threads: Annotated[int | None, typer.Option(help="Threads; default: one per core.")] = None,
    device: Device = "cpu",
    cluster: Cluster = None,
    overwrite: Overwrite = False,
) -> None:
    """Describe patches: one unit vector (see --dtype) per patch, or stack of patches.

    Run it again to resume.
    """
    where = None if device == "cpu" else device
    alone = checked_threads(threads) if where is None else 1
    with long_work(cluster, "patches", alone=alone) as work:
        count, width = describe_file(
            source,
            output,
            model=model,
            raw=raw,
            resize=resize,
            device=where,
            overwrite=overwrite,
            dtype=dtype,
            **work,
        )
    print(f"{output}: {count} descriptors of {width} numbers")

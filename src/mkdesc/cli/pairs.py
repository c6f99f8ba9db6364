"""``mkdesc pairs``: which photographs to match with which, for COLMAP and hloc."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.check import check_choice, check_integer
from mkdesc._support.targets import is_inside, is_same
from mkdesc.cli.cluster import long_work
from mkdesc.cli.options import Cluster, Device, MaxPixels, Overwrite
from mkdesc.cli.progress import say_end
from mkdesc.images.reading import MAX_PIXELS

_HOW = ("exhaustive", "sequential", "retrieved")


def command(
    images: Annotated[Path, typer.Argument(help="Folder of photographs.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="PAIRS.txt", help="Text file with two names per line."
        ),
    ],
    how: Annotated[
        str,
        typer.Option(
            help="exhaustive (all), sequential (frames of a video) or retrieved (those that look "
            "alike)."
        ),
    ] = "retrieved",
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            metavar="N",
            help="For retrieved: how many others to pair each with, on average; default: a "
            "tenth, at least 10 and at most 50.",
        ),
    ] = None,
    overlap: Annotated[
        int,
        typer.Option(
            metavar="N", help="For sequential: how many following images to pair each with."
        ),
    ] = 10,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="INDEX",
            help="For retrieved: index of this folder, created or updated first; "
            "default: a temporary one.",
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="For retrieved: match the pairs and keep those that show the same scene.",
        ),
    ] = False,
    max_pixels: MaxPixels = MAX_PIXELS,
    device: Device = "cpu",
    cluster: Cluster = None,
    overwrite: Overwrite = False,
) -> None:
    """Choose the pairs of photographs that are worth matching.

    Exit code 1 if some photographs could not be read; pairs of the others are written.
    """
    import tempfile
    from collections.abc import Iterable

    from mkdesc.images.listing import find_images
    from mkdesc.retrieval.groups import verified_pairs
    from mkdesc.retrieval.index import Index
    from mkdesc.retrieval.manifest import INDEX, check_outside
    from mkdesc.retrieval.pairs import (
        NamePair,
        all_pairs,
        check_output,
        sequential_pairs,
        write_pairs,
    )
    from mkdesc.retrieval.similar import similar_pairs
    from mkdesc.retrieval.updating import build_index

    check_choice("--how", how, _HOW)
    if k is not None:
        check_integer("-k", k)
    if verify and how != "retrieved":
        raise ValueError(f"--verify: expected --how retrieved, got {how}")
    names = find_images([images])
    check_output(output, names, (images, index), overwrite)
    check_outside(output)
    if index is not None and (index / INDEX).exists():
        known = Index(index)
        makes = f"mkdesc index {images} -o {index} makes one of it, and forgets the others"
        others = [name for name in known.names if name not in names]
        if others:
            raise ValueError(
                f"--index: {index} has {len(others)} images that are not in {images}, for example "
                f"{others[0]}; expected an index of this folder ({makes})"
            )
        for source in known.sources:
            if source.exists() and not is_same(source, images) and not is_inside(source, images):
                raise ValueError(
                    f"--index: {index} is of {source}, expected an index of {images} ({makes})"
                )
    bad: dict[str, str] = {}
    found: Iterable[NamePair]
    if how == "exhaustive":
        found = all_pairs(names)
    elif how == "sequential":
        found = sequential_pairs(names, overlap)
    else:
        with long_work(cluster, "images") as work, tempfile.TemporaryDirectory() as folder:
            index_folder = Path(folder) / "index" if index is None else index
            where = None if device == "cpu" else device
            made = build_index(images, index_folder, max_pixels=max_pixels, device=where, **work)
            bad, opened, progress = made.bad, Index(index_folder), work["progress"]
            found = (
                verified_pairs(opened, k, progress, device=where)
                if verify
                else similar_pairs(opened.signatures, k, progress)
            )
    pairs = list(found)
    write_pairs(output, pairs, overwrite=overwrite)
    count = len(names) - len(bad)
    share = f"{len(pairs):,} of {count * (count - 1) // 2:,} pairs of {count} images"
    say_end(f"{output}: {share}", bad)

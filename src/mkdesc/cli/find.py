"""``mkdesc find``: the photographs of an index that show what another one shows."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.check import check_ending, check_integer
from mkdesc._support.files import atomic_path
from mkdesc._support.targets import check_target
from mkdesc.cli.options import MaxPixels, Overwrite, as_box
from mkdesc.cli.progress import say, say_what_changed
from mkdesc.images.reading import MAX_PIXELS


def command(
    query: Annotated[Path, typer.Argument(help="A photograph.")],
    index: Annotated[Path, typer.Argument(help="Index that `mkdesc index` wrote.")],
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many to find.")] = 10,
    verify: Annotated[
        bool,
        typer.Option(
            help="Match the most similar photographs and list those whose matches agree, or only "
            "list the most similar."
        ),
    ] = True,
    candidates: Annotated[
        int, typer.Option(metavar="N", help="How many results to verify; at least -k.")
    ] = 50,
    box: Annotated[
        str | None,
        typer.Option(metavar="X0,Y0,X1,Y1", help="Search for this part of the query only."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="SHEET.jpg",
            help="Contact sheet to write, with the matches drawn.",
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(help="Where the indexed photographs are now, if they have moved."),
    ] = None,
    max_pixels: MaxPixels = MAX_PIXELS,
    overwrite: Overwrite = False,
) -> None:
    """Find photographs of the same scene, those with the most matches first.

    Counts are for ranking: mkdesc match, which looks closer, may verify twice as many. Exit code
    1: none shows the same scene. Exit code 3: some are ambiguous (repeated
    structure, or two things of one make).
    """
    from mkdesc.images.writing import OWN_PICTURE, PICTURES, encode_picture
    from mkdesc.matching.judging import AMBIGUOUS
    from mkdesc.retrieval.index import Index
    from mkdesc.retrieval.manifest import check_outside
    from mkdesc.retrieval.sheet import contact_sheet

    if output is not None:
        check_ending("--output", output, PICTURES)
    check_integer("--candidates", candidates)
    part = None if box is None else as_box(box)
    opened = Index(index)
    if output is not None:
        folders = (query, index, images, *opened.sources)
        check_target(output, chain(folders, opened.files(images)), OWN_PICTURE, overwrite)
        check_outside(output)
    count = max(k, candidates) if verify else 0
    found = opened.find(query, k, count, part, max_pixels)
    ambiguous = {
        one.name
        for one in found
        if one.agreement is not None and one.agreement.verdict.name == AMBIGUOUS
    }
    if verify:
        found = [one for one in found if one.inliers or one.name in ambiguous]
    width = max((len(one.name) for one in found), default=0)
    for rank, one in enumerate(found, 1):
        seen = f"{one.inliers:>5} matches agree" if verify else f"similarity {one.similarity:.3f}"
        if one.name in ambiguous:
            seen = "ambiguous"
        print(f"{rank:>3}  {one.name:<{width}}  {seen}")
    say_what_changed(opened, [one.name for one in found], images)
    if not found:
        tried = min(count, len(opened))
        say(f"none of the {tried} most similar photographs shows what {query} shows")
        raise typer.Exit(1)
    if output is not None:
        files = {one.name: opened.image_path(one.name, images) for one in found}
        sheet = contact_sheet(
            query, found, files, part, max_pixels, as_stored=opened.settings.as_stored
        )
        with atomic_path(output) as partial:
            partial.write_bytes(encode_picture(output.suffix.lower(), sheet))
        print(f"written: {output}")
    if len(ambiguous) == len(found):
        raise typer.Exit(3)

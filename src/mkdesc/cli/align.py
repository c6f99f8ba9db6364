"""``mkdesc align``: the second photograph as the first one sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc.cli.options import Detector, Keypoints, MaxPixels, Model, Overwrite
from mkdesc.cli.progress import console
from mkdesc.images.detectors.registry import DEFAULT_DETECTOR
from mkdesc.images.reading import MAX_PIXELS
from mkdesc.models import DEFAULT_MODEL


def command(
    a: Annotated[Path, typer.Argument(metavar="A", help="A photograph.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="A second photograph of the same scene.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="B as A sees it: .png, transparent where B shows nothing of A, with 16 bits if B "
            "has them; or .jpg, white there.",
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            metavar="auto|homography|flow",
            help="homography: a flat scene, or a camera that only turned. flow: a field that "
            "follows depth and what bends or moves; it has holes. auto: a homography if it "
            "explains the matches nearly everywhere.",
        ),
    ] = "auto",
    blink: Annotated[
        Path | None,
        typer.Option(metavar="FILE.gif", help="A and the aligned B in turns."),
    ] = None,
    difference: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="What differs: black where A and the aligned B look the same.",
        ),
    ] = None,
    grid: Annotated[
        int, typer.Option(metavar="PIXELS", help="Match every place of a grid on A, if possible.")
    ] = 8,
    wide: Annotated[
        bool,
        typer.Option("--wide", help="For very different viewpoints; see mkdesc match."),
    ] = False,
    limit: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Time limit of --wide."),
    ] = 30.0,
    keypoints: Keypoints = 2000,
    detector: Detector = DEFAULT_DETECTOR,
    model: Model = DEFAULT_MODEL,
    max_pixels: MaxPixels = MAX_PIXELS,
    overwrite: Overwrite = False,
) -> None:
    """Lay the photograph B over A: write B as A sees it.

    Photographs are rotated as their EXIF data say. Exit code 1: no evidence that both show the
    same scene. Exit code 3: they are ambiguous, which is repeated structure or two things of one
    make. In both cases nothing is written.
    """
    from mkdesc.features.alignment import align, check_outputs
    from mkdesc.features.features import Features
    from mkdesc.features.image_pair import check_files
    from mkdesc.matching.judging import AMBIGUOUS
    from mkdesc.models import model_file

    if output is None and blink is None and difference is None:
        raise ValueError("nothing to write: expected --output, --blink or --difference")
    check_outputs(output, blink, difference, (a, b, model_file(model)), overwrite)
    check_files(a, b)
    features = Features(detector, keypoints, model)
    with console.status("loading compiled code") as status:
        found = align(
            a,
            b,
            features,
            by=by,
            grid=grid,
            wide=wide,
            limit=limit,
            max_pixels=max_pixels,
            progress=lambda what, done, total: status.update(
                f"{what}: {done} of {total}" if total else what
            ),
        )
    print(found.summary())
    if found.by is None:
        raise typer.Exit(3 if found.matches.verdict == AMBIGUOUS else 1)
    for path, save in (
        (output, found.save),
        (blink, found.save_blink),
        (difference, found.save_difference),
    ):
        if path is not None:
            save(path, overwrite=overwrite)
            print(f"written: {path}")
    if output is not None and output.suffix.lower() != ".png" and not found.seen.all():
        print(f"{output}: JPEG has no transparency; what B does not show is white")

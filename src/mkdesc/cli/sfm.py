"""``mkdesc sfm``: a folder of photographs to cameras and points."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc.cli.cluster import long_work
from mkdesc.cli.options import (
    Cluster,
    Detector,
    Device,
    Keypoints,
    MaxPixels,
    Model,
    Side,
    Upright,
)
from mkdesc.cli.progress import say_end
from mkdesc.images.detectors.registry import DEFAULT_DETECTOR
from mkdesc.images.reading import MAX_PIXELS
from mkdesc.models import DEFAULT_MODEL


def command(
    images: Annotated[Path, typer.Argument(help="Folder of photographs.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="Folder to write.")
    ],
    pairs: Annotated[
        str,
        typer.Option(
            metavar="HOW|FILE",
            help="Which images to match: exhaustive (all pairs), retrieved (those that "
            "look alike), sequential (video), auto (exhaustive up to 50 images, "
            "else retrieved), or a text file with two names per line.",
        ),
    ] = "auto",
    keypoints: Keypoints = 4096,
    detector: Detector = DEFAULT_DETECTOR,
    model: Model = DEFAULT_MODEL,
    side: Side = None,
    upright: Upright = False,
    cameras: Annotated[
        str, typer.Option(help="Which images share a camera: auto, single, per-image, per-folder.")
    ] = "auto",
    camera_model: Annotated[
        str, typer.Option(help="Camera model, as COLMAP names it.")
    ] = "SIMPLE_RADIAL",
    no_refine_centres: Annotated[
        bool,
        typer.Option(
            "--no-refine-centres", help="Leave principal points in the middle of the images."
        ),
    ] = False,
    belief: Annotated[
        str,
        typer.Option(
            metavar="strict|mapping|off",
            help="Which pairs to use: mapping (all but those whose matches are or may be wrong), "
            "strict (those that two photographs alone would be believed), off (all).",
        ),
    ] = "mapping",
    refine: Annotated[
        str,
        typer.Option(
            metavar="none|tracks",
            help="tracks: move keypoints to where the gray values of all photographs agree.",
        ),
    ] = "tracks",
    seed: Annotated[
        int | None,
        typer.Option(
            help="Make the model reproducible; mapping then uses one thread. Default: no seed."
        ),
    ] = None,
    stop_after: Annotated[
        str | None,
        typer.Option(
            metavar="matches", help="Stop after matching: write the database but no model."
        ),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option(help="Start from this COLMAP database of matches: only map it."),
    ] = None,
    max_pixels: MaxPixels = MAX_PIXELS,
    device: Device = "cpu",
    cluster: Cluster = None,
) -> None:
    """Reconstruct a scene with COLMAP; run it again to resume.

    Photographs are read as stored, without EXIF rotation, as COLMAP does. Exit code 1 if some
    photographs could not be read (the others are reconstructed), or if less than half of all
    could be placed.
    """
    from mkdesc.features.settings import Settings
    from mkdesc.sfm.options import SfmOptions
    from mkdesc.sfm.pipeline import map_database, match_images, reconstruct

    if stop_after not in (None, "matches"):
        raise ValueError(f"--stop-after: expected matches, got {stop_after!r}")
    if stop_after is not None and database is not None:
        raise ValueError("--stop-after: cannot be combined with --database")

    settings = Settings(detector, keypoints, model, side, upright, sensitive=True)
    options = SfmOptions(
        settings,
        belief=belief,
        refine=refine,
        cameras=cameras,
        camera_model=camera_model,
        refine_centres=not no_refine_centres,
        seed=seed,
        device=None if device == "cpu" else device,
    )
    with long_work(cluster, "items", keep=True) as work:
        given = {"options": options, "pairs": pairs, "max_pixels": max_pixels, **work}
        if stop_after is not None:
            matched = match_images(images, output, **given)
        elif database is not None:
            report = map_database(database, images, output, options, work["progress"])
        else:
            report = reconstruct(images, output, **given)
    if stop_after is not None:
        say_end(f"written: {matched.database}", matched.bad)
        return
    for line in report.lines():
        print(line)
    if report.seconds:
        print(f"time: {report.times()}")
    print(f"written: {output}")
    if report.bad or report.most_are_lost:
        raise typer.Exit(1)

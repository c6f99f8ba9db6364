"""``mkdesc features``: keypoints and descriptors of many photographs, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc.cli.cluster import workers_at
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
from mkdesc.cli.progress import console, progress_bar, resumable
from mkdesc.features.features import DEFAULT_MODEL
from mkdesc.images.detectors.registry import DEFAULT_DETECTOR
from mkdesc.images.reading import MAX_PIXELS


def command(
    images: Annotated[list[Path], typer.Argument(help="Photographs, or folders of them.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Folder (npz), .h5 file (hloc) or .db (colmap)."
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="npz (a folder with a file per image), hloc (HDF5) or colmap (a "
            "database); default: set by the name of OUT.",
        ),
    ] = None,
    keypoints: Keypoints = 4096,
    detector: Detector = DEFAULT_DETECTOR,
    model: Model = DEFAULT_MODEL,
    side: Side = None,
    upright: Upright = False,
    dtype: Annotated[
        str, typer.Option(help="Type of the descriptors: float32, int8 or uint8.")
    ] = "float32",
    max_pixels: MaxPixels = MAX_PIXELS,
    device: Device = "cpu",
    cluster: Cluster = None,
) -> None:
    """Detect and describe keypoints; run it again to resume.

    Photographs are rotated as their EXIF data say, as cv2.imread does, and keypoints refer to
    the rotated image; for hloc and COLMAP they refer to the file as stored, which is what both
    read. Exit code 1 if some photographs could not be read; the others are done.
    """
    from mkdesc.features.extraction import extract_to
    from mkdesc.features.folder import Settings

    settings = Settings(detector, keypoints, model, side, upright, dtype)
    with resumable(), workers_at(cluster) as workers, progress_bar("images") as tell:
        found = extract_to(
            images,
            output,
            settings=settings,
            format=kind,
            progress=tell,
            max_pixels=max_pixels,
            workers=workers,
            device=None if device == "cpu" else device,
        )
    for reason in found.bad.values():
        console.print(f"left out: {reason}", soft_wrap=True)
    good = len(found.done) + len(found.kept)
    console.print(f"{output}: {good} of {good + len(found.bad)} images", soft_wrap=True)
    if found.bad:
        raise typer.Exit(1)

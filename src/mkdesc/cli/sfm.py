"""``mkdesc sfm``: a folder of photographs to cameras and points."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc.cli.options import Detector, Keypoints, MaxPixels, Model, Ratio, Side, Upright
from mkdesc.cli.progress import console, resumable, told
from mkdesc.features.features import DEFAULT_MODEL
from mkdesc.images.reading import MAX_PIXELS

__all__ = ["command"]


def command(
    images: Annotated[Path, typer.Argument(help="Folder of photographs.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="Folder to write.")
    ],
    pairs: Annotated[
        Path | None,
        typer.Option(help="Text file, two names a line; default: every image with every other."),
    ] = None,
    keypoints: Keypoints = 8192,
    detector: Detector = "sift",
    model: Model = DEFAULT_MODEL,
    side: Side = None,
    upright: Upright = False,
    ratio: Ratio = 0.95,
    cameras: Annotated[
        str, typer.Option(help="Which images share a camera: auto, single, per-image, per-folder.")
    ] = "auto",
    camera_model: Annotated[str, typer.Option(help="COLMAP's camera model.")] = "SIMPLE_RADIAL",
    refine_centres: Annotated[
        bool, typer.Option(help="Move principal points as far as the views determine them.")
    ] = True,
    guided: Annotated[
        bool, typer.Option("--guided", help="Match verified pairs once more, by their geometry.")
    ] = False,
    max_pixels: MaxPixels = MAX_PIXELS,
) -> None:
    """Reconstruct a scene with COLMAP; a second run goes on where the first one stopped.

    Photographs are read as their files store them, not turned by EXIF data: as COLMAP does.
    """
    from mkdesc.features.folder import Settings
    from mkdesc.sfm.pipeline import Mapping, reconstruct

    settings = Settings(detector, keypoints, model, side, upright, sensitive=True)
    how = Mapping(
        settings,
        ratio,
        cameras=cameras,
        camera_model=camera_model,
        refine_centres=refine_centres,
        guided=guided,
    )
    with resumable(), told("items", keep=True) as tell:
        report = reconstruct(images, output, how, pairs, tell, max_pixels)
    for line in report.lines():
        console.print(line, soft_wrap=True)
    console.print(f"written: {output}", soft_wrap=True)

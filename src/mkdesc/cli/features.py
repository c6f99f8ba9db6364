"""``mkdesc features``: keypoints and descriptors of many photographs, or a picture of one's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from mkdesc.cli.cluster import long_work
from mkdesc.cli.options import (
    Cluster,
    Detector,
    Device,
    Dtype,
    Keypoints,
    MaxPixels,
    Model,
    Side,
    Upright,
)
from mkdesc.cli.progress import pace, say_end
from mkdesc.images.detectors.registry import DEFAULT_DETECTOR
from mkdesc.images.reading import MAX_PIXELS
from mkdesc.models import DEFAULT_MODEL


def command(
    images: Annotated[list[Path], typer.Argument(help="Photographs, or folders of them.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Folder (npz), .h5 file (hloc) or .db (colmap); or .jpg or .png: a picture of "
            "the keypoints of one photograph.",
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
    dtype: Dtype = "float32",
    max_pixels: MaxPixels = MAX_PIXELS,
    device: Device = "cpu",
    cluster: Cluster = None,
) -> None:
    """Detect and describe keypoints, or draw them; run it again to resume.

    Photographs are rotated as their EXIF data say, as cv2.imread does, and keypoints refer to
    the rotated image; for hloc and COLMAP they refer to the file as stored, which is what both
    read. Exit code 1 if some photographs could not be read; the others are done.
    """
    from mkdesc.features.extraction import extract_to
    from mkdesc.features.picture import save_keypoints
    from mkdesc.features.settings import Settings
    from mkdesc.images.writing import PICTURES
    from mkdesc.retrieval.manifest import check_outside

    check_outside(output)
    settings = Settings(detector, keypoints, model, side, upright, dtype)
    where = None if device == "cpu" else device
    if kind is None and output.suffix.lower() in PICTURES:
        drawn = save_keypoints(
            images, output, settings=settings, max_pixels=max_pixels, device=where
        )
        print(f"{len(drawn):,} keypoints\nwritten: {output}")
        return
    began = time.monotonic()
    with long_work(cluster, "images") as work:
        found = extract_to(
            images,
            output,
            settings=settings,
            format=kind,
            max_pixels=max_pixels,
            device=where,
            **work,
        )
    parts = {"new": found.done, "as before": found.kept}
    news = ", ".join(f"{len(names)} {what}" for what, names in parts.items() if names)
    took = pace(len(found.done), time.monotonic() - began)
    good = len(found.done) + len(found.kept)
    total = good + len(found.bad)
    say_end(f"{output}: {good} of {total} images ({news}){took}", found.bad)

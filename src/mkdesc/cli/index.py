"""``mkdesc index``: photographs to an index in which they can be looked up."""

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
    Keypoints,
    MaxPixels,
    Model,
    Side,
    Upright,
)
from mkdesc.cli.progress import pace, say_end
from mkdesc.features.image_pair import KEYPOINTS
from mkdesc.images.detectors.registry import DEFAULT_DETECTOR
from mkdesc.images.reading import MAX_PIXELS
from mkdesc.models import DEFAULT_MODEL


def command(
    images: Annotated[list[Path], typer.Argument(help="Photographs, or folders of them.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="INDEX", help="Folder to write or update.")
    ],
    keypoints: Keypoints = KEYPOINTS,
    detector: Detector = DEFAULT_DETECTOR,
    model: Model = DEFAULT_MODEL,
    side: Side = None,
    upright: Upright = False,
    max_pixels: MaxPixels = MAX_PIXELS,
    device: Device = "cpu",
    cluster: Cluster = None,
) -> None:
    """Index photographs, or update an index with what changed.

    The index ends up with exactly the photographs named here; others that it had are removed.
    Exit code 1 if some photographs could not be read; the others are indexed.
    """
    from mkdesc.features.settings import Settings
    from mkdesc.retrieval.updating import build_index

    settings = Settings(detector, keypoints, model, side, upright, output="uint8")
    began = time.monotonic()
    where = None if device == "cpu" else device
    with long_work(cluster, "images") as work:
        found = build_index(images, output, settings, max_pixels=max_pixels, device=where, **work)
    parts = {"new": found.added, "changed": found.changed, "gone": found.gone}
    news = ", ".join(f"{len(names)} {what}" for what, names in parts.items() if names)
    described = len(found.added) + len(found.changed)
    took = pace(described, time.monotonic() - began)
    count = described + len(found.kept)
    say_end(f"{output}: {count} images ({news or 'nothing new'}){took}", found.bad)

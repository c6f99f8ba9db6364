"""Options that several commands share: how photographs are described."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mkdesc.images.detectors.registry import DETECTORS
from mkdesc.images.reading import MAX_PIXELS

__all__ = [
    "Cluster",
    "Detector",
    "Device",
    "Keypoints",
    "MaxPixels",
    "Model",
    "Overwrite",
    "Ratio",
    "Side",
    "Upright",
    "on_device",
]

Device = Annotated[
    str, typer.Option(help="Where to compute: cpu, or with PyTorch cuda, cuda:1, mps, ...")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Have a Dask cluster do it: tcp://host:port of a scheduler, its scheduler file "
        "(.json), or local:N for N processes here. All must see the same files.",
    ),
]
Detector = Annotated[str, typer.Option(help=f"What finds keypoints: {', '.join(DETECTORS)}.")]
Keypoints = Annotated[
    int, typer.Option(metavar="N", help="Keypoints per image, at most: the strongest.")
]
Model = Annotated[str, typer.Option(help="Bundled model or model file.")]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace a file of another kind than is written; never one that is read.",
    ),
]
Side = Annotated[
    float | None,
    typer.Option(
        help="Side of a patch in sigmas; default: that of --model, or what suits --detector."
    ),
]
Upright = Annotated[bool, typer.Option("--upright", help="Ignore orientations: level cameras.")]
Ratio = Annotated[
    float, typer.Option(help="Ratio test on mutual nearest neighbours; 1: hardly any.")
]
MaxPixels = Annotated[
    int, typer.Option(help=f"Refuse larger images; default: {MAX_PIXELS:,}.", show_default=False)
]


def on_device(device: str) -> dict[str, Any]:
    """Parameters of :class:`mkdesc.MKD` that make it compute there.

    >>> on_device("cpu"), on_device("cuda")
    ({}, {'backend': 'torch', 'device': 'cuda'})
    """
    return {} if device == "cpu" else {"backend": "torch", "device": device}

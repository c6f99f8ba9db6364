"""Options that several commands share: how photographs are described."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mkdesc.images.detectors.registry import DETECTORS
from mkdesc.images.reading import MAX_PIXELS

Device = Annotated[str, typer.Option(help="Device: cpu, or, with PyTorch, cuda, cuda:1, mps, ...")]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on a Dask cluster: tcp://host:port of a scheduler, its scheduler "
        "file (.json), or local:N for N local processes. All workers must see "
        "the same files.",
    ),
]
Detector = Annotated[str, typer.Option(help=f"What finds keypoints: {', '.join(DETECTORS)}.")]
Keypoints = Annotated[
    int,
    typer.Option(metavar="N", help="Keep at most this many keypoints per image, the strongest."),
]
Model = Annotated[str, typer.Option(help="Bundled model or model file.")]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace an existing file that mkdesc did not write; never an input.",
    ),
]
Side = Annotated[
    float | None,
    typer.Option(
        help="Side of the patches, in sigmas of the keypoints; default: set by --model and "
        "--detector."
    ),
]
Upright = Annotated[
    bool, typer.Option("--upright", help="Ignore orientations; for level cameras.")
]
Ratio = Annotated[
    float, typer.Option(help="Ratio test on mutual nearest neighbours; 1 keeps nearly all.")
]
MaxPixels = Annotated[
    int,
    typer.Option(
        help=f"Refuse images with more pixels; default: {MAX_PIXELS:,}.", show_default=False
    ),
]


def on_device(device: str) -> dict[str, Any]:
    """Parameters of :class:`mkdesc.MKD` that make it compute there.

    >>> on_device("cpu"), on_device("cuda")
    ({}, {'backend': 'torch', 'device': 'cuda'})
    """
    return {} if device == "cpu" else {"backend": "torch", "device": device}

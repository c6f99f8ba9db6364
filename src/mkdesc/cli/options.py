"""Options that several commands share: how photographs are described."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mkdesc.images.detectors.registry import DETECTORS
from mkdesc.images.reading import MAX_PIXELS
from mkdesc.models import bundled_models

Device = Annotated[
    str,
    typer.Option(
        metavar="DEVICE", help="Where to compute: cpu or, with PyTorch, cuda, cuda:1, mps, ..."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on a Dask cluster: tcp://host:port of a scheduler, its scheduler "
        "file (.json), or local:N for N local processes. All workers must see "
        "the same files.",
    ),
]
Detector = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"What finds keypoints: {', '.join(DETECTORS)}.",
        autocompletion=lambda: list(DETECTORS),
    ),
]
Keypoints = Annotated[
    int,
    typer.Option(metavar="N", help="Keep at most this many keypoints per image, the strongest."),
]
Model = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        help="Bundled model (see `mkdesc models`) or model file.",
        autocompletion=bundled_models,
    ),
]
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
        metavar="SIGMAS",
        help="Side of the patches, in sigmas of the keypoints; default: set by --model and "
        "--detector.",
    ),
]
Upright = Annotated[
    bool, typer.Option("--upright", help="Ignore orientations; for level cameras.")
]
Ratio = Annotated[
    float,
    typer.Option(
        metavar="RATIO",
        help="Keep a match that is nearer than this share of the distance to the second "
        "nearest; 1 keeps nearly all.",
    ),
]
MaxPixels = Annotated[
    int,
    typer.Option(
        metavar="N",
        help=f"Refuse images with more pixels; default: {MAX_PIXELS:,}.",
        show_default=False,
    ),
]


def on_device(device: str) -> dict[str, Any]:
    """Parameters of :class:`mkdesc.MKD` that make it compute there.

    >>> on_device("cpu"), on_device("cuda")
    ({}, {'backend': 'torch', 'device': 'cuda'})
    """
    return {} if device == "cpu" else {"backend": "torch", "device": device}

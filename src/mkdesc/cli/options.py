"""Options that several commands share: how photographs are described."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from mkdesc.images.detectors.registry import DETECTORS
from mkdesc.images.reading import MAX_PIXELS
from mkdesc.models import bundled_models

Device = Annotated[
    str,
    typer.Option(
        "--device",  # (Typer 0.27 would call it --DEVICE)
        metavar="DEVICE",
        help="Where to compute: cpu or, with PyTorch, cuda, cuda:1, mps, ...",
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
Limit = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Seconds for reading, making views and learning, at most; comparing comes after.",
    ),
]
Dtype = Annotated[str, typer.Option(help="Type of the descriptors: float32, int8, uint8 or bits.")]


def _parse_sides(text: str) -> float | tuple[float, ...]:
    """One number, or several with commas between.

    >>> _parse_sides("20"), _parse_sides("14,40")
    (20.0, (14.0, 40.0))
    """
    one, *others = map(float, str(text).split(","))
    return (one, *others) if others else one


Side = Annotated[
    float | None,
    typer.Option(
        parser=_parse_sides,
        metavar="SIGMAS",
        help="Side of the patches in sigmas of the keypoints; for a model of several squares, "
        "as many numbers, separated by commas. Default: set by --model and --detector.",
    ),
]
Upright = Annotated[
    bool, typer.Option("--upright", help="Ignore orientations; for level cameras.")
]
Ratio = Annotated[
    str,
    typer.Option(
        metavar="RATIO|auto",
        help="Keep a match only if its distance is below this share of the distance to the "
        "second nearest; 1 keeps nearly all; auto: the ratio calibrated for --model.",
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


def number_or_auto(option: str, text: str) -> float | Literal["auto"]:
    """What an option that takes a number or ``auto`` was given.

    >>> number_or_auto("--ratio", "0.8"), number_or_auto("--ratio", "auto")
    (0.8, 'auto')
    """
    if text == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option}: expected a number or auto, got {text!r}") from None


def is_default(context: typer.Context, name: str) -> bool:
    """Whether an option was left at its default."""
    source = context.get_parameter_source(name)
    return source is None or source.name == "DEFAULT"


def as_box(text: str) -> tuple[float, float, float, float]:
    """The sides that ``--box`` stands for.

    >>> as_box("10,20,110,70")
    (10.0, 20.0, 110.0, 70.0)
    """
    try:
        left, top, right, bottom = (float(side) for side in text.split(","))
    except ValueError:
        raise ValueError(f"--box: expected four numbers X0,Y0,X1,Y1, got {text!r}") from None
    return left, top, right, bottom


def chosen_ratio(text: str, model: str) -> float:
    """The number that ``--ratio`` stands for, with this ``--model``.

    >>> chosen_ratio("0.8", "photo")
    0.8
    """
    from mkdesc.models import model_ratio

    number = number_or_auto("--ratio", text)
    return model_ratio(model) if number == "auto" else number


def on_device(device: str) -> dict[str, Any]:
    """Parameters of :class:`mkdesc.MKD` that make it compute there.

    >>> on_device("cpu"), on_device("cuda")
    ({}, {'backend': 'torch', 'device': 'cuda'})
    """
    return {} if device == "cpu" else {"backend": "torch", "device": device}

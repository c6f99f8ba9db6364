"""``mkdesc learn descriptor``: a model for the learned detector's keypoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.check import check_ending
from mkdesc._support.targets import check_target
from mkdesc.cli.options import Limit, Overwrite, is_default
from mkdesc.cli.teaching import (
    Photos,
    TrainingDevice,
    news,
    print_comparison,
    print_report,
)
from mkdesc.descriptor import MKD
from mkdesc.features import Features
from mkdesc.images import make_detector
from mkdesc.images.detectors.learned_weights import weights_file
from mkdesc.learn.descriptors import HeadPlan, learn_descriptor
from mkdesc.learn.ratio import KEYPOINTS
from mkdesc.models import DEFAULT_MODEL, model_file
from mkdesc.models.files import OWN_MODEL

#: Options that say what is learned from the beginning: a model that one begins with says it.
ANEW = ("parametrization", "patch_size", "sides", "head", "dims", "hidden", "rank")


def command(
    context: typer.Context,
    photos: Photos,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL.safetensors", help="Where to write.")
    ],
    parametrization: Annotated[str, typer.Option(help="Kernels, by name or as products.")] = (
        "extended-fine"
    ),
    patch_size: Annotated[int, typer.Option(help="Side of the patches in pixels.")] = 24,
    sides: Annotated[
        str,
        typer.Option(help="Sides of the squares in sigmas of a keypoint, separated by commas."),
    ] = "20,40",
    head: Annotated[
        str,
        typer.Option(
            metavar="mlp|linear|gda",
            help="mlp: a projection with a hidden layer beside it; linear: a projection; gda: a "
            "projection that is not trained further.",
        ),
    ] = "mlp",
    dims: Annotated[int, typer.Option(help="Numbers of a descriptor.")] = 128,
    bits: Annotated[
        bool, typer.Option("--bits", help="Learn descriptors of bits: the signs of the numbers.")
    ] = False,
    hidden: Annotated[int, typer.Option(help="Units of the hidden layer.")] = 896,
    rank: Annotated[int, typer.Option(help="How many dimensions the hidden layer sees.")] = 160,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Train this model further, a name or a file, such as photo: what suits few "
            "photographs. Default: learn a new one.",
        ),
    ] = None,
    detector: Annotated[
        str, typer.Option(metavar="WEIGHTS", help="Weights of the detector: a name or a file.")
    ] = "keypoints",
    steps: Annotated[
        int | None,
        typer.Option(help="Steps, at most; default: 8,000 on a GPU, 300 smaller ones on a CPU."),
    ] = None,
    limit: Limit = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    device: TrainingDevice = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Train a model further (--from photo), or anew; needs PyTorch."""
    check_ending("--output", output, [".safetensors"])
    reads = (photos, weights_file(detector), model_file(start))
    check_target(output, reads, OWN_MODEL, overwrite)
    given = [name for name in ANEW if not is_default(context, name)]
    if start is not None and given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"{names}: cannot be combined with --from, whose model says it")
    try:
        squares = tuple(float(side) for side in sides.split(","))
    except ValueError:
        raise ValueError(f"--sides: expected numbers with commas between, got {sides!r}") from None
    mkd = MKD(parametrization, patch_size, side=squares if len(squares) > 1 else squares[0])
    with news() as progress:
        learned = learn_descriptor(
            photos,
            mkd,
            HeadPlan(head, dims, hidden, rank, bits),
            detector=detector,
            steps=steps,
            seconds=limit,
            seed=seed,
            device=device,
            start=start,
            progress=progress,
        )
    learned.save(output, overwrite=overwrite)
    print_report(learned, output)
    other = start or ("photo-bits" if bits else DEFAULT_MODEL)
    mine = Features(
        make_detector("learned", weights=detector),
        KEYPOINTS,
        output,
        output="bits" if bits else None,
    )
    print_comparison(
        mine,
        mine.replace(model=other),
        other,
        learned.held_out,
        seed,
        "learn from more photographs, for longer (--limit)"
        + ("" if start else f", or --from {other}"),
    )

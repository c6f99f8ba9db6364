"""``mkdesc learn keypoints``: a detector from one's own photographs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.check import check_ending
from mkdesc._support.targets import check_target
from mkdesc.cli.options import Limit, Overwrite
from mkdesc.cli.teaching import (
    Photos,
    TrainingDevice,
    news,
    print_comparison,
    print_report,
)
from mkdesc.features import Features
from mkdesc.images import make_detector
from mkdesc.images.detectors.learned_weights import OWN_WEIGHTS, weights_file
from mkdesc.learn.keypoints import learn_keypoints
from mkdesc.learn.ratio import KEYPOINTS
from mkdesc.models import model_file


def command(
    photos: Photos,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MINE.safetensors", help="Where to write.")
    ],
    model: Annotated[
        str, typer.Option(help="The model that will describe the keypoints: a name or a file.")
    ] = "photo-net",
    upright: Annotated[
        bool, typer.Option("--upright", help="Find keypoints without angles; for level cameras.")
    ] = False,
    steps: Annotated[
        int | None,
        typer.Option(help="Steps, at most; default: 3,000 on a GPU, 300 smaller ones on a CPU."),
    ] = None,
    limit: Limit = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 0,
    device: TrainingDevice = "auto",
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="WEIGHTS",
            help="Start from these weights, a name or a file; default: random ones.",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Train the detector on your photographs; needs PyTorch."""
    check_ending("--output", output, [".safetensors"])
    reads = (photos, model_file(model), start and weights_file(start))
    check_target(output, reads, OWN_WEIGHTS, overwrite)
    with news() as progress:
        learned = learn_keypoints(
            photos,
            model=model,
            upright=upright,
            steps=steps,
            seconds=limit,
            seed=seed,
            device=device,
            start=start,
            progress=progress,
        )
    learned.save(output, overwrite=overwrite)
    print_report(learned, output)
    finds = make_detector("learned", weights=output)
    mine = Features(finds, KEYPOINTS, model, upright=upright)
    print_comparison(
        mine,
        mine.replace(detector="learned"),
        "the bundled detector",
        learned.held_out,
        seed,
        "learn from more photographs or for longer (--limit)"
        + (", or --from keypoints" if start is None else ""),
    )

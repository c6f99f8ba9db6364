"""``mkdesc learn keypoints``: a detector from one's own photographs."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.check import check_ending
from mkdesc._support.progress import Progress
from mkdesc._support.targets import check_target
from mkdesc.cli.options import Overwrite
from mkdesc.cli.progress import console, progress_bar
from mkdesc.images.detectors.learned_weights import OWN_WEIGHTS, weights_file
from mkdesc.learn.keypoints import learn_keypoints
from mkdesc.models import model_file

#: Where nobody watches a progress bar: seconds between lines, the first after fewer.
FIRST_NEWS, NEWS = 3.0, 15.0


def command(
    photos: Annotated[Path, typer.Argument(help="Folder of photographs.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MINE.safetensors", help="Where to write.")
    ],
    model: Annotated[
        str, typer.Option(help="The model that will describe the keypoints: a name or a file.")
    ] = "photo-net",
    upright: Annotated[
        bool, typer.Option("--upright", help="For level cameras: keypoints without angles.")
    ] = False,
    steps: Annotated[
        int | None,
        typer.Option(help="Steps, at most; default: 3,000 on a GPU, 300 smaller ones on a CPU."),
    ] = None,
    limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Seconds of teaching, at most.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 0,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:1, ...; auto: a GPU if there is one.")
    ] = "auto",
    start: Annotated[
        str | None,
        typer.Option(
            metavar="WEIGHTS",
            help="Go on from these weights, a name or a file; default: random ones.",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Teach the detector, on photographs, which points a model matches."""
    check_ending("--output", output, [".safetensors"])
    reads = (photos, model_file(model), start and weights_file(start))
    check_target(output, reads, OWN_WEIGHTS, overwrite)
    shown = (
        progress_bar("photos", "reading") if console.is_terminal else nullcontext(printed_lines())
    )
    with shown as progress:
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
    for line in learned.report.lines():
        console.print(line, soft_wrap=True)
    console.print(f"written: {output}", soft_wrap=True)


def printed_lines() -> Progress:
    """A callback that prints a line now and then."""
    began = time.monotonic()
    due = began + FIRST_NEWS

    def show(what: str, done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now < due and done < total:
            return
        due = now + NEWS
        console.print(f"{now - began:.0f} s: {what} ({done:,} of {total:,})", soft_wrap=True)

    return show

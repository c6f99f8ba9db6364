"""What ``mkdesc learn keypoints`` and ``mkdesc learn descriptor`` share: options, news, saving."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.progress import Progress
from mkdesc.cli.progress import console, progress_bar, say
from mkdesc.learn import LearnedDescriptor, LearnedKeypoints

Photos = Annotated[Path, typer.Argument(help="Folder of photographs.")]
Limit = Annotated[float | None, typer.Option(metavar="SECONDS", help="Seconds in all, at most.")]
TrainingDevice = Annotated[
    str, typer.Option(help="cpu, cuda, cuda:1, ...; auto: a GPU if there is one.")
]

#: Where nobody watches a progress bar: seconds between lines, the first after fewer.
FIRST_NEWS, NEWS = 3.0, 15.0


def news() -> AbstractContextManager[Progress]:
    """A callback that shows a progress bar, or prints a line now and then."""
    if console.is_terminal:
        return progress_bar("photos", "reading")
    began = time.monotonic()
    due = began + FIRST_NEWS

    def show(what: str, done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due or done >= total:
            due = now + NEWS
            say(f"{now - began:.0f} s: {what} ({done:,} of {total:,})")

    return nullcontext(show)


def save_learned(
    learned: LearnedDescriptor | LearnedKeypoints, output: Path, overwrite: bool
) -> None:
    """Write what was learned, and report on it."""
    learned.save(output, overwrite=overwrite)
    for line in learned.report.lines():
        say(line)
    say(f"written: {output}")

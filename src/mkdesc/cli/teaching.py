"""What commands of ``mkdesc learn`` share: options, news, saving, comparing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.progress import Progress
from mkdesc.cli.progress import console, progress_bar, say
from mkdesc.features import Features
from mkdesc.learn import Learned, LearnedDescriptor, LearnedKeypoints, compare_features

Photos = Annotated[Path, typer.Argument(help="Folder of photographs.")]
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


def print_report(learned: Learned | LearnedDescriptor | LearnedKeypoints, output: Path) -> None:
    """Report on what was learned and is written."""
    for line in learned.report.lines():
        print(line)
    print(f"written: {output}")
    if not isinstance(learned, LearnedKeypoints) and learned.mkd.ratio is None:
        print(f"to find the ratio of Lowe's test for it: mkdesc learn ratio {output} PHOTOS")


def print_comparison(
    mine: Features, others: Features, name: str, held_out: Sequence[str], seed: int, advice: str
) -> None:
    """Compare what was learned with what there was, and say which is better.

    Parameters
    ----------
    mine, others
        Features with either.
    name
        Of the others.
    held_out
        Photographs to compare them on.
    seed
        Of the views.
    advice
        What to do, besides keeping the others, if one's own are not better.
    """
    if not held_out:
        print(f"not compared with {name}: expected at least 4 photographs, to hold one out")
        return
    try:
        with progress_bar("views", "comparing") as progress:
            found = compare_features(mine, others, held_out, seed=seed, progress=progress)
    except (ImportError, ValueError) as error:  # OpenCV is not there, or the files are broken
        print(f"not compared with {name}: {error}")
        return
    for line in found.lines(name, f"keep {name}, or {advice}"):
        print(line)

"""What long work looks like on the terminal: news on stderr, results on stdout."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from mkdesc._support.progress import Progress as Callback

if TYPE_CHECKING:
    from mkdesc.descriptor import MKD
    from mkdesc.retrieval.index import Index


#: What is printed often has names of files in it: no part of them is markup, or a number.
console = Console(stderr=True, markup=False, emoji=False, highlight=False)


def say(text: str) -> None:
    """Print a line on stderr; a long one is not cut into several."""
    console.print(text, soft_wrap=True)


def say_end(line: str, bad: Mapping[str, str]) -> None:
    """Say why some photographs were left out, and print how it ended; exit code 1 if some were."""
    for reason in bad.values():
        say(f"left out: {reason}")
    print(line)
    if bad:
        raise typer.Exit(1)


#: What is counted in work that has a unit of its own.
UNITS = {"training": "steps", "views": "pairs"}

#: Seconds of work before which a speed says nothing: files that are skipped take no time.
MEASURABLE = 1.0


class _Count(ProgressColumn):
    def render(self, task: Task) -> Text:
        total = "" if task.total is None else f" of {task.total:,.0f}"
        return Text(f"{task.completed:,.0f}{total}")


class _Speed(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        taken = task.finished_time or task.elapsed or 0.0
        said = task.description.endswith("/s")  # by the work itself
        if said or speed is None or taken < MEASURABLE:
            return Text()
        unit = task.fields.get("unit", self._unit)
        return Text(f"{speed:,.{1 if speed < 9.5 else 0}f} {unit}/s")


def progress(unit: str) -> Progress:
    """A progress bar that counts ``unit``s and shows how many there are per second."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        _Count(),
        _Speed(unit),
        TimeRemainingColumn(),
        console=console,
    )


@contextmanager
def progress_bar(unit: str, first: str | None = None, keep: bool = False) -> Iterator[Callback]:
    """A progress bar, as the callback that long work reports to.

    Parameters
    ----------
    unit
        What is counted.
    first
        What is being done before any news; None: nothing to be shown.
    keep
        Whether what is done stays on the screen; otherwise there is one line at a time.
    """
    bar = progress(unit)
    lines: dict[str, TaskID] = {}

    def show(what: str, done: int, total: int) -> None:
        name, _, _ = what.partition(":")  # what follows may change on the way
        if name not in lines:
            while lines and not keep:
                bar.remove_task(lines.popitem()[1])
            lines[name] = bar.add_task(what, total=None, unit=UNITS.get(name, unit))
        bar.update(lines[name], description=what, completed=done, total=total or None)
        bar.start()  # not before: a bar without tasks would leave an empty line

    try:
        if first is not None:
            show(first, 0, 0)
        yield show
    finally:
        if lines:
            bar.stop()


def pace(count: int, seconds: float) -> str:
    """How long it took to describe so many images, for the end of a line; nothing for none.

    >>> pace(4, 10.0)
    ' in 10.0 s, 2.50 s each'
    """
    return f" in {seconds:.1f} s, {seconds / count:.2f} s each" if count else ""


def say_what_changed(
    index: Index, read: Collection[str] | None = None, folder: Path | None = None
) -> None:
    """Warn of images of an index that are others by now (:meth:`mkdesc.Index.changed`)."""
    changed = index.changed(read, folder)
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        some = ", ".join(changed[:3])
        lost = [str(place) for place in (index.sources if folder is None else [folder])]
        lost = [place for place in lost if not Path(place).exists()]
        where = f" ({', '.join(lost)} is not there)" if lost else ""
        say(
            f"warning: gone or changed since {index.path} was made: {some}{more}{where}; "
            "to update it, run mkdesc index again"
        )


def warm_up(mkd: MKD, dtype: str = "uint8") -> None:
    """Load the compiled loops; says so, because what must be compiled takes seconds."""
    with console.status("loading compiled code"):
        mkd.transform(np.zeros((1, mkd.squares, mkd.patch_size, mkd.patch_size), dtype))


@contextmanager
def resumable() -> Iterator[None]:
    """Work that goes on where it was interrupted; says so if it is."""
    try:
        yield
    except KeyboardInterrupt:
        console.print("interrupted; run the same command again to resume")
        sys.exit(130)  # not typer's Exit, which reads as work that left nothing behind

"""What long work looks like on the terminal; all of it on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
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

from mkdesc._support.progress import Progress as Tell

if TYPE_CHECKING:
    from mkdesc.descriptor import MKD


#: What is printed often has names of files in it: no part of them is markup, or a number.
console = Console(stderr=True, markup=False, emoji=False, highlight=False)


#: What is counted in work that has a unit of its own.
UNITS = {"training": "steps"}

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
        if speed is None or taken < MEASURABLE:
            return Text()
        return Text(f"{speed:,.0f} {task.fields.get('unit', self._unit)}/s")


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
def progress_bar(unit: str, first: str | None = None, keep: bool = False) -> Iterator[Tell]:
    """A callback that long work tells how far it is, shown as a progress bar.

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

    def tell(what: str, done: int, total: int) -> None:
        name, _, _ = what.partition(":")  # what follows may change on the way
        if name not in lines:
            while lines and not keep:
                bar.remove_task(lines.popitem()[1])
            lines[name] = bar.add_task(what, total=None, unit=UNITS.get(name, unit))
        bar.update(lines[name], description=what, completed=done, total=total or None)
        bar.start()  # not before: a bar without tasks would leave an empty line

    try:
        if first is not None:
            tell(first, 0, 0)
        yield tell
    finally:
        if lines:
            bar.stop()


def warm_up(mkd: MKD, dtype: str = "uint8") -> None:
    """Load the compiled loops; says so, because the first time on a machine takes seconds."""
    with console.status("loading compiled code (the first run compiles it, about 5 s)"):
        mkd.transform(np.zeros((1, mkd.squares, mkd.patch_size, mkd.patch_size), dtype))


@contextmanager
def resumable() -> Iterator[None]:
    """Work that goes on where it was interrupted; says so if it is."""
    try:
        yield
    except KeyboardInterrupt:
        console.print("interrupted; run the same command again to resume")
        sys.exit(130)  # not typer's Exit, which reads as work that left nothing behind

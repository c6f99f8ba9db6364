"""How long work says how far it is: one shape of callbacks for the whole package."""

from __future__ import annotations

from collections.abc import Callable

#: Called with what is being done, how much of it is done, and how much there is (0: unknown).
Progress = Callable[[str, int, int], object]


def no_progress(what: str, done: int, total: int) -> None:
    """The callback where none was given: it does nothing."""

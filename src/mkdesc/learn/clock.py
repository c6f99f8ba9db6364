"""How far a training is, and how large its steps are: warm-up, then a cosine."""

from __future__ import annotations

import math
import time

#: Steps over which the rate rises to its full size, at most a tenth of all.
WARM_UP = 200

#: Seconds of training that there are at least, however long it took to begin.
LEAST = 1.0


def remaining(seconds: float | None, began: float) -> float | None:
    """How many seconds are left of a limit on all that began at a time of ``perf_counter``.

    >>> remaining(None, 0.0)
    >>> round(remaining(60.0, time.perf_counter() - 20.0))
    40
    """
    return None if seconds is None else max(LEAST, seconds - (time.perf_counter() - began))


def check_time_left(seconds: float | None, began: float, done: str) -> None:
    """ValueError if nothing is left of the limit on all that began at a time of ``perf_counter``.

    >>> check_time_left(60.0, time.perf_counter(), "making views")
    """
    if seconds is not None and time.perf_counter() - began > seconds:
        raise ValueError(
            f"seconds: {done} took all of the {seconds:g} s, and nothing was learned: allow more"
        )


class Clock:
    """How much of a training is over, by steps or by time, whichever ends first.

    Parameters
    ----------
    steps, seconds
        How many there may be; None: any number.

    Examples
    --------
    >>> clock = Clock(steps=4, seconds=None)
    >>> clock.step()
    >>> clock.share, clock.expected()
    (0.25, 4)
    """

    def __init__(self, steps: int | None, seconds: float | None) -> None:
        self._most = math.inf if steps is None else steps
        self._limit = math.inf if seconds is None else seconds
        self._start = time.perf_counter()
        self.steps = 0
        self.share = 0.0

    @property
    def seconds(self) -> float:
        """Since the training began."""
        return time.perf_counter() - self._start

    @property
    def pace(self) -> str:
        """Steps per second until now, in words."""
        return f"{self.steps / self.seconds:.1f} steps/s"

    def step(self) -> None:
        """One more is done."""
        self.steps += 1
        by_steps = self.steps / self._most
        # Time is not asked for where it does not count: the same steps every time.
        by_time = self.seconds / self._limit if self._limit < math.inf else 0.0
        self.share = max(by_steps, by_time)

    def expected(self) -> int:
        """How many steps there will be."""
        return max(self.steps, round(self.steps / min(self.share, 1.0)))

    def factor(self) -> float:
        """What the rate is multiplied by."""
        warm = min(1.0, (self.steps + 1) / min(WARM_UP, max(1.0, self._most / 10)))
        return warm * (1 + math.cos(math.pi * self.share)) / 2

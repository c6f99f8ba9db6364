"""The loop that trains: AdamW, warm-up and cosine, the best so far, Ctrl-C."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from mkdesc._support.progress import Progress
from mkdesc.learn.clock import Clock

T = TypeVar("T")

#: Steps between news.
NEWS = 10


@dataclass(frozen=True, eq=False)
class Training(Generic[T]):
    """What is trained, and how.

    Attributes
    ----------
    parameters
        Changed by the steps.
    loss
        The loss of the next batch, given which share of the training is over.
    result
        What has been learned by now.
    news
        How it goes, in words.
    rate, decay
        Learning rate, at its largest, and weight decay.
    check
        How bad it is now, on what is not trained on: where this is least, ``result`` is kept.
        None: the last result is.
    checks
        How often, in all.
    stepped
        Called after each step with the number of steps.
    within
        Where losses and gradients are computed.
    """

    parameters: list[Any]
    loss: Callable[[float], Tensor]
    result: Callable[[], T]
    news: Callable[[], str]
    rate: float
    decay: float = 1e-4
    check: Callable[[], float] | None = None
    checks: int = 20
    stepped: Callable[[int], object] = lambda steps: None
    within: Callable[[], AbstractContextManager[object]] = nullcontext


@dataclass(frozen=True, eq=False)
class Trained(Generic[T]):
    """What came of it.

    Attributes
    ----------
    best
        What was learned.
    steps, seconds
        How long that took.
    loss, first_loss
        What the check said of the best, and in the beginning.
    interrupted
        Whether Ctrl-C ended it.
    """

    best: T
    steps: int
    seconds: float
    loss: float
    first_loss: float
    interrupted: bool


def train(
    what: Training[T], *, steps: int | None, seconds: float | None, progress: Progress
) -> Trained[T]:
    """Train until steps or seconds are over; one of them may be None.

    A KeyboardInterrupt, from anywhere, ends it: the best so far is returned.
    """
    clock, best = Clock(steps, seconds), _Best(what)
    optimizer = torch.optim.AdamW(what.parameters, lr=what.rate, weight_decay=what.decay)
    checks, interrupted = 0, False
    try:
        best.look()
        while clock.share < 1:
            for group in optimizer.param_groups:
                group["lr"] = what.rate * clock.factor()
            with what.within():
                loss = what.loss(clock.share)
                optimizer.zero_grad()
                loss.backward()
            optimizer.step()
            clock.step()
            what.stepped(clock.steps)
            if clock.steps % NEWS == 0 or clock.share >= 1:
                said = f"training: {what.news()}, {clock.pace}"
                progress(said, clock.steps, clock.expected())
            if clock.share * what.checks >= checks + 1:
                checks = int(clock.share * what.checks)
                best.look()
    except KeyboardInterrupt:
        interrupted = True
        best.look()
    result = best.result if what.check else what.result()
    return Trained(result, clock.steps, clock.seconds, best.loss, best.first_loss, interrupted)


class _Best(Generic[T]):
    """What did best so far."""

    def __init__(self, what: Training[T]) -> None:
        self._what, self.result = what, what.result()
        self.loss, self.first_loss = math.inf, math.nan

    def look(self) -> None:
        """Keep what there is now if it is better than what is kept."""
        if self._what.check is None:
            return
        loss = self._what.check()
        if math.isnan(self.first_loss):
            self.first_loss = loss
        if loss < self.loss:
            self.loss, self.result = loss, self._what.result()


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """Keep PyTorch to so many threads for a while; None: as many as it has."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)

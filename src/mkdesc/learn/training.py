"""Training the layers of a head with PyTorch: AdamW, warm-up, cosine, averages of the weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mkdesc._support.progress import Progress
from mkdesc.heads.layers import Layers
from mkdesc.learn.clock import Clock
from mkdesc.learn.network import LOSSES, Network
from mkdesc.learn.views import Views

DECAY = 1e-4
#: How often, in all, it is checked whether the layers are the best so far.
CHECKS = 20
#: Steps between news.
NEWS = 10


@dataclass(frozen=True)
class Schedule:
    """How to train.

    Attributes
    ----------
    steps, seconds
        How long, at most; one of them may be None.
    batch
        Pairs per step, at most.
    rate
        Size of steps, at its largest.
    loss
        One of :data:`~mkdesc.learn.network.LOSSES`.
    device
        Of PyTorch.
    seed
        Of what is drawn.
    threads
        How many PyTorch may use on a CPU; None: as many as it likes.
    """

    steps: int | None
    seconds: float | None
    batch: int
    rate: float
    loss: str
    device: str
    seed: int
    threads: int | None = None


@dataclass(frozen=True, eq=False)
class Trained:
    """What came of it.

    Attributes
    ----------
    layers
        The best.
    steps
        How many there were.
    loss, first_loss
        Of the best on the pairs that checked it, and of what training began with.
    seconds
        How long that took.
    interrupted
        Whether Ctrl-C ended it.
    """

    layers: Layers
    steps: int
    loss: float
    first_loss: float
    seconds: float
    interrupted: bool


def train(
    layers: Layers, views: Views, check: tuple[Any, Any], how: Schedule, progress: Progress
) -> Trained:
    """Train layers on pairs of views.

    Parameters
    ----------
    layers
        What to begin with.
    views
        Where pairs come from.
    check
        Raw descriptors (n, D) and (n, D) of matching pairs that are not trained on: the layers
        with the least loss on them are kept.
    how
        For how long, and so on.
    progress
        Told of steps, and the loss. A KeyboardInterrupt, from it or from anywhere, ends the
        training: the best so far is what has been learned.
    """
    with torch_threads(how.threads):
        return _train(layers, views, check, how, progress)


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """Keep PyTorch to so many threads for a while; None: as many as it has."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _train(
    layers: Layers, views: Views, check: tuple[Any, Any], how: Schedule, progress: Progress
) -> Trained:
    network = Network(layers, how.device)
    compute = LOSSES[how.loss]
    rng = np.random.default_rng([how.seed, 1])
    size = min(how.batch, views.points)
    clock = Clock(how.steps, how.seconds)
    average = Average(network)
    best = _Best(average, compute, check, how.device)
    first_loss, interrupted = best.loss, False
    optimizer = torch.optim.AdamW(network.parameters.values(), lr=how.rate, weight_decay=DECAY)
    mean, checks = 0.0, 0
    try:
        while clock.share < 1:
            for group in optimizer.param_groups:
                group["lr"] = how.rate * clock.factor()
            pairs = _on(views.batch(size, rng), how.device)
            loss = compute(*network(torch.cat(pairs)).chunk(2))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.step()
            average.add(clock.steps)
            if clock.steps % NEWS == 0 or clock.share >= 1:
                now = float(loss.detach())
                mean = 0.8 * mean + 0.2 * now if mean else now
                progress(f"training: loss {mean:.3f}", clock.steps, clock.expected())
            if clock.share * CHECKS >= checks + 1:
                checks = int(clock.share * CHECKS)
                best.look()
    except KeyboardInterrupt:
        interrupted = True
        best.look()
    return Trained(best.layers, clock.steps, best.loss, first_loss, clock.seconds, interrupted)


def _on(pairs: tuple[Any, Any], device: str) -> list[Tensor]:
    return [torch.as_tensor(one, dtype=torch.float32, device=device) for one in pairs]


class Average:
    """A network whose weights are a running average of those of another, which is trained.

    Parameters
    ----------
    trained
        The other.
    """

    #: Share of the average that a step keeps.
    KEPT = 0.998

    def __init__(self, trained: Network) -> None:
        self._trained = list(trained.parameters.values())
        self.network = trained.copy()

    @torch.no_grad()
    def add(self, steps: int) -> None:
        """Add the weights as they are now, after so many steps."""
        # A young average remembers less, or it would remember what training began with.
        kept = min(self.KEPT, steps / (steps + 10))
        for mean, now in zip(self.network.parameters.values(), self._trained, strict=True):
            mean.lerp_(now, 1 - kept)


class _Best:
    """The layers that did best so far on pairs that are not trained on."""

    def __init__(
        self,
        average: Average,
        compute: Callable[[Tensor, Tensor], Tensor],
        check: tuple[Any, Any],
        device: str,
    ) -> None:
        self._network, self._compute = average.network, compute
        self._pairs = _on(check, device)
        self.loss, self.layers = math.inf, self._network.layers()
        self.look()

    def look(self) -> None:
        """Keep the layers as they are now if they are better than those kept."""
        with torch.no_grad():
            halves = [self._network(one) for one in self._pairs]
            loss = float(self._compute(*halves))
        if loss < self.loss:
            self.loss, self.layers = loss, self._network.layers()

"""Layers of a head with PyTorch, and how they are trained on pairs of descriptors."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from mkdesc._support.progress import Progress
from mkdesc.heads.head import Power
from mkdesc.heads.layers import Layers
from mkdesc.learn.training import NEWS, Trained, Training, train
from mkdesc.learn.views import Views

#: Two learned descriptors with a larger dot product are of one place, detected twice.
SAME = 0.999
#: What distances of matching pairs should be smaller by than those of others.
MARGIN = 1.0
#: What cosines are divided by in the softmax.
TEMPERATURE = 0.03


class Network:
    """Raw descriptors (N, D) to unit vectors (N, d), as layers say, on a device.

    Attributes
    ----------
    parameters
        What is learned, by the names of :class:`~mkdesc.heads.layers.Layers`.
    """

    def __init__(self, layers: Layers, device: str) -> None:
        self._layers = layers
        self._mean, self._scale = (
            torch.tensor(values, device=device) for values in (layers.mean, layers.scale)
        )
        names = [*(() if layers.basis is None else ("basis",)), "direct"]
        if layers.hidden:
            names += ["down", "threshold", "up", "offset"]
        self.parameters: dict[str, Tensor] = {
            name: torch.tensor(getattr(layers, name), device=device, requires_grad=True)
            for name in names
        }

    def copy(self) -> Network:
        """Another one with the same weights, of which nothing is learned."""
        other = Network(self._layers, str(self._mean.device))
        for name, value in self.parameters.items():
            other.parameters[name] = value.detach().clone()
        return other

    def __call__(self, x: Tensor) -> Tensor:
        """Descriptors of raw ones."""
        for stage in self._layers.before:
            if isinstance(stage, Power):
                x = x.sign() * x.abs() ** stage.exponent
            else:
                x = normalize(x, dim=1)
        x = x - self._mean
        learned = self.parameters
        if "basis" in learned:
            x = x @ learned["basis"]
        y = x @ learned["direct"]
        if self._layers.hidden:
            inner = torch.addmm(learned["threshold"], x / self._scale, learned["down"])
            y = y + torch.addmm(learned["offset"], inner.relu(), learned["up"])
        return normalize(y, dim=1)

    def layers(self) -> Layers:
        """What has been learned so far."""
        learned: dict[str, Any] = {
            name: value.detach().cpu().numpy().copy() for name, value in self.parameters.items()
        }
        return replace(self._layers, **learned)


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


def hardest_loss(first: Tensor, second: Tensor) -> Tensor:
    """The mean of ``max(0, 1 + positive - negative)``, the loss of HardNet.

    Positive is the distance of a pair, negative the least distance of either of its two to one
    that belongs to another pair (a first to a second). Others that are almost equal are the same
    place detected twice, and no negatives.

    Parameters
    ----------
    first, second
        Unit vectors (N, d); rows of one number match.

    Examples
    --------
    >>> x = torch.eye(3)
    >>> round(float(hardest_loss(x, x)), 4)  # the others are sqrt(2) away
    0.0
    """
    cosine = first @ second.T
    distance = (2 - 2 * cosine).clamp_min(1e-6).sqrt()
    positive = distance.diagonal()
    other = distance.masked_fill(_no_negatives(cosine), 2.0)
    negative = torch.minimum(other.amin(0), other.amin(1))
    return torch.relu(MARGIN + positive - negative).mean()


def softmax_loss(first: Tensor, second: Tensor) -> Tensor:
    """The cross-entropy of finding each one's other half among all, in either direction.

    Probabilities are a softmax of cosines divided by :data:`TEMPERATURE`. All near ones count,
    not the nearest alone.
    """
    cosine = first @ second.T
    there = torch.eye(len(cosine), dtype=torch.bool, device=cosine.device)
    scores = (cosine / TEMPERATURE).masked_fill(_no_negatives(cosine) & ~there, -1e4)
    right = torch.arange(len(cosine), device=cosine.device)
    return (cross_entropy(scores, right) + cross_entropy(scores.T, right)) / 2


def _no_negatives(cosine: Tensor) -> Tensor:
    """Which of the pairs (N, N) are none to keep apart: matching ones, and one place twice."""
    same = cosine.detach() > SAME
    same.fill_diagonal_(True)
    return same


#: By name.
LOSSES = {"hardest": hardest_loss, "softmax": softmax_loss}


def train_network(
    layers: Layers,
    views: Views,
    check: tuple[Any, Any],
    *,
    batch: int,
    rate: float,
    loss: str,
    device: str,
    seed: int,
    steps: int | None,
    seconds: float | None,
    progress: Progress,
) -> Trained[Layers]:
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
    batch
        Pairs per step, at most.
    rate
        Learning rate, at its largest.
    loss
        One of :data:`LOSSES`.
    device
        Of PyTorch.
    seed
        Of what is drawn.
    steps, seconds, progress
        As for :func:`~mkdesc.learn.training.train`.
    """
    network, compute = Network(layers, device), LOSSES[loss]
    average, rng = Average(network), np.random.default_rng([seed, 1])
    checked = _on(check, device)
    recent: deque[Tensor] = deque(maxlen=NEWS)

    def batch_loss(share: float) -> Tensor:
        pairs = _on(views.batch(min(batch, views.points), rng), device)
        found = compute(*network(torch.cat(pairs)).chunk(2))
        recent.append(found.detach())
        return found

    @torch.no_grad()
    def average_loss() -> float:
        return float(compute(*map(average.network, checked)))

    return train(
        Training(
            list(network.parameters.values()),
            batch_loss,
            average.network.layers,
            lambda: f"loss {float(torch.stack(list(recent)).mean()):.3f}",
            rate,
            check=average_loss,
            stepped=average.add,
        ),
        steps=steps,
        seconds=seconds,
        progress=progress,
    )


def _on(pairs: tuple[Any, Any], device: str) -> list[Tensor]:
    return [torch.as_tensor(one, dtype=torch.float32, device=device) for one in pairs]

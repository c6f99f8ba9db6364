"""Training a head on pairs of views: statistics, the loop, and figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from mkdesc._support.progress import Progress
from mkdesc.compute.torch.stages import head_module
from mkdesc.heads.head import Head
from mkdesc.heads.layers import Layers
from mkdesc.heads.statistics import Statistics
from mkdesc.learn.keypoint_pairs import count_matches
from mkdesc.learn.match_losses import as_bits, match_loss
from mkdesc.learn.match_pool import AT_ONCE, MatchBatch, MatchPool
from mkdesc.learn.network import Average, Network
from mkdesc.learn.training import Trained, Training, train
from mkdesc.learn.view_report import Figures

#: How much of earlier news counts in the next.
KEPT = 0.8


@torch.no_grad()
def gather(pool: MatchPool, power: float) -> Statistics:
    """Statistics of the raw descriptors of a pool, after a signed power; summed on its device."""
    n = pairs = 0
    total = scatter = differences = torch.zeros((), dtype=torch.float64, device=pool.photos.device)
    for part in pool.parts():
        raw = normalize(part.raw.sign() * part.raw.abs() ** power, dim=-1)
        rows = raw[part.used]
        apart = raw[part.pair, 0, part.one] - raw[part.pair, 1, part.two]
        total = total + rows.sum(0, dtype=torch.float64)
        scatter = scatter + (rows.T @ rows).double()
        differences = differences + (apart.T @ apart).double()
        n, pairs = n + len(rows), pairs + len(apart)
    mean = total / max(n, 1)
    sums = {
        "mean": mean,
        "scatter": scatter - n * torch.outer(mean, mean),
        "differences": differences,
    }
    arrays = {name: value.cpu().numpy() for name, value in sums.items()}
    return Statistics.from_tensors(arrays | {"counts": np.array([n, pairs])}, power)


@contextmanager
def fast_products() -> Iterator[None]:
    """Products of matrices on GPUs that are as exact as views are, for a while."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def train_matches(
    layers: Layers,
    pool: MatchPool,
    *,
    bits: bool,
    steps: int | None,
    seconds: float | None,
    progress: Progress,
) -> Trained[Layers]:
    """Train layers on a pool of pairs of views.

    Parameters
    ----------
    layers
        What to begin with.
    pool
        Where pairs come from; it is renewed meanwhile.
    bits
        Whether the signs of what comes out are what is used.
    steps, seconds, progress
        As for :func:`~mkdesc.learn.training.train`.
    """
    recipe, device = pool.recipe, pool.photos.device
    network = Network(layers, str(device))
    average = Average(network)
    seen = torch.zeros(3, device=device)
    last: list[tuple[Tensor, MatchBatch]] = []

    def loss(share: float) -> Tensor:
        batch = pool.batch(min(recipe.batch, recipe.pairs))
        vectors = network(batch.raw.flatten(0, 2)).view(*batch.raw.shape[:3], -1)
        vectors = as_bits(vectors) if bits else vectors
        last[:] = [(vectors.detach(), batch)]
        return match_loss(vectors, batch, recipe)

    def stepped(steps: int) -> None:
        average.add(steps)
        if steps * recipe.fresh % AT_ONCE < recipe.fresh:
            pool.renew(AT_ONCE)

    def news() -> str:
        vectors, batch = last[0]
        seen.mul_(KEPT).add_(_count(vectors, batch))
        return f"{Figures(*seen.tolist()).precision:.1%} of the matches right"

    return train(
        Training(
            list(network.parameters.values()),
            loss,
            average.network.layers,
            news,
            recipe.rate,
            stepped=stepped,
            within=fast_products,
        ),
        steps=steps,
        seconds=seconds,
        progress=progress,
    )


@torch.no_grad()
def measure(head: Head, pool: MatchPool, bits: bool) -> Figures:
    """Right matches of mutual nearest neighbours in the pairs of views of a pool."""
    device = pool.photos.device
    stages = head_module(head).to(device)
    total, count = torch.zeros(3, device=device), 0
    for part in pool.parts():
        vectors = stages(part.raw.flatten(0, 2)).view(*part.raw.shape[:3], -1)
        vectors = as_bits(vectors) if bits else vectors
        total += _count(vectors, part)
        count += len(part.raw)
    return Figures(*(total / count).tolist())


def _count(vectors: Tensor, part: MatchBatch) -> Tensor:
    first_then_second = (each.transpose(0, 1).flatten(0, 1) for each in (vectors, part.used))
    return count_matches(*first_then_second, part.near)

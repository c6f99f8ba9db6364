"""Training a head on pairs of views: statistics, the loop, and figures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from mkdesc._support.progress import Progress
from mkdesc.compute.torch.stages import head_module
from mkdesc.heads.head import Head
from mkdesc.heads.layers import Layers
from mkdesc.heads.statistics import Statistics
from mkdesc.learn.clock import Clock
from mkdesc.learn.match_losses import MatchCosts, as_bits, match_loss
from mkdesc.learn.match_pool import AT_ONCE, MatchBatch, MatchPool, PoolRecipe
from mkdesc.learn.network import Network
from mkdesc.learn.training import Average, Trained
from mkdesc.learn.view_report import Figures

DECAY = 1e-4
#: Steps between news, and how much of the last ones counts in the next.
NEWS, KEPT = 10, 0.8


@dataclass(frozen=True)
class MatchRecipe:
    """How a head is trained on pairs of views.

    Attributes
    ----------
    pool
        How pairs of views are made.
    batch, fresh
        Pairs of views per step, and how many are made anew for each step.
    costs
        What counts how much.
    rate
        Size of steps, at its largest.
    """

    pool: PoolRecipe = field(default_factory=PoolRecipe)
    batch: int = 16
    fresh: int = 2
    costs: MatchCosts = field(default_factory=MatchCosts)
    rate: float = 1e-3


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
    recipe: MatchRecipe,
    *,
    bits: bool,
    steps: int | None,
    seconds: float | None,
    progress: Progress,
) -> Trained:
    """Train layers on a pool of pairs of views.

    Parameters
    ----------
    layers
        What to begin with.
    pool
        Where pairs come from; it is renewed meanwhile.
    recipe
        How.
    bits
        Whether the signs of what comes out are what is used.
    steps, seconds
        How long, at most; one of them may be None.
    progress
        Told of steps. A KeyboardInterrupt, from anywhere, ends it: what was learned is kept.
    """
    network = Network(layers, str(pool.photos.device))
    average = Average(network)
    optimizer = torch.optim.AdamW(network.parameters.values(), lr=recipe.rate, weight_decay=DECAY)
    clock, interrupted = Clock(steps, seconds), False
    first, mean = math.nan, torch.zeros((), device=pool.photos.device)
    seen = torch.zeros(3, device=pool.photos.device)
    try:
        while clock.share < 1:
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate * clock.factor()
            batch = pool.batch(min(recipe.batch, recipe.pool.pairs))
            with fast_products():  # nothing else: places would be wrong by pixels
                vectors = network(batch.raw.flatten(0, 2)).view(*batch.raw.shape[:3], -1)
                vectors = as_bits(vectors) if bits else vectors
                loss = match_loss(vectors, batch, recipe.costs)
                optimizer.zero_grad()
                loss.backward()
            optimizer.step()
            clock.step()
            average.add(clock.steps)
            mean = mean.lerp(loss.detach(), 0.1 if clock.steps > 1 else 1.0)
            if clock.steps * recipe.fresh % AT_ONCE < recipe.fresh:
                pool.renew(AT_ONCE)
            if clock.steps % NEWS == 0 or clock.share >= 1:
                first = float(mean) if math.isnan(first) else first
                seen = KEPT * seen + count_matches(vectors.detach(), batch)
                share = Figures(*seen.tolist()).precision
                what = f"training: {share:.1%} of the matches right, {clock.pace}"
                progress(what, clock.steps, clock.expected())
    except KeyboardInterrupt:
        interrupted = True
    layers = average.network.layers()
    return Trained(layers, clock.steps, float(mean), first, clock.seconds, interrupted)


@torch.no_grad()
def measure(head: Head, pool: MatchPool, bits: bool) -> Figures:
    """Right matches of mutual nearest neighbours in the pairs of views of a pool."""
    device = pool.photos.device
    stages = head_module(head).to(device)
    total, count = torch.zeros(3, device=device), 0
    for part in pool.parts():
        vectors = stages(part.raw.flatten(0, 2)).view(*part.raw.shape[:3], -1)
        vectors = as_bits(vectors) if bits else vectors
        total += count_matches(vectors, part)
        count += len(part.raw)
    return Figures(*(total / count).tolist())


def count_matches(vectors: Tensor, part: MatchBatch) -> Tensor:
    """Right and all mutual nearest neighbours, and keypoints of the first views: (3,).

    Parameters
    ----------
    vectors
        (B, 2, N, d) unit vectors.
    part
        What they describe.
    """
    both = part.used[:, 0, :, None] & part.used[:, 1, None, :]
    alike = (vectors[:, 0] @ vectors[:, 1].mT).masked_fill(~both, -2)
    forth, back = alike.argmax(2), alike.argmax(1)
    own = torch.arange(forth.shape[1], device=vectors.device)
    mutual = (back.gather(1, forth) == own) & part.used[:, 0]
    right = mutual & part.near.gather(2, forth[..., None])[..., 0]
    return torch.stack([right.sum(), mutual.sum(), part.used[:, 0].sum()])

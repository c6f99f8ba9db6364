"""Teaching a detector by reward: the loop, and the figures."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from mkdesc._support.check import checked_sides
from mkdesc._support.progress import Progress
from mkdesc.compute.torch.module import Descriptor
from mkdesc.descriptor import MKD
from mkdesc.images.detectors.learned_reference import SIGMA
from mkdesc.images.detectors.learned_torch import Scorer
from mkdesc.images.detectors.learned_weights import Convolution, Weights
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.learn.clock import Clock
from mkdesc.learn.keypoint_rewards import (
    Describe,
    Look,
    Rules,
    best_points,
    draw_points,
    match_points,
)
from mkdesc.learn.keypoint_views import Pairs, Photos, ViewRecipe
from mkdesc.learn.view_report import Figures

#: Quarter turns make a whole one.
TURNS = 4
#: Side of the square of a model that does not say it, in sigmas.
SIDE = 20.0
#: Steps between news, and how often, in all, it is checked whether weights are the best so far.
NEWS, CHECKS = 10, 10
#: Pairs of views that decide which weights are the best, and those that figures are of.
CHECKED_PAIRS, MEASURED_PAIRS = 16, 48
#: Pixels of a view for each keypoint, when figures are taken; pixels that are right.
PIXELS_PER_POINT, RIGHT = 300, 3.0


@dataclass(frozen=True)
class KeypointRecipe:
    """How keypoints are taught.

    Attributes
    ----------
    channels, kernels
        Of the network: outputs of all layers but the last, and sides of the kernels of all.
    rules, views
        How points are drawn and judged, and how much views differ.
    pairs, size
        Pairs of views per step, and the side of a view in pixels.
    squares
        How many times the squares of a model, what it is used at, are described; one is drawn for
        each step.
    rate
        Size of steps, at its largest.
    """

    channels: tuple[int, ...] = (8, 8)
    kernels: tuple[int, ...] = (5, 5, 5)
    rules: Rules = field(default_factory=Rules)
    views: ViewRecipe = field(default_factory=ViewRecipe)
    pairs: int = 8
    size: int = 384
    squares: tuple[float, ...] = (0.75, 1.0, 1.375)
    rate: float = 2e-3


@dataclass(frozen=True, eq=False)
class Taught:
    """What came of it: the best weights, steps, seconds, and whether Ctrl-C ended it."""

    weights: Weights
    steps: int
    seconds: float
    interrupted: bool


def fresh_weights(recipe: KeypointRecipe, seed: int) -> Weights:
    """Random symmetric weights to begin with; see :func:`make_symmetric`.

    >>> fresh_weights(KeypointRecipe(), 0).count
    2017
    """
    rng = np.random.default_rng([seed, 7])
    layers, before = [], 1
    for channels, side in zip((*recipe.channels, 1), recipe.kernels, strict=True):
        fan = before * side**2
        shape = (channels, before, side, side)
        bound = math.sqrt(6 / fan) if channels > 1 else 1 / math.sqrt(fan)
        bound *= math.sqrt(TURNS)  # a mean of so many varies less
        weight = rng.uniform(-bound, bound, shape).astype(np.float32)
        layers.append(Convolution(weight, np.zeros(channels, np.float32)))
        before = channels
    scorer = Scorer(Weights(tuple(layers)))
    make_symmetric(scorer)
    return Weights(scorer.layers())


@torch.no_grad()
def make_symmetric(scorer: Scorer) -> None:
    """Change weights so that an image turned by a quarter has the same scores, turned.

    Channels come in fours. A quarter turn of the input turns every channel and moves it to the
    next of its four, so kernels are turned copies of each other: what is learned of one
    direction holds for all four, and maxima lie neither left nor right of what they mark. (The
    image and the score are channels that stay where they are.) The nearest such weights are the
    mean over the four turns.

    >>> weights = Scorer(fresh_weights(KeypointRecipe(), 0))
    >>> image = torch.rand(1, 40, 50)
    >>> torch.allclose(weights(image.rot90(1, (1, 2))), weights(image).rot90(1, (1, 2)), atol=1e-5)
    True
    """
    for conv in scorer.convs:
        shape = conv.weight.shape
        out, into = (TURNS if channels % TURNS == 0 else 1 for channels in shape[:2])
        turned = [conv.weight.view(-1, out, shape[1] // into, into, *shape[2:])]
        for _ in range(TURNS - 1):
            turned.append(turned[-1].roll((1, 1), (1, 3)).rot90(1, (-2, -1)))
        conv.weight.copy_(torch.stack(turned).mean(0).view(shape))
        conv.bias.copy_(conv.bias.view(-1, out).mean(1).repeat_interleave(out))


def describe_with(mkd: MKD, device: torch.device) -> Describe:
    """What describes patches (N, k, W, W) in [0, 1] on a device with a fitted model."""
    if device.type == "cpu" and _compiles():  # many times as fast as PyTorch there

        def on_cpu(patches: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(np.asarray(mkd.transform(patches.numpy()), np.float32))

        return on_cpu
    kernels = as_parametrization(mkd.parametrization)
    module = Descriptor(kernels, int(mkd.patch_size), mkd.effective_head(), squares=mkd.squares)
    module = module.to(device).eval()

    def on_device(patches: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            described: torch.Tensor = module(patches)
        return described

    return on_device


def _compiles() -> bool:
    """Whether numba is there; machines that are there for their GPUs may lack it."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def look_of(mkd: MKD) -> Look:
    """The squares that a descriptor is used at, around keypoints of the finest level.

    >>> look_of(MKD("extended-24", 24, side=(20, 40)))
    Look(sides=(32.0, 64.0), patch_size=24)
    """
    sides = checked_sides(SIDE if mkd.side is None else mkd.side)
    return Look(tuple(SIGMA * side for side in sides), int(mkd.patch_size))


@torch.no_grad()
def measure(
    weights: Weights,
    batches: list[Pairs],
    describe: Describe,
    rules: Rules,
    look: Look,
) -> Figures:
    """Right matches of the best points of pairs of views.

    Parameters
    ----------
    weights
        Of the detector.
    batches
        Pairs of views.
    describe, look
        What describes patches, and of which squares.
    rules
        Whether points are upright.
    """
    device = batches[0].images.device
    judged = Rules(upright=rules.upright, right=RIGHT, wrong=2 * RIGHT)
    total, count = torch.zeros(3, device=device), 0
    for pairs in batches:
        n = pairs.images.shape[-1] ** 2 // PIXELS_PER_POINT
        points = best_points(weights, pairs, judged, n, look)
        matched = match_points(points, pairs, describe, judged, 0.0)
        total += torch.stack([matched.right, matched.matches, matched.points]).float()
        count += len(pairs.images) // 2
    right, matches, found = (total / count).tolist()
    return Figures(right, matches, found)


def batches_of(photos: Photos, recipe: KeypointRecipe, pairs: int, seed: int) -> list[Pairs]:
    """Pairs of views that are the same for the same seed."""
    rng = np.random.default_rng([seed, 11])
    generator = torch.Generator(photos.device).manual_seed(seed)
    each = min(recipe.pairs, pairs)
    return [
        photos.pairs(each, recipe.size, recipe.views, rng, generator)
        for _ in range(max(1, pairs // each))
    ]


def teach(
    start: Weights,
    photos: Photos,
    mkd: MKD,
    recipe: KeypointRecipe,
    *,
    steps: int | None,
    seconds: float | None,
    seed: int,
    progress: Progress,
) -> Taught:
    """Teach a detector on photographs.

    Parameters
    ----------
    start
        Weights to begin with.
    photos
        To learn from.
    mkd
        A fitted descriptor, which stays as it is.
    recipe
        How.
    steps, seconds
        How long, at most; one of them may be None.
    seed
        Of everything that is drawn.
    progress
        Told of steps. A KeyboardInterrupt, from anywhere, ends it: the best so far is kept.
    """
    device = photos.device
    scorer, describe = Scorer(start).to(device), describe_with(mkd, device)
    make_symmetric(scorer)
    optimizer = torch.optim.Adam(scorer.parameters(), lr=recipe.rate)
    rng = np.random.default_rng([seed, 5])
    generator = torch.Generator(device).manual_seed(seed + 1)
    look, rules = look_of(mkd), recipe.rules
    check = batches_of(photos, recipe, min(CHECKED_PAIRS, 4 * recipe.pairs), seed + 2)
    best, best_right, interrupted, checks = start, -1.0, False, 0
    clock = Clock(steps, seconds)
    news: list[Any] = []

    def compare() -> None:
        nonlocal best, best_right
        weights = Weights(scorer.layers())
        figures = measure(weights, check, describe, rules, look)
        if figures.right > best_right:
            best, best_right = weights, figures.right

    try:
        compare()
        while clock.share < 1:
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate * clock.factor()
            pairs = photos.pairs(recipe.pairs, recipe.size, recipe.views, rng, generator)
            larger = look.times(float(rng.choice(recipe.squares)))
            drawn = draw_points(scorer, pairs, rules, larger, generator)
            cost = min(1.0, max(0.0, 3 * (clock.share - 0.25)))
            matched = match_points(drawn, pairs, describe, rules, cost)
            loss = -(drawn.log_probability * matched.rewards).sum() / len(pairs.images)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            make_symmetric(scorer)
            clock.step()
            news.append(torch.stack([matched.right, matched.matches, matched.points]).float())
            if clock.steps % NEWS == 0 or clock.share >= 1:
                right, matches, points = (torch.stack(news).mean(0) / recipe.pairs).tolist()
                news.clear()
                what = (
                    f"training: {right:.0f} right of {matches:.0f} matches, {points:.0f} points a "
                    f"view, {clock.pace}"
                )
                progress(what, clock.steps, clock.expected())
            if clock.share * CHECKS >= checks + 1:
                checks = int(clock.share * CHECKS)
                compare()
    except KeyboardInterrupt:
        interrupted = True
        compare()
    return Taught(best, clock.steps, clock.seconds, interrupted)

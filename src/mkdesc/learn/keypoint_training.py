"""Teaching a detector by reward: the loop, and the figures."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from mkdesc._support.check import checked_sides
from mkdesc._support.progress import Progress
from mkdesc.compute.torch.module import Descriptor
from mkdesc.descriptor import MKD
from mkdesc.images.detectors.learned_torch import Scorer
from mkdesc.images.detectors.learned_weights import Convolution, Weights
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.learn.keypoint_pairs import (
    Found,
    count_matches,
    cut,
    find_points,
    move,
    near,
    table_of,
)
from mkdesc.learn.keypoint_rewards import KeypointRecipe, draw_points, match_points
from mkdesc.learn.keypoint_views import Pairs, Photos
from mkdesc.learn.training import Trained, Training, train
from mkdesc.learn.view_report import Figures

#: Unit vectors (V, N, d) of keypoints of images, of squares so many times as large as usual.
Describe = Callable[..., Tensor]

#: Quarter turns make a whole one.
TURNS = 4
#: Side of the square of a model that does not say it, in sigmas.
SIDE = 20.0
#: How often, in all, it is checked whether weights are the best so far.
CHECKS = 10
#: Pairs of views that decide which weights are the best, and those that figures are of.
CHECKED_PAIRS, MEASURED_PAIRS = 16, 48
#: Pixels of a view for each keypoint, when figures are taken.
PIXELS_PER_POINT = 300


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
    """What describes keypoints of images in [0, 1] on a device with a fitted model."""
    kernels, size = as_parametrization(mkd.parametrization), int(mkd.patch_size)
    sides = checked_sides(SIDE if mkd.side is None else mkd.side)
    transform: Callable[[Tensor], Tensor]
    if device.type == "cpu" and _compiles():  # many times as fast as PyTorch there

        def transform(patches: Tensor) -> Tensor:
            return torch.from_numpy(np.asarray(mkd.transform(patches.numpy()), np.float32))

    else:
        module = Descriptor(kernels, size, mkd.effective_head(), squares=mkd.squares)
        transform = module.to(device).eval()

    @torch.no_grad()
    def describe(images: Tensor, found: Found, larger: float = 1.0) -> Tensor:
        patches = cut(images, found, size, [larger * side for side in sides])
        return table_of(transform(patches), found.used)

    return describe


def _compiles() -> bool:
    """Whether numba is there; machines that are there for their GPUs may lack it."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


@torch.no_grad()
def measure(weights: Weights, batches: list[Pairs], describe: Describe, upright: bool) -> Figures:
    """Right matches of the best points of pairs of views.

    Parameters
    ----------
    weights
        Of the detector.
    batches
        Pairs of views.
    describe
        What describes them.
    upright
        Whether points are.
    """
    total, count = torch.zeros(3, device=batches[0].images.device), 0
    for pairs in batches:
        n, half = pairs.images.shape[-1] ** 2 // PIXELS_PER_POINT, len(pairs.images) // 2
        found = find_points(weights, pairs.images, pairs.inside, n, upright)
        right = near(move(found, pairs.to_other[:half]), found.places[half:])
        total += count_matches(describe(pairs.images, found), found.used, right)
        count += half
    return Figures(*(total / count).tolist())


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
) -> Trained[Weights]:
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
    seed
        Of everything that is drawn.
    steps, seconds, progress
        As for :func:`~mkdesc.learn.training.train`.
    """
    device = photos.device
    scorer, describe = Scorer(start).to(device), describe_with(mkd, device)
    make_symmetric(scorer)
    rng = np.random.default_rng([seed, 5])
    generator = torch.Generator(device).manual_seed(seed + 1)
    check = batches_of(photos, recipe, min(CHECKED_PAIRS, 4 * recipe.pairs), seed + 2)
    recent: list[Tensor] = []

    def loss(share: float) -> Tensor:
        pairs = photos.pairs(recipe.pairs, recipe.size, recipe.views, rng, generator)
        larger = float(rng.choice(recipe.squares))
        drawn = draw_points(scorer, pairs, recipe, generator)
        vectors = describe(pairs.images, drawn.found, larger)
        matched = match_points(drawn, pairs, vectors, recipe, charged(share))
        recent.append(torch.stack([matched.right, matched.matches, matched.points]).float())
        return -(drawn.log_probability * matched.rewards).sum() / len(pairs.images)

    def news() -> str:
        right, matches, points = (torch.stack(recent).mean(0) / recipe.pairs).tolist()
        recent.clear()
        return f"{right:.0f} right of {matches:.0f} matches, {points:.0f} points a view"

    def missed() -> float:
        try:
            weights = Weights(scorer.layers())
        except ValueError:  # not finite: never the best
            return math.inf
        return -measure(weights, check, describe, recipe.upright).right

    return train(
        Training(
            list(scorer.parameters()),
            loss,
            lambda: Weights(scorer.layers()),
            news,
            recipe.rate,
            decay=0.0,
            check=missed,
            checks=CHECKS,
            stepped=lambda steps: make_symmetric(scorer),
        ),
        steps=steps,
        seconds=seconds,
        progress=progress,
    )


def charged(share: float) -> float:
    """Share of the costs that is charged when so much of a training is over: none at first.

    >>> charged(0.25), charged(0.5), charged(0.75)
    (0.0, 0.75, 1.0)
    """
    return min(1.0, max(0.0, 3 * (share - 0.25)))

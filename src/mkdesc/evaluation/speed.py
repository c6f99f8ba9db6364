"""How fast descriptors are, measured in turns so that a noisy machine disturbs all alike."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.installed import versions
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.threads import available_threads
from mkdesc.evaluation.contenders.base import Descriptor, PatchDescriptor, ProjectedDescriptor
from mkdesc.evaluation.contenders.registry import get_descriptors
from mkdesc.evaluation.report.runs import Results
from mkdesc.evaluation.report.table import Row, Table, short_names
from mkdesc.kernels.patches import resize_patches
from mkdesc.models import open_model

#: Patches that a descriptor's speed is guessed with, to give each its share of a round.
FEW = 64
#: Seconds that each descriptor gets of a round, if there are enough patches.
TURN = 0.25

#: Something to run, and how many patches it describes.
Contender = tuple[Callable[[], Any], int]


@dataclass(frozen=True)
class Speed:
    """Patches per second: the median of all rounds, and their quartiles."""

    median: float
    low: float
    high: float


def textured_patches(n: int, size: int) -> NDArray[np.uint8]:
    """Smooth random patches (n, size, size): noise would be unlike anything ever described.

    >>> textured_patches(3, 32).shape
    (3, 32, 32)
    """
    coarse = np.random.default_rng(0).random((n, 8, 8)).astype(np.float32)
    return (255 * resize_patches(coarse, size)).astype(np.uint8)


def measure_speeds(
    contenders: Mapping[str, Contender], rounds: int = 7, progress: Progress = no_progress
) -> dict[str, Speed]:
    """Let all take turns for several rounds, each in another order, after one that warms up.

    Parameters
    ----------
    contenders
        By name, something to run and the number of patches it describes.
    rounds
        How often each is measured, at least 2.
    progress
        Told of every round.

    Examples
    --------
    >>> found = measure_speeds({"adding": (lambda: sum(range(1000)), 10)}, rounds=2)
    >>> found["adding"].median > 0
    True
    """
    if rounds < 2:
        raise ValueError(f"rounds: expected at least 2, got {rounds}")
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    chance = random.Random(0)
    for current in range(rounds + 1):
        chance.shuffle(order)  # some leave threads behind that go on for a while
        for name in order:
            start = time.perf_counter()
            contenders[name][0]()
            if current:
                seconds[name].append(time.perf_counter() - start)
        progress("measuring", current, rounds)
    found = {}
    for name, (_, n) in contenders.items():
        low, middle, high = statistics.quantiles([n / max(s, 1e-9) for s in seconds[name]], n=4)
        found[name] = Speed(middle, low, high)
    return found


def _on_device(one: Descriptor, device: str) -> Descriptor:
    """A model by PyTorch; all others as they are."""
    if not isinstance(one, ProjectedDescriptor):
        return one
    mkd = open_model(one.name).set_params(resize=True, backend="torch", device=device)
    return PatchDescriptor(f"{one.name} on {device}", mkd.transform)


def run_speed(
    descriptors: Iterable[str | Descriptor | Callable[..., Any]],
    size: int = 64,
    count: int = 8192,
    rounds: int = 7,
    progress: Progress = no_progress,
    device: str | None = None,
) -> Results:
    """Patches per second of descriptors, all threads allowed, and what a descriptor takes.

    Parameters
    ----------
    descriptors
        Names, descriptors or callables (:func:`mkdesc.evaluation.get_descriptor`).
    size, count
        Side of the patches, and how many there are at most; slow descriptors get fewer.
    rounds, progress
        As for :func:`measure_speeds`.
    device
        Where models are computed by PyTorch, such as ``"cuda"``, patches moved there and
        descriptors back; None: on the CPU, by compiled code.
    """
    if count < FEW or size < 8:
        raise ValueError(f"count, size: expected at least {FEW} and 8, got {count} and {size}")
    chosen = get_descriptors(descriptors)
    if device is not None:
        chosen = [_on_device(one, device) for one in chosen]
    names = short_names(one.name for one in chosen)
    patches = textured_patches(count, size)
    contenders: dict[str, Contender] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for one in chosen:
        if not isinstance(one, (PatchDescriptor, ProjectedDescriptor)):
            raise ValueError(f"{one.name}: expected a descriptor that describes patches by itself")
        rows = np.asarray(one.describe(patches[:FEW]))  # compiles, too
        start = time.perf_counter()
        one.describe(patches[:FEW])
        share = int(FEW * TURN / max(time.perf_counter() - start, 1e-6))
        these = patches[: min(max(share, FEW), count)]
        contenders[names[one.name]] = partial(one.describe, these), len(these)
        sizes[names[one.name]] = rows.shape[1], rows[0].nbytes
    found = measure_speeds(contenders, rounds, progress)
    first = next(iter(found.values())).median
    table = Table(
        "speed",
        f"Patches of {size} px per second, {available_threads()} threads",
        ("D", "bytes", "patches/s", "quartiles", "times the first"),
        tuple(
            Row(
                name,
                (
                    *sizes[name],
                    f"{speed.median:,.0f}",
                    f"{speed.low:,.0f} .. {speed.high:,.0f}",
                    speed.median / first,
                ),
            )
            for name, speed in found.items()
        ),
        (", ".join(f"{name} {number}" for name, number in versions().items()),),
    )
    return Results("speed", (table,), {name: asdict(speed) for name, speed in found.items()})

"""Teaching the learned detector on one's own photographs: ``mkdesc learn keypoints``."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_number
from mkdesc._support.optional import needed
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.version import __version__
from mkdesc.images.detectors.learned_weights import (
    Weights,
    load_weights,
    save_weights,
)
from mkdesc.images.reading import read_gray
from mkdesc.images.resampling import reduced
from mkdesc.learn.clock import remaining
from mkdesc.learn.holding_out import hold_out, names_of
from mkdesc.learn.photos import list_photos
from mkdesc.learn.view_report import ViewReport
from mkdesc.models import load_model

if TYPE_CHECKING:
    from mkdesc.learn.keypoint_rewards import KeypointRecipe


#: Steps on a GPU and on a CPU, unless told otherwise.
GPU_STEPS, CPU_STEPS = 3000, 300
#: On a CPU: pairs of views per step, and their side in pixels.
CPU_PAIRS, CPU_SIZE = 2, 256
#: PyTorch's threads there: its operations are so small that more of them wait for each other.
CPU_THREADS = 1
#: Photographs are reduced to this many pixels, as those that heads are learned from.
MAX_SIDE = 1600
#: Smaller ones have nothing to teach.
MIN_SIDE = 96


@dataclass(frozen=True, eq=False)
class LearnedKeypoints:
    """Weights of a detector, how they were learned, and photographs they were not learned from."""

    weights: Weights
    report: ViewReport
    held_out: list[str]

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the weights with their card to a safetensors file.

        A file that has no such weights is replaced only if ``overwrite`` says so.
        """
        save_weights(self.weights, path, overwrite=overwrite)


def learn_keypoints(
    photos: str | Path | Iterable[str | Path],
    *,
    model: str | os.PathLike[str] = "photo-net",
    upright: bool = False,
    steps: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    device: str = "auto",
    start: str | os.PathLike[str] | None = None,
    recipe: KeypointRecipe | None = None,
    progress: Progress = no_progress,
) -> LearnedKeypoints:
    """Teach the learned detector which points a model matches, by reward; needs PyTorch.

    Parameters
    ----------
    photos
        A folder (those of folders in it too), or a list of files.
    model
        The model that will describe the keypoints: a name or a file. It stays as it is.
    upright
        Whether keypoints are to have no angle: for level cameras.
    steps, seconds
        How long to train, at most, and how long all of it may take; both None: 3,000 steps on a
        GPU, 300 smaller ones on a CPU.
    seed
        The same seed gives the same weights on a CPU, unless ``seconds`` ended it.
    device
        Of PyTorch; ``"auto"``: a GPU if there is one.
    start
        Weights to begin with, a name or a file; None: random ones.
    recipe
        How, in detail (whether keypoints are upright, too); None: what suits the device.
    progress
        Told of the steps. A KeyboardInterrupt ends the teaching: the best so far is returned.
    """
    check_number("steps", steps, above=0, optional=True)
    check_number("seconds", seconds, above=0, optional=True)
    with needed("learning keypoints needs PyTorch", "torch"):
        import torch  # noqa: F401
    from mkdesc._support.launching import chosen_device
    from mkdesc.learn import keypoint_training as training
    from mkdesc.learn.keypoint_views import Photos
    from mkdesc.learn.training import torch_threads

    began = time.perf_counter()
    where = chosen_device(None if device == "auto" else device)
    chosen = recipe or recipe_for(where.type == "cpu", upright)
    mkd = load_model(model).fit()
    first = training.fresh_weights(chosen, seed) if start is None else load_weights(start)
    images = read_photos(list_photos(photos), progress)
    learned, kept = hold_out(list(images), seed)
    bank = Photos([images[name] for name in learned], where)
    others = Photos([images[name] for name in kept or learned], where)
    describe = training.describe_with(mkd, where)
    if steps is None and seconds is None:
        steps = CPU_STEPS if where.type == "cpu" else GPU_STEPS
    with torch_threads(CPU_THREADS if where.type == "cpu" else None):
        figures = training.batches_of(others, chosen, training.MEASURED_PAIRS, seed + 3)
        before = training.measure(first, figures, describe, chosen.upright)
        taught = training.teach(
            first,
            bank,
            mkd,
            chosen,
            steps=steps,
            seconds=remaining(seconds, began),
            seed=seed,
            progress=progress,
        )
        after = training.measure(taught.best, figures, describe, chosen.upright)
    report = ViewReport(
        len(learned),
        names_of(kept),
        before,
        after,
        taught.steps,
        taught.seconds,
        taught.interrupted,
    )
    card = _card(report, chosen, model=os.fspath(model), seed=seed, device=str(where))
    card["began_as"] = "random weights" if start is None else Path(os.fspath(start)).name
    return LearnedKeypoints(replace(taught.best, card=card), report, kept)


def recipe_for(on_cpu: bool, upright: bool) -> KeypointRecipe:
    """What suits the device and the kind of keypoints."""
    from mkdesc.learn.keypoint_rewards import KeypointRecipe

    recipe = KeypointRecipe()
    rotation = recipe.views.rotation if upright else 180.0
    return replace(
        recipe,
        upright=upright,
        views=replace(recipe.views, rotation=rotation),
        pairs=CPU_PAIRS if on_cpu else recipe.pairs,
        size=CPU_SIZE if on_cpu else recipe.size,
    )


def read_photos(files: list[Path], progress: Progress) -> dict[str, NDArray[np.uint8]]:
    """Photographs by their files; unreadable ones are skipped with a warning."""
    images: dict[str, NDArray[np.uint8]] = {}
    reasons = []
    for number, file in enumerate(files):
        try:
            image = reduced(read_gray(file), MAX_SIDE)
            if min(image.shape) < MIN_SIDE:
                raise ValueError(f"{file}: smaller than {MIN_SIDE} px")
        except (ValueError, OSError) as error:
            reasons.append(str(error))
            warnings.warn(f"skipped: {error}", RuntimeWarning, stacklevel=3)
            continue
        images[str(file)] = image
        progress("reading", number + 1, len(files))
    if not images:
        raise ValueError(f"photos: none of {len(files)} could be used; the first: {reasons[0]}")
    return images


def _card(report: ViewReport, recipe: KeypointRecipe, **facts: Any) -> dict[str, Any]:
    """What the file says of itself, in plain values."""
    return {
        "kind": "upright" if recipe.upright else "turned",
        "photos": report.photos,
        "held_out": report.held_out,
        "steps": report.steps,
        "recipe": asdict(recipe),
        "before": asdict(report.before),
        "after": asdict(report.after),
        "version": __version__,
        "command": [Path(sys.argv[0]).name, *(Path(word).name for word in sys.argv[1:])],
        **facts,
    }

"""Learning what describes the learned detector's keypoints: ``mkdesc learn descriptor``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkdesc._support.check import check_choice, checked_sides
from mkdesc._support.optional import needed
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.version import __version__
from mkdesc.descriptor import MKD
from mkdesc.heads.head import Head, Power
from mkdesc.heads.layers import add_hidden, layers_of, reduced
from mkdesc.heads.statistics import Statistics
from mkdesc.heads.whitening import Whitening
from mkdesc.images.detectors.learned_weights import load_weights
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.learn.clock import check_time_left, remaining
from mkdesc.learn.holding_out import hold_out, names_of, scene_of
from mkdesc.learn.keypoints import read_photos
from mkdesc.learn.photos import list_photos
from mkdesc.learn.ratio import RATIO_PHOTOS, calibrated_ratio
from mkdesc.learn.trained_head import KINDS
from mkdesc.learn.view_report import ViewReport
from mkdesc.models import Card, load_model, save_model

if TYPE_CHECKING:
    from mkdesc.heads.layers import Layers
    from mkdesc.learn.match_pool import MatchPool, MatchRecipe

#: Steps on a GPU and on a CPU, unless told otherwise.
GPU_STEPS, CPU_STEPS = 8000, 300
#: On a CPU: pairs of views in the pool and per step, keypoints of a view, its side in pixels.
CPU_POOL, CPU_BATCH, CPU_POINTS, CPU_SIZE = 64, 4, 200, 320
#: Size of steps, at its largest, for a model that is trained further.
FURTHER = 1e-4
#: Pairs of views that figures are of, on a GPU and on a CPU, where 16 take 6 s.
GPU_MEASURED, CPU_MEASURED = 64, 16


@dataclass(frozen=True)
class HeadPlan:
    """What is learned.

    Attributes
    ----------
    kind
        ``"mlp"``: a hidden layer beside the projection. ``"linear"``: the projection alone.
        ``"gda"``: the whitening that both begin as.
    dims
        Numbers of a descriptor; of those of bits, bits.
    hidden, rank
        Units of the hidden layer, and to how many numbers raw descriptors are taken before it.
    bits
        Whether the signs of the numbers are what is used.
    power, ridge
        As for :class:`~mkdesc.Whitening`.
    """

    kind: str = "mlp"
    dims: int = 128
    hidden: int = 896
    rank: int = 160
    bits: bool = False
    power: float = 0.75
    ridge: float = 1e-4

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("gda", *KINDS))

    def begin(self, statistics: Statistics) -> Head:
        """The whitening."""
        dims = max(self.rank, self.dims) if self.kind == "mlp" else self.dims
        whitening = Whitening("gda", dims, power=self.power, ridge=self.ridge)
        head = whitening.fit_statistics(statistics).learned()
        return reduced(head, self.dims) if self.kind == "mlp" else head

    def layers(self, head: Head, statistics: Statistics, seed: int) -> Layers:
        """What is trained, to begin with."""
        layers = layers_of(head, statistics.covariance)
        if self.kind == "mlp" and not layers.hidden:
            layers = add_hidden(layers, self.hidden, np.random.default_rng([seed, 0]))
        return layers


@dataclass(frozen=True, eq=False)
class LearnedDescriptor:
    """A descriptor, how it was learned, on what it was not, and what its card will say."""

    mkd: MKD
    report: ViewReport
    held_out: list[str]
    card: dict[str, Any] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Card:
        """Write the model to a safetensors file.

        A file that is no model is replaced only if ``overwrite`` says so.
        """
        return save_model(self.mkd, path, self.card, overwrite=overwrite)


def learn_descriptor(
    photos: str | Path | Iterable[str | Path],
    mkd: MKD | None = None,
    plan: HeadPlan | None = None,
    *,
    detector: str | os.PathLike[str] = "keypoints",
    steps: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    device: str = "auto",
    start: str | os.PathLike[str] | None = None,
    recipe: MatchRecipe | None = None,
    progress: Progress | None = None,
) -> LearnedDescriptor:
    """Learn a head for the learned detector's keypoints from plain photographs; needs PyTorch.

    Parameters
    ----------
    photos
        A folder (those of folders in it too), or a list of files.
    mkd
        The descriptor, without a head; its ``side`` says which squares of a keypoint are looked
        at. Default: ``MKD("extended-fine", 24, side=(20, 40))``.
    plan
        What is learned; default: :class:`HeadPlan`.
    detector
        Weights of the detector: a name or a file.
    steps, seconds
        How long to train, at most, and how long all of it may take; both None: 8,000 steps on a
        GPU, 300 smaller ones on a CPU.
    seed
        The same seed gives the same model on a CPU, unless ``seconds`` ended it.
    device
        Of PyTorch; ``"auto"``: a GPU if there is one.
    start
        A model to train further, a name or a file: it says ``mkd`` and ``plan`` (but for bits).
    recipe
        How, in detail; None: what suits the device.
    progress
        Told of the steps. A KeyboardInterrupt ends the training: what was learned is returned.
    """
    for name, value in (("steps", steps), ("seconds", seconds)):
        if value is not None and not value > 0:
            raise ValueError(f"{name}: expected a number > 0 or None, got {value!r}")
    with needed("learning a descriptor needs PyTorch", "torch"):
        import torch
    from mkdesc._support.launching import chosen_device
    from mkdesc.learn.match_training import gather, measure, train_matches

    began = time.perf_counter()
    tell, plan = progress or no_progress, plan or HeadPlan()
    begun: Head | None = None
    if start is not None:
        mkd = load_model(start)
        begun = mkd.effective_head()
        plan = plan_of(begun, plan.bits)
    mkd = MKD("extended-fine", 24, side=(20.0, 40.0)) if mkd is None else mkd
    mkd = MKD(**mkd.get_params(deep=False)).set_params(whitening=None, head=None).fit()
    if mkd.side is None:
        raise ValueError("mkd: expected the sides of its squares, got None")
    where = chosen_device(None if device == "auto" else device)
    chosen = recipe or recipe_for(where.type == "cpu")
    if recipe is None and start is not None:
        chosen = replace(chosen, rate=FURTHER)
    images = read_photos(list_photos(photos), tell)
    learned, kept = hold_out(list(images), seed)

    def pool_of(names: list[str], pairs: int, seed: int) -> MatchPool:
        some = replace(chosen, pairs=pairs)
        return _pool({name: images[name] for name in names}, mkd, detector, some, seed, where)

    def views(made: int) -> None:
        tell("views", made, taught + measured)
        check_time_left(seconds, began, "making views")

    torch.manual_seed(seed)
    taught = chosen.pairs
    measured = min(CPU_MEASURED if where.type == "cpu" else GPU_MEASURED, taught)
    pool = pool_of(learned, taught, seed)
    pool.fill(views)
    statistics = gather(pool, plan.power)
    head = begun or plan.begin(statistics)
    pool.find_maps(head)
    figures = pool_of(kept or learned, measured, seed + 1)
    figures.fill(lambda made: views(taught + made))
    before = measure(head, figures, plan.bits)
    done, taken, interrupted, after = 0, 0.0, False, before
    if plan.kind != "gda":
        if steps is None and seconds is None:
            steps = CPU_STEPS if where.type == "cpu" else GPU_STEPS
        trained = train_matches(
            plan.layers(head, statistics, seed),
            pool,
            bits=plan.bits,
            steps=steps,
            seconds=remaining(seconds, began),
            progress=tell,
        )
        head, interrupted = trained.best.head(), trained.interrupted
        done, taken = trained.steps, trained.seconds
        after = measure(head, figures, plan.bits)
    report = ViewReport(len(learned), names_of(kept), before, after, done, taken, interrupted)
    card = {
        "source": "plain photographs",
        "photographs": len(learned),
        "scene_pairs": len(pool.maps),
        "held_out": names_of(kept),
        "detector": Path(os.fspath(detector)).name,
        "head": asdict(plan),
        "began_as": "a whitening" if start is None else Path(os.fspath(start)).name,
        "recipe": asdict(chosen),
        "steps": done,
        "before": asdict(before),
        "after": asdict(after),
        "seed": seed,
        "device": str(where),
        "version": __version__,
        "command": [Path(sys.argv[0]).name, *(Path(word).name for word in sys.argv[1:])],
    }
    mkd.set_params(head=head)
    with suppress(ImportError):  # of OpenCV, which nothing else here needs
        # (A model that was trained further keeps its ratio, which was found on more photographs.)
        if start is None or mkd.ratio is None:
            ratio = calibrated_ratio(
                mkd, (kept or learned)[:RATIO_PHOTOS], seed=seed, progress=tell
            )
            mkd.set_params(ratio=None if ratio is None else ratio.ratio)
    return LearnedDescriptor(mkd, report, kept, card)


def plan_of(head: Head | None, bits: bool) -> HeadPlan:
    """What the head of a model is, as a plan to train it further."""
    assert head is not None  # every file of a model has one
    first = head.stages[0]
    power = first.exponent if isinstance(first, Power) else 1.0
    kind = "mlp" if head.linear() is None else "linear"
    return HeadPlan(kind, head.dims_out, bits=bits, power=power)


def recipe_for(on_cpu: bool) -> MatchRecipe:
    """What suits the device."""
    from mkdesc.learn.match_pool import MatchRecipe

    recipe = MatchRecipe()
    if not on_cpu:
        return recipe
    # To look for photographs of one scene takes longer than the rest.
    recipe = replace(recipe, pairs=CPU_POOL, points=CPU_POINTS, size=CPU_SIZE, real=0.0)
    return replace(recipe, batch=CPU_BATCH, fresh=1)


def _pool(
    images: dict[str, Any],
    mkd: MKD,
    detector: str | os.PathLike[str],
    recipe: MatchRecipe,
    seed: int,
    device: Any,
) -> MatchPool:
    """An empty pool of pairs of views of photographs."""
    from mkdesc.compute.torch.module import Descriptor
    from mkdesc.learn.keypoint_views import Photos
    from mkdesc.learn.match_pool import MatchPool

    scenes: dict[str, int] = {}
    numbers = [scenes.setdefault(scene_of(name), len(scenes)) for name in images]
    kernels = as_parametrization(mkd.parametrization)
    descriptor = Descriptor(kernels, int(mkd.patch_size))
    return MatchPool(
        Photos(list(images.values()), device),
        np.array(numbers),
        load_weights(detector),
        descriptor.to(device).eval(),
        checked_sides(mkd.side),
        recipe,
        seed,
    )

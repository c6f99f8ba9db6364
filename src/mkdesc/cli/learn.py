"""``mkdesc learn``: a model from whatever its user owns."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mkdesc.cli.cluster import workers_at
from mkdesc.cli.options import Cluster, on_device
from mkdesc.cli.progress import console, resumable, told, warm_up
from mkdesc.datasets.patch_files import open_patches
from mkdesc.descriptor import MKD
from mkdesc.heads.whitening import Whitening
from mkdesc.images.frames import SIDE
from mkdesc.learn import Learned, sources
from mkdesc.learn.photos import VIEWS, Recipe
from mkdesc.learn.trained import TrainedHead
from mkdesc.models import load_model, read_card

__all__ = ["app"]

app = typer.Typer(
    help="Learn the whitening of the descriptor, and write a model file.", no_args_is_help=True
)

Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="MODEL.safetensors", help="Where to write.")
]
Kernels = Annotated[
    str, typer.Option("--parametrization", help="Kernels, by name or as products.")
]
Method = Annotated[str, typer.Option(help="gda, lw (the paper's), pca, pcawt or pcaws.")]
Dims = Annotated[int, typer.Option(help="Dimensions to keep, at most.")]
Ridge = Annotated[
    float | None, typer.Option(help="Share of the mean variance added before inverting.")
]
Power = Annotated[
    float, typer.Option(help="Signed power applied to descriptors first; 1: none, as the paper.")
]
PatchSize = Annotated[int, typer.Option(help="Side of the patches in pixels.")]
Side = Annotated[float, typer.Option(help="Side of a patch in units of a keypoint's sigma.")]

UseSide = Annotated[
    float | None,
    typer.Option(
        help="Side that the model is best used at with keypoints, for its card; default: --side "
        "if that is given.",
        show_default=False,
    ),
]

HeadKind = Annotated[
    str | None,
    typer.Option(
        "--head",
        metavar="mlp|linear",
        help="Train further with PyTorch: a hidden layer beside the projection, or the projection "
        "alone; default: neither.",
        show_default=False,
    ),
]
Hidden = Annotated[int, typer.Option(help="Units of the hidden layer.")]
Rank = Annotated[
    int | None,
    typer.Option(help="Numbers that the hidden layer sees of a descriptor; default: all."),
]
Loss = Annotated[str, typer.Option(help="softmax or hardest (HardNet's).")]
Steps = Annotated[
    int | None,
    typer.Option(help="Steps of training, at most; default: 2,000 (on a GPU 28,000)."),
]
Minutes = Annotated[float | None, typer.Option(help="Minutes of training, at most.")]
Device = Annotated[
    str,
    typer.Option(
        help="Where to compute: cpu, or with PyTorch cuda, cuda:1, ...; auto: on the CPU, and "
        "training on a GPU if there is one."
    ),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same model.")]
ContinueFrom = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", help="Train the head of this model further, instead of a new one."
    ),
]

PAPER = "polar+cartesian"


def _described_on(device: str) -> str:
    return "cpu" if device == "auto" else device


def _trained(
    head: str | None,
    hidden: int,
    rank: int | None,
    loss: str,
    steps: int | None,
    minutes: float | None,
    device: str,
    seed: int,
    continue_from: str | None,
) -> TrainedHead | None:
    """What the options on training say; None: no training."""
    start = None if continue_from is None else load_model(continue_from).effective_head()
    if head is None:
        if start is None and steps is None and minutes is None:
            return None
        if start is None:
            raise ValueError("--steps, --minutes: expected --head mlp or --head linear with them")
        head = "linear" if start.linear() is not None else "mlp"
    trained = TrainedHead(
        head, hidden, rank, steps, minutes, loss=loss, device=device, seed=seed, start=start
    )
    trained.check()
    trained.chosen_device()  # said before the work if it is not there
    return trained


def _learn(
    run: Callable[..., Learned],
    unit: str,
    output: Path,
    mkd: MKD,
    whitening: Whitening,
    cluster: str | None,
) -> None:
    """Check what can be checked first, learn with a progress bar, write, and report."""
    if output.suffix != ".safetensors":
        raise ValueError(f"--output: expected a name ending in .safetensors, got {output.name}")
    if not output.parent.is_dir():
        raise ValueError(f"--output: the folder {output.parent} does not exist")
    mkd.fit()
    whitening.check()
    if cluster is None:
        warm_up(mkd)
        with told(unit, "learning") as tell:
            learned = run(mkd, whitening, tell)
        learned.save(output)
    else:
        parts = output.with_name(f"{output.name}.parts")
        with resumable(), workers_at(cluster) as workers, told(unit, "learning") as tell:
            learned = run(mkd, whitening, tell, workers=workers, parts=parts)
            learned.save(output)
            shutil.rmtree(parts)
    for line in learned.report.lines():
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"written: {output}", highlight=False, soft_wrap=True)


@app.command("photos")
def _photos(
    context: typer.Context,
    photos: Annotated[Path, typer.Argument(help="Folder of photographs.")],
    output: Output,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Learn as this model was learned, but for options that are given: photo for "
            "mkdesc match, features and sfm, extended for patches.",
        ),
    ] = None,
    parametrization: Kernels = PAPER,
    method: Method = "gda",
    dims: Dims = 128,
    ridge: Ridge = None,
    power: Power = 0.75,
    patch_size: PatchSize = 64,
    side: Side = SIDE,
    use_side: UseSide = None,
    keypoints: Annotated[int, typer.Option(help="Keypoints per photograph, at most.")] = 400,
    views: Annotated[
        str, typer.Option(help="Strengths of the views of a keypoint, with spaces between.")
    ] = " ".join(VIEWS),
    head: HeadKind = None,
    hidden: Hidden = 512,
    rank: Rank = None,
    loss: Loss = "softmax",
    steps: Steps = None,
    minutes: Minutes = None,
    device: Device = "auto",
    seed: Seed = 0,
    continue_from: ContinueFrom = None,
    cluster: Cluster = None,
) -> None:
    """Learn from plain photographs: no labels, no reconstruction."""
    chosen: dict[str, Any] = {
        "parametrization": parametrization,
        "method": method,
        "dims": dims,
        "ridge": ridge,
        "power": power,
        "patch_size": patch_size,
        "side": side,
        "use_side": side if use_side is None and not _is_default(context, "side") else use_side,
        "keypoints": keypoints,
        "views": views,
        "head": head,
        "hidden": hidden,
        "rank": rank,
        "loss": loss,
    }
    if like is not None:
        known = _settings(like)
        if not _is_default(context, "side"):
            del known["use_side"]  # that of another side
        chosen |= {name: known[name] for name in known if _is_default(context, name)}
    recipe = Recipe(
        views=tuple(chosen["views"].split()),
        keypoints_per_photo=chosen["keypoints"],
        patch_size=chosen["patch_size"],
        side=chosen["side"],
    )
    trained = _trained(
        chosen["head"],
        chosen["hidden"],
        chosen["rank"],
        chosen["loss"],
        steps,
        minutes,
        device,
        seed,
        continue_from,
    )
    whitening = Whitening(
        chosen["method"], chosen["dims"], ridge=chosen["ridge"], power=chosen["power"]
    )
    _learn(
        lambda m, w, p, **who: sources.learn_photos(photos, m, w, p, recipe, seed, trained, **who),
        "photos",
        output,
        MKD(
            chosen["parametrization"],
            chosen["patch_size"],
            side=chosen["use_side"],
            **on_device(_described_on(device)),
        ),
        whitening,
        cluster,
    )


def _settings(model: str) -> dict[str, Any]:
    """How a model was learned from photographs, by the names of options."""
    card = read_card(model)
    learned = card.learned_from
    if not {"side", "views"} <= learned.keys():
        raise ValueError(f"--like: {model} was not learned from photographs")
    how = (
        {name: learned.get(name) for name in ("ridge", "power")}
        if card.method is None
        else card.params
    )
    return {
        "parametrization": card.parametrization,
        "method": card.method or learned["began_as"],
        "dims": card.dims,
        "ridge": how["ridge"],
        "power": how["power"],
        "head": learned.get("head"),
        "hidden": learned.get("hidden", 512),
        "rank": learned.get("rank"),
        "loss": learned.get("loss", "softmax"),
        "patch_size": card.patch_size,
        "side": learned["side"],
        "use_side": card.side,
        "keypoints": learned.get("keypoints", 400),  # cards did not say it, when it was always 400
        "views": learned["views"],
    }


def _is_default(context: typer.Context, name: str) -> bool:
    """Whether an option was left at its default."""
    source = context.get_parameter_source(name)
    return source is None or source.name == "DEFAULT"


@app.command("patches")
def _patches(
    file: Annotated[Path, typer.Argument(help="A .npz with arrays 'patches' and 'labels'.")],
    output: Output,
    parametrization: Kernels = PAPER,
    method: Method = "gda",
    dims: Dims = 128,
    ridge: Ridge = None,
    power: Power = 0.75,
    head: HeadKind = None,
    hidden: Hidden = 512,
    rank: Rank = None,
    loss: Loss = "softmax",
    steps: Steps = None,
    minutes: Minutes = None,
    device: Device = "auto",
    seed: Seed = 0,
    continue_from: ContinueFrom = None,
    cluster: Cluster = None,
) -> None:
    """Learn from labelled patches: those of equal labels match."""
    trained = _trained(head, hidden, rank, loss, steps, minutes, device, seed, continue_from)
    _learn(
        lambda m, w, p, **who: sources.learn_patches(file, m, w, p, trained, **who),
        "patches",
        output,
        MKD(parametrization, open_patches(file).size, **on_device(_described_on(device))),
        Whitening(method, dims, ridge=ridge, power=power),
        cluster,
    )


@app.command("phototourism")
def _phototourism(
    folder: Annotated[Path, typer.Argument(help="Sheets, info.txt and m50 files.")],
    output: Output,
    parametrization: Kernels = PAPER,
    method: Method = "gda",
    dims: Dims = 128,
    ridge: Ridge = None,
    power: Power = 0.75,
    pairs: Annotated[
        int | None, typer.Option(help="Which m50 file, by its number of pairs; the largest.")
    ] = None,
    head: HeadKind = None,
    hidden: Hidden = 512,
    rank: Rank = None,
    loss: Loss = "softmax",
    steps: Steps = None,
    minutes: Minutes = None,
    device: Device = "auto",
    seed: Seed = 0,
    continue_from: ContinueFrom = None,
    cluster: Cluster = None,
) -> None:
    """Learn from a subset in the Phototourism (UBC) layout."""
    trained = _trained(head, hidden, rank, loss, steps, minutes, device, seed, continue_from)
    _learn(
        lambda m, w, p, **who: sources.learn_phototourism(folder, m, w, p, pairs, trained, **who),
        "patches",
        output,
        MKD(parametrization, **on_device(_described_on(device))),
        Whitening(method, dims, ridge=ridge, power=power),
        cluster,
    )


@app.command("hpatches")
def _hpatches(
    root: Annotated[Path, typer.Argument(help="Folder of sequences of strips.")],
    output: Output,
    parametrization: Kernels = PAPER,
    method: Method = "gda",
    dims: Dims = 128,
    ridge: Ridge = None,
    power: Power = 0.75,
    patch_size: PatchSize = 64,
    split: Annotated[
        str | None, typer.Option(help="Learn from the training part of this split.")
    ] = None,
    splits: Annotated[Path | None, typer.Option(help="The splits.json of HPatches.")] = None,
    head: HeadKind = None,
    hidden: Hidden = 512,
    rank: Rank = None,
    loss: Loss = "softmax",
    steps: Steps = None,
    minutes: Minutes = None,
    device: Device = "auto",
    seed: Seed = 0,
    continue_from: ContinueFrom = None,
    cluster: Cluster = None,
) -> None:
    """Learn from HPatches strips: equal rows of a sequence match."""
    trained = _trained(head, hidden, rank, loss, steps, minutes, device, seed, continue_from)
    _learn(
        lambda m, w, p, **who: sources.learn_hpatches(
            root, m, w, p, split, splits, trained, **who
        ),
        "patches",
        output,
        MKD(parametrization, patch_size, resize=True, **on_device(_described_on(device))),
        Whitening(method, dims, ridge=ridge, power=power),
        cluster,
    )


@app.command("colmap")
def _colmap(
    model: Annotated[Path, typer.Argument(help="Folder of a sparse model, text or binary.")],
    images: Annotated[Path, typer.Argument(help="Folder of its photographs.")],
    output: Output,
    parametrization: Kernels = PAPER,
    method: Method = "gda",
    dims: Dims = 128,
    ridge: Ridge = None,
    power: Power = 0.75,
    patch_size: PatchSize = 64,
    side: Side = SIDE,
    head: HeadKind = None,
    hidden: Hidden = 512,
    rank: Rank = None,
    loss: Loss = "softmax",
    steps: Steps = None,
    minutes: Minutes = None,
    device: Device = "auto",
    seed: Seed = 0,
    continue_from: ContinueFrom = None,
    cluster: Cluster = None,
) -> None:
    """Learn from a COLMAP model: the observations of a 3-D point match."""
    trained = _trained(head, hidden, rank, loss, steps, minutes, device, seed, continue_from)
    _learn(
        lambda m, w, p, **who: sources.learn_colmap(model, images, m, w, p, side, trained, **who),
        "photos",
        output,
        MKD(parametrization, patch_size, **on_device(_described_on(device))),
        Whitening(method, dims, ridge=ridge, power=power),
        cluster,
    )

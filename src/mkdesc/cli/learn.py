"""``mkdesc learn``: a model from whatever its user owns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mkdesc._support.check import check_ending
from mkdesc._support.targets import check_target
from mkdesc.cli import learn_descriptor, learn_keypoints, learn_ratio
from mkdesc.cli.cluster import workers_at
from mkdesc.cli.learn_options import Learning, with_learning
from mkdesc.cli.options import is_default
from mkdesc.cli.progress import progress_bar, resumable, warm_up
from mkdesc.cli.teaching import print_comparison, print_report
from mkdesc.datasets.patch_files import open_patches
from mkdesc.descriptor import MKD
from mkdesc.features import Features
from mkdesc.images.frames import SIDE
from mkdesc.learn import Learned, sources
from mkdesc.learn.learner import work_folder
from mkdesc.learn.photos import VIEWS, Recipe
from mkdesc.learn.ratio import KEYPOINTS
from mkdesc.models import DEFAULT_MODEL, model_file, read_card
from mkdesc.models.files import OWN_MODEL

app = typer.Typer(
    help="Learn a model, or a detector, from your own data.",
    no_args_is_help=True,
)

Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="MODEL.safetensors", help="Where to write.")
]
PatchSize = Annotated[int, typer.Option(help="Side of the patches in pixels.")]
Side = Annotated[float, typer.Option(help="Side of a patch in units of a keypoint's sigma.")]


#: How keypoints of photographs are learned from, and the side that suits them in use, where one
#: square of each is looked at: the settings of ``--like photo``.
ONE_SQUARE = {"side": 24.0, "keypoints": 1000, "views": " ".join(VIEWS)}
USED_SIDE = 20.0


def _learn(
    run: Callable[..., Learned],
    unit: str,
    output: Path,
    mkd: MKD,
    how: Learning,
    reads: Sequence[Path | None],
) -> Learned:
    """Check what can be checked first, learn with a progress bar, write, and report.

    ``run`` is called by name with a descriptor, a whitening, a callback for the progress,
    how to train further and, on a cluster, with who works and where. ``reads`` is never
    written over.
    """
    check_ending("--output", output, [".safetensors"])
    check_target(output, (*reads, model_file(how.start)), OWN_MODEL, how.overwrite)
    whitening, trained = how.whitening(), how.trained()
    mkd.fit()
    whitening.check()
    if how.cluster is None:
        warm_up(mkd)
        with progress_bar(unit, "learning") as progress:
            learned = run(mkd=mkd, whitening=whitening, progress=progress, trained=trained)
        learned.save(output, overwrite=how.overwrite)
    else:
        parts = output.with_name(f"{output.name}.parts")
        with (
            resumable(),
            workers_at(how.cluster) as workers,
            progress_bar(unit, "learning") as progress,
        ):
            given = {"trained": trained, "workers": workers, "parts": parts}
            learned = run(mkd=mkd, whitening=whitening, progress=progress, **given)
            learned.save(output, overwrite=how.overwrite)
            work_folder(parts).discard()
    print_report(learned, output)
    return learned


@app.command("photos")
@with_learning
def _photos(
    context: typer.Context,
    photos: Annotated[Path, typer.Argument(help="Folder of photographs.")],
    output: Output,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Learn with the settings of this model, except for options given here: "
            "photo for mkdesc match, features and sfm; extended for patches.",
        ),
    ] = None,
    patch_size: PatchSize = 64,
    side: Side = SIDE,
    use_side: Annotated[
        float | None,
        typer.Option(
            help="Side, in sigmas, at which to use the model, for its card; default: "
            "--side if given.",
            show_default=False,
        ),
    ] = None,
    keypoints: Annotated[int, typer.Option(help="Keypoints per photograph, at most.")] = 400,
    views: Annotated[
        str, typer.Option(help="Strength of each view of a keypoint, separated by spaces.")
    ] = " ".join(VIEWS),
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Learn from all photographs. Otherwise some are held out, to compare the model "
            "with the bundled one.",
        ),
    ] = False,
    *,
    how: Learning,
) -> None:
    """Learn a model from plain photographs: no labels, no PyTorch."""
    own: dict[str, Any] = {
        "patch_size": patch_size,
        "side": side,
        "use_side": side if use_side is None and not is_default(context, "side") else use_side,
        "keypoints": keypoints,
        "views": views,
    }
    if like is not None:
        known = _settings(like)
        if not is_default(context, "side"):
            del known["use_side"]  # that of another side
        known = {name: value for name, value in known.items() if is_default(context, name)}
        shared = {field.name for field in fields(how)}
        how = replace(how, **{name: known[name] for name in known if name in shared})
        own |= {name: known[name] for name in known if name in own}
    recipe = Recipe(
        views=tuple(own["views"].split()),
        keypoints_per_photo=own["keypoints"],
        patch_size=own["patch_size"],
        side=own["side"],
    )
    learned = _learn(
        partial(sources.learn_photos, photos, recipe=recipe, seed=how.seed, hold_out=not every),
        "photos",
        output,
        how.mkd(own["patch_size"], side=own["use_side"]),
        how,
        (photos, model_file(like)),
    )
    if not every:
        other = like or DEFAULT_MODEL
        print_comparison(
            Features(KEYPOINTS, model=output),
            Features(KEYPOINTS, model=other),
            other,
            learned.held_out,
            how.seed,
            "learn from more photographs; with PyTorch, `mkdesc learn descriptor --from photo` "
            "trains the bundled model further",
        )


def _settings(model: str) -> dict[str, Any]:
    """How a model was learned from photographs, by the names of options."""
    card = read_card(model)
    learned = card.learned_from
    if "recipe" in learned:  # by `learn descriptor`: its kernels, for one square
        learned = ONE_SQUARE | learned["head"] | {"head": None}
        card = replace(card, method="gda", params=learned, side=USED_SIDE)
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


@app.command("patches")
@with_learning
def _patches(
    file: Annotated[Path, typer.Argument(help="A .npz with arrays 'patches' and 'labels'.")],
    output: Output,
    *,
    how: Learning,
) -> None:
    """Learn a model from patches with labels: equal labels match."""
    _learn(
        partial(sources.learn_patches, file),
        "patches",
        output,
        how.mkd(open_patches(file).size),
        how,
        (file,),
    )


@app.command("phototourism")
@with_learning
def _phototourism(
    folder: Annotated[Path, typer.Argument(help="Sheets, info.txt and m50 files.")],
    output: Output,
    pairs: Annotated[
        int | None,
        typer.Option(help="Which m50 file, by its number of pairs; default: the largest."),
    ] = None,
    *,
    how: Learning,
) -> None:
    """Learn a model from a subset in the Phototourism (UBC) layout."""
    _learn(
        partial(sources.learn_phototourism, folder, pairs=pairs),
        "patches",
        output,
        how.mkd(),
        how,
        (folder,),
    )


@app.command("hpatches")
@with_learning
def _hpatches(
    root: Annotated[Path, typer.Argument(help="Folder of sequences of strips.")],
    output: Output,
    patch_size: PatchSize = 64,
    split: Annotated[
        str | None, typer.Option(help="Learn from the training part of this split.")
    ] = None,
    splits: Annotated[Path | None, typer.Option(help="The splits.json of HPatches.")] = None,
    *,
    how: Learning,
) -> None:
    """Learn a model from HPatches strips: equal rows match."""
    _learn(
        partial(sources.learn_hpatches, root, split=split, splits_file=splits),
        "patches",
        output,
        how.mkd(patch_size, resize=True),
        how,
        (root, splits),
    )


@app.command("colmap")
@with_learning
def _colmap(
    model: Annotated[Path, typer.Argument(help="Folder of a sparse model, text or binary.")],
    images: Annotated[Path, typer.Argument(help="Folder of its photographs.")],
    output: Output,
    patch_size: PatchSize = 64,
    side: Side = SIDE,
    *,
    how: Learning,
) -> None:
    """Learn a model from what a COLMAP reconstruction matched."""
    _learn(
        partial(sources.learn_colmap, model, images, side=side),
        "photos",
        output,
        how.mkd(patch_size),
        how,
        (model, images),
    )


app.command("descriptor")(learn_descriptor.command)
app.command("keypoints")(learn_keypoints.command)
app.command("ratio")(learn_ratio.command)

"""``mkdesc learn ratio``: what to put where SIFT's 0.75 stood, into the card of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.check import check_ending
from mkdesc._support.targets import check_target
from mkdesc.cli.options import Overwrite
from mkdesc.cli.progress import progress_bar
from mkdesc.learn.ratio import FEWEST, calibrated_ratio
from mkdesc.models import load_model, model_file, read_card, save_model
from mkdesc.models.files import OWN_MODEL


def command(
    model: Annotated[str, typer.Argument(help="Bundled model or model file.")],
    photos: Annotated[Path, typer.Argument(help="Folder of photographs.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="MINE.safetensors",
            help="Write the model with this ratio in its card; default: only print it.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same views.")] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Find the ratio of Lowe's test that suits a model.

    Each photograph is matched with a warped copy of itself. The best ratio has the largest F1
    score (precision and recall of mutual nearest neighbours).
    """
    card = read_card(model)
    if output is not None:
        check_ending("--output", output, [".safetensors"])
        check_target(output, (photos, model_file(model)), OWN_MODEL, overwrite)
    with progress_bar("photos", "matching views") as progress:
        found = calibrated_ratio(model, photos, seed=seed, progress=progress)
    if found is None:
        raise ValueError(f"{photos}: too little to match; fewer than {FEWEST} matches are right")
    print(
        f"ratio {found.ratio:g}: {found.precision:.1%} of the matches it keeps are right, and it "
        f"keeps {found.recall:.1%} of the right ones ({found.matches:,} mutual neighbours)"
    )
    if output is not None:
        calibrated = load_model(model).set_params(ratio=found.ratio)
        save_model(calibrated, output, card.learned_from, overwrite=overwrite)
        print(f"written: {output}")

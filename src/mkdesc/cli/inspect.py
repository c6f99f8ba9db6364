"""``mkdesc inspect``: why two patches are alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.check import check_not_both
from mkdesc.cli.options import Overwrite
from mkdesc.visual.inspection_figure import MAX_PIXELS


def command(
    a: Annotated[Path, typer.Argument(metavar="A", help="Image file of a patch.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PICTURE", help="Picture to write: png, pdf or svg."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Bundled model or model file; default: extended.", show_default=False),
    ] = None,
    parametrization: Annotated[
        str | None, typer.Option(help="Instead of a model: the raw descriptor of these kernels.")
    ] = None,
    max_pixels: Annotated[int, typer.Option(help="Refuse larger images.")] = MAX_PIXELS,
    overwrite: Overwrite = False,
) -> None:
    """Show how similar two patches are, and which pixels decide."""
    from mkdesc.descriptor import MKD
    from mkdesc.kernels.parametrization import as_parametrization
    from mkdesc.models import PATCH_MODEL, model_file
    from mkdesc.visual.inspection_figure import inspect_pair, inspection_figure, read_patch
    from mkdesc.visual.plotting import check_output, write_figure
    from mkdesc.visual.typical import typical_scores
    from mkdesc.visual.whitenings import load_whitening

    check_not_both(**{"--model": model, "--parametrization": parametrization})
    if output is not None:
        check_output(output, (a, b, model_file(model)), overwrite)
    if parametrization is None:
        name = model or PATCH_MODEL
        mkd = load_whitening(name)
    else:
        mkd, name = MKD(as_parametrization(parametrization)), f"{parametrization}, raw"
    found = inspect_pair(read_patch(a, max_pixels), read_patch(b, max_pixels), mkd)
    summary = f"similarity {found.score:.4f} ({name})"
    print(summary)
    for product, score in found.products.items():
        print(f"raw {product}: {score:.4f}")
    usual = typical_scores(mkd)
    print(
        f"usual for it: {usual.matches} of patches that match, {usual.others} of others "
        "(median, and nine of ten; keypoints of a photograph and of a changed copy)"
    )
    if output is not None:
        names = (a.name, b.name)
        title = f"{summary}\nusual: {usual.matches} if they match, {usual.others} if not"
        write_figure(inspection_figure(found, names, title), output, overwrite=overwrite)
        print(f"written: {output}")

"""``mkdesc learn``: a model from whatever its user owns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mkdesc.cli.progress import console, progress, warm_up
from mkdesc.descriptor import MKD
from mkdesc.learn.learner import TrainingBlock, learn_model, learned_from
from mkdesc.models import save_model
from mkdesc.whitening import Whitening

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
Method = Annotated[
    str, typer.Option(help="lw, gda (both need matching pairs), pca, pcawt or pcaws.")
]
Dims = Annotated[int, typer.Option(help="Dimensions to keep.")]
Ridge = Annotated[
    float | None, typer.Option(help="Share of the mean variance added to the diagonal.")
]
PatchSize = Annotated[int, typer.Option(help="Side of the patches in pixels.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]

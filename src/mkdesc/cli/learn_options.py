"""The options that every source of ``mkdesc learn`` has, in one place."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Annotated, Any

import typer

from mkdesc.cli.options import Cluster, Limit, Overwrite, on_device
from mkdesc.descriptor import MKD
from mkdesc.heads.whitening import Whitening
from mkdesc.learn.trained_head import TrainedHead
from mkdesc.models import load_model


@dataclass(frozen=True)
class Learning:
    """What is learned, and how; each field is an option."""

    parametrization: Annotated[str, typer.Option(help="Kernels, by name or as products.")] = (
        "polar+cartesian"
    )
    method: Annotated[str, typer.Option(help="gda, lw (the paper's), pca, pcawt or pcaws.")] = (
        "gda"
    )
    dims: Annotated[int, typer.Option(help="Dimensions to keep, at most.")] = 128
    ridge: Annotated[
        float | None, typer.Option(help="Share of the mean variance added before inverting.")
    ] = None
    power: Annotated[
        float,
        typer.Option(help="Signed power applied to descriptors first; 1: none, as in the paper."),
    ] = 0.75
    head: Annotated[
        str | None,
        typer.Option(
            metavar="mlp|linear",
            help="Train further with PyTorch: a hidden layer beside the projection, or the "
            "projection alone; default: neither.",
            show_default=False,
        ),
    ] = None
    hidden: Annotated[int, typer.Option(help="Units of the hidden layer.")] = 512
    rank: Annotated[
        int | None,
        typer.Option(help="How many dimensions the hidden layer sees; default: all."),
    ] = None
    loss: Annotated[str, typer.Option(help="softmax or hardest (HardNet's).")] = "softmax"
    steps: Annotated[
        int | None,
        typer.Option(help="Training steps, at most; default: 2,000 (28,000 on a GPU)."),
    ] = None
    batch: Annotated[
        int | None,
        typer.Option(help="Pairs per training step; default: 1,024 (2,048 on a GPU)."),
    ] = None
    limit: Limit = None
    device: Annotated[
        str,
        typer.Option(
            help="Where to compute: cpu, or with PyTorch cuda, cuda:1, ...; auto: on the CPU, "
            "and training on a GPU if there is one."
        ),
    ] = "auto"
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="MODEL", help="Train the head of this model instead of a new one."
        ),
    ] = None
    cluster: Cluster = None
    overwrite: Overwrite = False

    def mkd(self, patch_size: int = 64, **more: Any) -> MKD:
        """The descriptor, without what is to be learned."""
        where = "cpu" if self.device == "auto" else self.device
        return MKD(self.parametrization, patch_size, **more, **on_device(where))

    def whitening(self) -> Whitening:
        """The whitening to learn."""
        return Whitening(self.method, self.dims, ridge=self.ridge, power=self.power)

    def trained(self) -> TrainedHead | None:
        """What the options on training say; None: no training."""
        head, start = self.head, None
        if self.start is not None:
            start = load_model(self.start).effective_head()
        if head is None:
            if start is None and self.steps is None and self.limit is None:
                return None
            if start is None:
                raise ValueError("--steps, --limit: need --head mlp or --head linear")
            head = "linear" if start.linear() is not None else "mlp"
        trained = TrainedHead(
            head,
            self.hidden,
            self.rank,
            self.steps,
            self.limit,
            self.batch,
            loss=self.loss,
            device=self.device,
            seed=self.seed,
            start=start,
        )
        trained.check()
        trained.chosen_device()  # said before the work if it is not there
        return trained


def with_learning(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose last parameter, ``how``, becomes the options of :class:`Learning`."""
    own = inspect.signature(command, eval_str=True)
    shared = inspect.signature(Learning, eval_str=True)

    @wraps(command)
    def run(**given: Any) -> None:
        how = Learning(**{field.name: given.pop(field.name) for field in fields(Learning)})
        command(**given, how=how)

    # typer asks for the signature.
    run.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in (*own.parameters.values(), *shared.parameters.values())
            if parameter.name != "how"
        ]
    )
    return run

"""``mkdesc models``: the bundled models and the cards of model files."""

from __future__ import annotations

from typing import Annotated

import typer

from mkdesc.models import bundled_models, read_card

app = typer.Typer(help="List the bundled models, or show the card of one.")


@app.callback(invoke_without_command=True)
def _list(context: typer.Context) -> None:
    if context.invoked_subcommand is not None:
        return
    for name in bundled_models():
        card = read_card(name)
        source = card.learned_from.get("source", "unknown data")
        print(
            f"{name:<12} {card.dims:>4} dimensions, {card.patch_size} px, "
            f"{card.method or 'a head of its own'}, {card.parametrization}, learned from {source}"
        )


@app.command("show")
def _show(
    model: Annotated[str, typer.Argument(help="Name of a bundled model, or a model file.")],
) -> None:
    """Print the card of a model."""
    print("\n".join(read_card(model).lines()))

"""``mkdesc models``: the bundled models, what to use each for, and the cards of model files."""

from __future__ import annotations

from typing import Annotated

import typer

from mkdesc.models import Card, read_card

#: What to use each bundled model for, those that most people want first.
USES = {
    "photo": "keypoints of photographs: what Features, match, index and sfm use",
    "photo-net": "keypoints of photographs: more right matches in 1.3 times the time",
    "photo-64": "keypoints of photographs: photo in half the space",
    "photo-bits": "keypoints of photographs: 256 bits each, with output bits",
    "extended": "patches: what describe uses",
    "extended-net": "patches: the most accurate, in 2.5 times the time",
    "extended-64": "patches: extended in half the space",
    "paper": "patches: the paper's descriptor of 2017, for comparison",
    "paper-32px": "patches of 32 px: the same for these",
    "paper-64": "patches: paper in half the space",
    "polar": "patches: the paper's polar kernel alone",
}


def command(
    model: Annotated[
        str | None,
        typer.Argument(help="Bundled model or model file; default: list the bundled models."),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Also show kernels, head and how it was learned."),
    ] = False,
) -> None:
    """List the models and what each is for, or show the card of one."""
    if model is not None:
        card = read_card(model)
        print("\n".join(card.lines() if verbose else _facts(card, USES.get(model))))
        return
    for name, use in USES.items():
        print(f"{name:<12}  {use}")
        if verbose:
            card = read_card(name)
            squares = f"{len(card.side)} squares of " if isinstance(card.side, list) else ""
            print(
                f"    {card.dims} numbers, {squares}{card.patch_size} px, "
                f"{card.method or 'a head of its own'}, {card.parametrization}, "
                f"learned from {card.learned_from.get('source', 'unknown data')}"
            )


def _facts(card: Card, use: str | None) -> list[str]:
    """What most people want to know of a model."""
    learned = card.learned_from
    count, began = learned.get("photographs"), learned.get("began_as")
    facts = {
        "for": use or ("patches" if card.side is None else "keypoints of photographs"),
        "descriptors": f"{card.dims} numbers each",
        "looks at": f"patches of {card.patch_size} px"
        + ("" if card.side is None else f"; of a keypoint, {card.sides_in_words('')}"),
        "ratio test": "not known: mkdesc learn ratio" if card.ratio is None else f"{card.ratio:g}",
        "learned from": learned.get("source", "unknown data")
        + (f", {count} of them" if count else "")
        + ("" if began in (None, "a whitening") else f"; began as {began}"),
        "created": card.created,
        "more": "--verbose",
    }
    return [f"{name:<12}  {value}" for name, value in facts.items()]

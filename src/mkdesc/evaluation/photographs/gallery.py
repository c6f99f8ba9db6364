"""Pictures of a method's best, median and worst pairs, lines coloured by error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mkdesc.evaluation.photographs.extracting import PhotographFile, read_photograph
from mkdesc.evaluation.photographs.scoring import (
    Floats,
    Judged,
    Matched,
    P,
    files_of,
    match_photographs,
)
from mkdesc.evaluation.report.page import Picture
from mkdesc.evaluation.report.table import short_names
from mkdesc.images.drawing import svg_of_matches
from mkdesc.images.resampling import reduced

#: Pixels up to which an error has a colour, and the colours: blue, green, yellow, and red beyond.
STEPS = (1.0, 3.0, 10.0)
COLOURS = ("#2b7bff", "#1fbf5f", "#ffc107", "#ff3b30")

#: Pixels of the longer side of photographs in pictures.
SHOWN = 480

_SQUARE = (
    '<svg width="14" height="14" aria-hidden="true"><rect width="14" height="14" fill="{}"/></svg>'
)
_WORDS = (*(f"up to {step:g} px off" for step in STEPS), f"more than {STEPS[-1]:g} px off")
#: What the colours mean, for the page.
KEY = (
    "<ul class='legend'>"
    + "".join(
        f"<li>{_SQUARE.format(colour)} {words}</li>"
        for colour, words in zip(COLOURS, _WORDS, strict=True)
    )
    + "</ul>"
)


def draw_gallery(
    judged: Judged[Any],
    pairs: Sequence[P],
    ranks: dict[str, list[float]],
    errors: Callable[[P, Matched], Floats],
    unit: str,
) -> list[Picture]:
    """Draw three pairs of each method.

    Parameters
    ----------
    judged
        What came of the run; its cache must be there still.
    pairs
        Those that are reported.
    ranks
        By method: the error of each pair, by which they are the best or the worst; infinite: no
        estimate.
    errors
        Given a pair and its matches: how many pixels each is off, (K,).
    unit
        Of the ranks, for the captions.
    """
    labels = short_names(ranks)
    pictures = []
    for method, own in ranks.items():
        order = np.argsort(own, kind="stable")
        words = {order[-1]: "worst", order[len(order) // 2]: "median", order[0]: "best"}
        for number, word in reversed(words.items()):
            pair = pairs[number]
            files = files_of(pair, judged.files)
            matched = match_photographs(judged.settings, method, files)
            off = errors(pair, matched)
            result = f"{own[number]:.2f} {unit} off" if np.isfinite(own[number]) else "no estimate"
            caption = f"{word}: {pair.name}, {result}, {len(off)} matches"
            drawn = _drawn(files, matched.points, off, judged.settings.options.max_size)
            pictures.append(Picture(labels[method], caption, drawn))
    return pictures


def _drawn(
    files: tuple[PhotographFile, PhotographFile],
    xy: tuple[Floats, Floats],
    off: Floats,
    max_size: int | None,
) -> str:
    grays, positions = [], []
    for file, points in zip(files, xy, strict=True):
        gray = read_photograph(file, max_size).gray
        small = reduced(gray, SHOWN)
        scale = np.divide(small.shape, gray.shape)[::-1]
        grays.append(small)
        positions.append((points + 0.5) * scale - 0.5)
    classes = np.searchsorted(STEPS, np.nan_to_num(off, nan=np.inf))
    palette = np.array([[int(one[i : i + 2], 16) for i in (5, 3, 1)] for one in COLOURS])
    return svg_of_matches(
        grays[0], grays[1], positions[0], positions[1], colours=palette[classes], quality=75
    )

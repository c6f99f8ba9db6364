"""Pictures of a method's best, median and worst pairs, lines coloured by error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc.evaluation.photographs.extracting import Extraction, FoundFeatures, read_photograph
from mkdesc.evaluation.photographs.scoring import (
    P,
    PhotographOptions,
    match_photographs,
    photograph_names,
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
    output: str | Path,
    pairs: Sequence[P],
    ranks: dict[str, list[float]],
    errors: Callable[
        [P, tuple[FoundFeatures, FoundFeatures], NDArray[np.int64]], NDArray[np.float64]
    ],
    options: PhotographOptions,
    unit: str,
) -> list[Picture]:
    """Draw three pairs of each method.

    Parameters
    ----------
    output
        The run folder, with the features of all methods.
    pairs
        Those that were judged.
    ranks
        By method: the error of each pair, by which they are the best or the worst; infinite: no
        estimate.
    errors
        Given a pair, the features of both photographs and the matches (K, 2): how many pixels
        each is off, (K,).
    options
        What was asked of the methods.
    unit
        Of the ranks, for the captions.
    """
    settings = Extraction(Path(output, "cache").absolute(), options.keypoints, options.max_size)
    names = photograph_names(pairs)
    labels = short_names(ranks)
    pictures = []
    for method, own in ranks.items():
        order = np.argsort(own, kind="stable")
        chosen = {"best": order[0], "median": order[len(order) // 2], "worst": order[-1]}
        drawn = set()
        for word, number in chosen.items():
            if number in drawn:
                continue
            drawn.add(number)
            pair = pairs[number]
            a, b = (settings.load(method, names[path]) for path in pair.images)
            matches = match_photographs(method, a, b, options.ratio)
            off = errors(pair, (a, b), matches)
            result = f"{own[number]:.2f} {unit} off" if np.isfinite(own[number]) else "no estimate"
            caption = f"{word}: {pair.name}, {result}, {len(matches)} matches"
            xy = a.features.xy[matches[:, 0]], b.features.xy[matches[:, 1]]
            pictures.append(
                Picture(labels[method], caption, _drawn(pair.images, xy, off, options))
            )
    return pictures


def _drawn(
    images: tuple[Path, Path],
    xy: tuple[NDArray[np.float64], NDArray[np.float64]],
    off: NDArray[np.float64],
    options: PhotographOptions,
) -> str:
    grays, positions = [], []
    for path, points in zip(images, xy, strict=True):
        gray = read_photograph(path, path.name, options.max_size).gray
        small = reduced(gray, SHOWN)
        scale = np.divide(small.shape, gray.shape)[::-1]
        grays.append(small)
        positions.append((points + 0.5) * scale - 0.5)
    classes = np.searchsorted(STEPS, np.nan_to_num(off, nan=np.inf))
    palette = np.array([[int(one[i : i + 2], 16) for i in (5, 3, 1)] for one in COLOURS])
    return svg_of_matches(
        grays[0], grays[1], positions[0], positions[1], colours=palette[classes], quality=75
    )

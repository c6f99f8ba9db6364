"""Contact sheets: a query, and what was found, with the matches drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc.features.matches import Box
from mkdesc.images.canvas import Canvas, text_width, write_text
from mkdesc.images.drawing import bright_colours, spread_out
from mkdesc.images.reading import MAX_PIXELS, read_gray
from mkdesc.images.resampling import resized
from mkdesc.retrieval.agreement import Agreement
from mkdesc.retrieval.index import Found

#: Pixels: height of all images, most of their width, the space around them, the text below.
HEIGHT, WIDTH, GAP, TEXT = 240, 480, 10, 26
#: Pixels of a row of the sheet, and matches drawn, at most.
WIDEST, LINES = 1640, 60
#: Size of letters, and colours, blue first.
_LETTERS = 12
_INK, _FRAME = (40, 40, 40), (40, 160, 40)


def contact_sheet(
    query: Path,
    found: Sequence[Found],
    files: Mapping[str, Path],
    box: Box | None = None,
    max_pixels: int = MAX_PIXELS,
    *,
    as_stored: bool = False,
) -> NDArray[np.uint8]:
    """A picture (H, W, 3), blue first: each image found beside the query, the best first.

    Matches that agree are lines between the two; images without any are shown alone.

    Parameters
    ----------
    query
        File of the query.
    found
        What :meth:`mkdesc.Index.find` gave.
    files
        Of the images found.
    box
        The part of the query that was looked for; it is framed.
    max_pixels
        Larger files are refused.
    as_stored
        Whether images were described as files store them, not turned as their EXIF data say.
    """
    own = read_gray(query, max_pixels, as_stored=as_stored)
    first = _framed(_small(own), box, _scale(own.shape))
    tiles = [_labelled(first, "query:", query.name)]
    for rank, one in enumerate(found, 1):
        image = read_gray(files[one.name], max_pixels, as_stored=as_stored)
        unverified = one.agreement is None
        seen = f"similarity {one.similarity:.3f}" if unverified else f"{one.inliers} matches agree"
        note = f"{rank}  {seen}"
        tile = _small(image)
        if one.agreement is not None and one.inliers:
            tile = _joined(first, tile, one.agreement, own.shape, image.shape)
        tiles.append(_labelled(tile, note, one.name))
    return _rows(tiles)


def _scale(shape: tuple[int, ...]) -> float:
    return min(HEIGHT / shape[0], WIDTH / shape[1])


def _small(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An image (H, W) as colours (HEIGHT, w, 3); a wide one has white below it."""
    small = resized(image, _scale(image.shape))
    tile = np.full((HEIGHT, small.shape[1], 3), 255, np.uint8)
    tile[: len(small)] = small[..., None]
    return tile


def _framed(tile: NDArray[np.uint8], box: Box | None, scale: float) -> NDArray[np.uint8]:
    if box is not None:
        left, top, right, bottom = (edge * scale for edge in box)
        corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
        canvas = Canvas(tile)
        for start, end in pairwise([*corners, corners[0]]):
            canvas.line(start, end, _FRAME, 2)
        return canvas.picture()
    return tile


def _labelled(tile: NDArray[np.uint8], note: str, name: str) -> NDArray[np.uint8]:
    """A tile with text below; it is made as wide as that, and a long name loses its beginning."""
    plain = name.encode("ascii", "replace").decode()
    text, most = f"{note}  {plain}", max(WIDTH, tile.shape[1])
    while (width := text_width(text, _LETTERS) + 4) > most and plain:
        plain = plain[1:]
        text = f"{note}  ...{plain}"
    tall = np.full((HEIGHT + TEXT, max(width, tile.shape[1]), 3), 255, np.uint8)
    tall[:HEIGHT, : tile.shape[1]] = tile
    write_text(tall, text, (2, HEIGHT + 16), _LETTERS, _INK)
    return tall


def _joined(
    query: NDArray[np.uint8],
    tile: NDArray[np.uint8],
    agreement: Agreement,
    own: tuple[int, ...],
    other: tuple[int, ...],
) -> NDArray[np.uint8]:
    """The query and what was found side by side, with lines between matched positions."""
    gap = np.full((HEIGHT, GAP // 2, 3), 255, np.uint8)
    both = np.concatenate([query, gap, tile], axis=1)
    here = agreement.here * _scale(own)
    there = agreement.there * _scale(other) + [query.shape[1] + gap.shape[1], 0]
    chosen = spread_out(here, LINES)
    canvas = Canvas(both)
    colours = bright_colours(chosen / max(len(here), 1))
    for colour, start, end in zip(colours, here[chosen], there[chosen], strict=True):
        canvas.line(start, end, colour, opacity=0.6)
        for position in (start, end):
            canvas.disc(position, 2, colour)
    return canvas.picture()


def _rows(tiles: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Tiles beside and below each other."""
    widest = max(WIDEST, *(tile.shape[1] + GAP for tile in tiles))
    rows: list[list[NDArray[np.uint8]]] = [[]]
    for tile in tiles:
        used = sum(one.shape[1] + GAP for one in rows[-1])
        if rows[-1] and used + tile.shape[1] + GAP > widest:
            rows.append([])
        rows[-1].append(tile)
    width = max(sum(tile.shape[1] + GAP for tile in row) for row in rows) + GAP
    sheet = np.full((len(rows) * (HEIGHT + TEXT + GAP) + GAP, width, 3), 255, np.uint8)
    for number, row in enumerate(rows):
        top, left = GAP + number * (HEIGHT + TEXT + GAP), GAP
        for tile in row:
            sheet[top : top + len(tile), left : left + tile.shape[1]] = tile
            left += tile.shape[1] + GAP
    return sheet

"""Contact sheets: a query, and what was found, with the matches drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc.features.matches import Box
from mkdesc.images.drawing import spread_out
from mkdesc.images.reading import MAX_PIXELS, opencv, read_gray
from mkdesc.retrieval.agreement import Agreement
from mkdesc.retrieval.index import Found

#: Pixels: height of all images, most of their width, the space around them, the text below.
HEIGHT, WIDTH, GAP, TEXT = 240, 480, 10, 26
#: Pixels of a row of the sheet, and matches drawn, at most.
WIDEST, LINES = 1640, 60
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
    cv2 = opencv()
    scale = _scale(image.shape)
    size = [max(1, round(side * scale)) for side in image.shape[1::-1]]
    tile = np.full((HEIGHT, size[0], 3), 255, np.uint8)
    tile[: size[1]] = cv2.resize(image, size, interpolation=cv2.INTER_AREA)[..., None]
    return tile


def _framed(tile: NDArray[np.uint8], box: Box | None, scale: float) -> NDArray[np.uint8]:
    if box is not None:
        left, top, right, bottom = (round(edge * scale) for edge in box)
        opencv().rectangle(tile, (left, top), (right, bottom), _FRAME, 2)
    return tile


def _labelled(tile: NDArray[np.uint8], note: str, name: str) -> NDArray[np.uint8]:
    """A tile with text below; it is made as wide as that, and a long name loses its beginning."""
    cv2 = opencv()
    font: tuple[int, float] = (cv2.FONT_HERSHEY_SIMPLEX, 0.4)
    plain = name.encode("ascii", "replace").decode()
    text, most = f"{note}  {plain}", max(WIDTH, tile.shape[1])
    while (width := cv2.getTextSize(text, *font, 1)[0][0] + 4) > most and plain:
        plain = plain[1:]
        text = f"{note}  ...{plain}"
    tall = np.full((HEIGHT + TEXT, max(width, tile.shape[1]), 3), 255, np.uint8)
    tall[:HEIGHT, : tile.shape[1]] = tile
    cv2.putText(tall, text, (2, HEIGHT + 16), *font, _INK, 1, cv2.LINE_AA)
    return tall


def _joined(
    query: NDArray[np.uint8],
    tile: NDArray[np.uint8],
    agreement: Agreement,
    own: tuple[int, ...],
    other: tuple[int, ...],
) -> NDArray[np.uint8]:
    """The query and what was found side by side, with lines between matched positions."""
    cv2 = opencv()
    gap = np.full((HEIGHT, GAP // 2, 3), 255, np.uint8)
    both = np.concatenate([query, gap, tile], axis=1)
    here = agreement.here * _scale(own)
    there = agreement.there * _scale(other) + [query.shape[1] + gap.shape[1], 0]
    chosen = spread_out(here, LINES)
    lines = both.copy()
    for number, start, end in zip(chosen, here[chosen], there[chosen], strict=True):
        points = [np.rint(position).astype(int).tolist() for position in (start, end)]
        hue = np.array([[[180 * number // len(here), 220, 235]]], np.uint8)
        colour = cv2.cvtColor(hue, cv2.COLOR_HSV2BGR)[0, 0].tolist()
        cv2.line(lines, points[0], points[1], colour, 1, cv2.LINE_AA)
        for position in points:
            cv2.circle(both, position, 2, colour, -1, cv2.LINE_AA)
    mixed: NDArray[np.uint8] = cv2.addWeighted(lines, 0.6, both, 0.4, 0)
    return mixed


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

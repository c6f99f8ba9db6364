"""Contact sheets: a query, and what was found, with the matches drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.reading import MAX_PIXELS, opencv, read_gray
from mkdesc.retrieval.index import Box, Found

__all__ = ["contact_sheet"]

#: Pixels of the longer side of an image, of the space around it, and of the text below it.
LONGEST, GAP, TEXT = 300, 10, 40
#: Matches drawn at most.
LINES = 60
_INK, _FRAME = (40, 40, 40), (40, 160, 40)


def contact_sheet(
    query: Path,
    found: Sequence[Found],
    files: Mapping[str, Path],
    box: Box | None = None,
    max_pixels: int = MAX_PIXELS,
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
    """
    own = read_gray(query, max_pixels, as_stored=True)
    first = _tile(own, f"query: {query.name}", box)
    tiles = [first]
    for rank, one in enumerate(found, 1):
        image = read_gray(files[one.name], max_pixels, as_stored=True)
        note = f"{rank}  {one.similarity:.3f}"
        if one.agreement is not None:
            note += f"  {one.inliers} matches"
        tile = _tile(image, f"{note}  {one.name}")
        if one.inliers:
            tile = _joined(first, tile, one, own.shape, image.shape)
        tiles.append(tile)
    return _rows(tiles)


def _scale(shape: tuple[int, ...]) -> float:
    return LONGEST / max(shape)


def _tile(image: NDArray[np.uint8], text: str, box: Box | None = None) -> NDArray[np.uint8]:
    """An image in a square, with text below."""
    cv2 = opencv()
    scale = _scale(image.shape)
    size = [max(1, round(side * scale)) for side in image.shape[1::-1]]
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    tile = np.full((LONGEST + TEXT, LONGEST, 3), 255, np.uint8)
    tile[: small.shape[0], : small.shape[1]] = small[..., None]
    if box is not None:
        left, top, right, bottom = (round(side * scale) for side in box)
        cv2.rectangle(tile, (left, top), (right, bottom), _FRAME, 2)
    plain = text.encode("ascii", "replace").decode()
    cv2.putText(tile, plain, (2, LONGEST + 16), cv2.FONT_HERSHEY_SIMPLEX, 0.4, _INK, 1, 16)
    return tile


def _joined(
    query: NDArray[np.uint8],
    tile: NDArray[np.uint8],
    found: Found,
    own: tuple[int, ...],
    other: tuple[int, ...],
) -> NDArray[np.uint8]:
    """The query and what was found side by side, with lines between matched places."""
    cv2 = opencv()
    assert found.agreement is not None
    gap = np.full((len(tile), GAP, 3), 255, np.uint8)
    both = np.concatenate([query, gap, tile], axis=1)
    here = found.agreement.here * _scale(own)
    there = found.agreement.there * _scale(other) + [LONGEST + GAP, 0]
    chosen = np.unique(np.linspace(0, len(here) - 1, min(LINES, len(here))).astype(int))
    for start, end in zip(here[chosen], there[chosen], strict=True):
        points = [np.rint(place).astype(int).tolist() for place in (start, end)]
        cv2.line(both, points[0], points[1], (60, 180, 60), 1, cv2.LINE_AA)
    return both


def _rows(tiles: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Tiles in rows of about four images."""
    width = 4 * (LONGEST + GAP) + GAP
    rows: list[list[NDArray[np.uint8]]] = [[]]
    for tile in tiles:
        used = sum(one.shape[1] + GAP for one in rows[-1]) + GAP
        if rows[-1] and used + tile.shape[1] + GAP > width:
            rows.append([])
        rows[-1].append(tile)
    sheet = np.full((len(rows) * (LONGEST + TEXT + GAP) + GAP, width, 3), 255, np.uint8)
    for number, row in enumerate(rows):
        top, left = GAP + number * (LONGEST + TEXT + GAP), GAP
        for tile in row:
            sheet[top : top + len(tile), left : left + tile.shape[1]] = tile
            left += tile.shape[1] + GAP
    return sheet

"""Smooth lines, circles and text on pictures, by Pillow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Lines are drawn so many times as large, and then reduced: that makes them smooth.
_FINE = 3
#: Width of a line, in pixels, unless told otherwise.
_WIDTH = 1.7

Colour = tuple[int, ...]


class Canvas:
    """A picture to draw on.

    Positions are (x, y), and pixel centres are at integers; colours are as in the picture.

    Parameters
    ----------
    picture
        (H, W, 3) uint8.

    Examples
    --------
    >>> canvas = Canvas(np.zeros((5, 9, 3), np.uint8))
    >>> canvas.line((1, 2), (7, 2), (90, 60, 30))
    >>> canvas.picture()[1:4, 4].tolist()
    [[30, 20, 10], [90, 60, 30], [30, 20, 10]]
    """

    def __init__(self, picture: NDArray[np.uint8]) -> None:
        from PIL import Image, ImageDraw

        image = Image.fromarray(picture)
        self._large = image.resize(
            (_FINE * image.width, _FINE * image.height), Image.Resampling.NEAREST
        )
        self._draw = ImageDraw.Draw(self._large, "RGBA")  # colours may be transparent

    def line(
        self,
        start: ArrayLike,
        end: ArrayLike,
        colour: Colour,
        width: float = _WIDTH,
        opacity: float = 1,
    ) -> None:
        """Draw a line."""
        ends = [_placed(start), _placed(end)]
        self._draw.line(ends, (*colour, round(255 * opacity)), round(_FINE * width))

    def disc(self, centre: ArrayLike, radius: float, colour: Colour) -> None:
        """Draw a filled circle."""
        self._draw.ellipse(_box(centre, radius), fill=colour)

    def circle(
        self, centre: ArrayLike, radius: float, colour: Colour, width: float = _WIDTH
    ) -> None:
        """Draw a circle; its line is half inside and half outside of it."""
        box = _box(centre, radius + width / 2)
        self._draw.ellipse(box, outline=colour, width=round(_FINE * width))

    def picture(self) -> NDArray[np.uint8]:
        """The picture (H, W, 3) with what has been drawn."""
        return np.array(self._large.reduce(_FINE))


def _placed(place: ArrayLike) -> tuple[float, float]:
    x, y = ((np.asarray(place, np.float64) + 0.5) * _FINE - 0.5).round().tolist()
    return x, y


def _box(centre: ArrayLike, radius: float) -> list[float]:
    x, y = ((np.asarray(centre, np.float64) + 0.5) * _FINE - 0.5).tolist()
    reach = radius * _FINE - 0.5
    return [round(side) for side in (x - reach, y - reach, x + reach, y + reach)]


def text_width(text: str, size: float) -> int:
    """Pixels that a line of text takes.

    >>> text_width("mkdesc", 20) > text_width("mkdesc", 10) > 0
    True
    """
    return int(np.ceil(_font(size).getlength(text)))


def write_text(
    picture: NDArray[np.uint8], text: str, place: tuple[int, int], size: float, colour: Colour
) -> None:
    """Write a line of text into a picture (H, W, 3).

    Parameters
    ----------
    picture
        uint8; it is changed.
    text
        ASCII: Pillow's own font has little more.
    place
        Where the base line begins, (x, y).
    size
        Of the font, in pixels.
    colour
        As in the picture.

    Examples
    --------
    >>> picture = np.full((20, 60, 3), 255, np.uint8)
    >>> write_text(picture, "mkdesc", (2, 14), 12, (0, 0, 0))
    >>> bool(picture.min() < 100)
    True
    """
    from PIL import Image, ImageDraw

    image = Image.fromarray(picture)
    ImageDraw.Draw(image).text(place, text, colour, _font(size), anchor="ls")
    picture[:] = np.asarray(image)


#: Pixels of the smallest letters that the font has.
SMALLEST = 4.0


def _font(size: float) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(max(size, SMALLEST))

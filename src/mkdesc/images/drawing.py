"""Pictures of matches and of keypoints."""

from __future__ import annotations

import base64
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.images.canvas import Canvas, Colour, text_width, write_text
from mkdesc.images.resampling import resized
from mkdesc.images.writing import encode_image

#: Lines drawn at most (more hide each other), and the pixels of the longer side of either image.
LINES, LONGEST = 120, 1000
#: Keypoints drawn as circles at most, and the radius of a circle in sigmas.
CIRCLES, RADIUS = 300, 3.0
#: Space between the images, and above them for the caption.
_GAP, _HEAD = 12, 44
#: Radii of dots, and of the ends of lines; how much of a line covers what is below it.
_DOT, _END, _OPAQUE = 2.0, 3.0, 0.5
#: Size of the caption's letters.
_CAPTION = 17
#: Colours of keypoints and of text, blue first; value and saturation of the others.
_AMBER, _BLACK, _INK = (60, 190, 255), (0, 0, 0), (40, 40, 40)
_BRIGHT, _VIVID = 235.0, 0.863


def draw_matches(
    a: NDArray[np.uint8],
    b: NDArray[np.uint8],
    here: ArrayLike,
    there: ArrayLike,
    caption: str = "",
    colours: ArrayLike | None = None,
) -> NDArray[np.uint8]:
    """Two images side by side, with lines between matched places.

    Parameters
    ----------
    a, b
        Images (H, W), or (H, W, 3) with blue first, uint8; larger ones are drawn smaller.
    here, there
        Positions (M, 2) in either, matched row by row. Of more than 120, all are dots, and 120
        that are spread over the first image get lines; the caption says so.
    caption
        A line of text above.
    colours
        (M, 3) in 0 .. 255, blue first: of every match. None: a line's colour tells where in the
        first image it begins, so that neighbours which stay together keep one colour.

    Returns
    -------
    ndarray of shape (height, width, 3), uint8
        Blue first, as OpenCV has it.

    Examples
    --------
    >>> picture = draw_matches(np.zeros((50, 60), np.uint8), np.ones((40, 30), np.uint8), [], [])
    >>> picture.shape
    (94, 102, 3)
    """
    layout = _layout(a, b, here, there, caption, colours)
    canvas = Canvas(layout.canvas)
    for start, end, colour in layout.dots:
        for place in (start, end):
            canvas.disc(place, _DOT, colour)
    for start, end, colour in layout.lines:
        canvas.line(start, end, colour, opacity=_OPAQUE)
    for start, end, colour in layout.lines:
        for place in (start, end):
            canvas.disc(place, _END, colour)
    picture = canvas.picture()
    _write_caption(picture, layout.caption)
    return picture


def draw_keypoints(
    image: NDArray[np.uint8], points: ArrayLike, caption: str = ""
) -> NDArray[np.uint8]:
    """An image with its keypoints: circles for their sizes, a radius in each for its angle.

    Parameters
    ----------
    image
        (H, W), or (H, W, 3) with blue first, uint8; drawn with a longer side of 1,000 pixels, but
        at most four times as large as it is.
    points
        (N, 4): x, y, sigma, angle in degrees; the strongest first, as
        :attr:`mkdesc.images.Keypoints.points` of a detector has them. The radius of a circle is
        three sigmas. Of more than 300, those 300 that are spread over the image get circles, the
        others are dots; the caption says so.
    caption
        A line of text above.

    Returns
    -------
    ndarray of shape (height, width, 3), uint8
        Blue first, as OpenCV has it.

    Examples
    --------
    >>> picture = draw_keypoints(np.zeros((200, 250), np.uint8), [[100, 50, 8, 45]], "one")
    >>> picture.shape
    (844, 1000, 3)
    """
    places = np.asarray(points, np.float64).reshape(-1, 4)
    scale = min(4.0, LONGEST / max(image.shape[:2]))
    drawn = resized(image, scale)
    page = np.full((drawn.shape[0] + _HEAD, drawn.shape[1], 3), 255, np.uint8)
    page[_HEAD:] = drawn if drawn.ndim == 3 else drawn[..., None]
    canvas = Canvas(page)
    centres = _placed(places[:, :2], scale, 0)
    angles = np.deg2rad(places[:, 3])
    arms = scale * RADIUS * places[:, 2:3] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    chosen = spread_out(centres, CIRCLES)
    for colour, width in ((_BLACK, 3.7), (_AMBER, 1.7)):  # seen on bright and on dark ground
        for place, arm in zip(centres[chosen], arms[chosen], strict=True):
            canvas.circle(place, float(np.hypot(*arm)), colour, width)
            canvas.line(place, place + arm, colour, width)
    for place in np.delete(centres, chosen, axis=0):
        canvas.disc(place, _DOT, _AMBER)
    picture = canvas.picture()
    picture[:_HEAD] = 255  # a large circle at the border leaves the image
    _write_caption(picture, _with_share(caption, "circles", len(chosen), len(centres)))
    return picture


def _with_share(caption: str, what: str, drawn: int, total: int) -> str:
    """A caption, with how many of all there are as lines or circles if those are not all."""
    if drawn == total:
        return caption
    return f"{caption}{' - ' if caption else ''}{what} for {drawn} of {total:,}"


def _write_caption(picture: NDArray[np.uint8], caption: str) -> None:
    """Write a line of text above a picture."""
    text = caption.encode("ascii", "replace").decode()
    room = (picture.shape[1] - 16) / max(text_width(text, _CAPTION), 1)
    write_text(picture, text, (8, 29), _CAPTION * min(1.0, room), _INK)  # all of it is shown


def svg_of_matches(
    a: NDArray[np.uint8],
    b: NDArray[np.uint8],
    here: ArrayLike,
    there: ArrayLike,
    caption: str = "",
    colours: ArrayLike | None = None,
    quality: int = 95,
) -> str:
    """The same picture as SVG: the images inside as JPEG, lines as lines.

    Parameters
    ----------
    a, b, here, there, caption, colours
        As for :func:`draw_matches`.
    quality
        Of the JPEG, up to 100.

    Examples
    --------
    >>> blank = np.zeros((50, 60), np.uint8)
    >>> svg_of_matches(blank, blank, [[1, 2]], [[3, 4]]).count("<line ")
    1
    """
    layout = _layout(a, b, here, there, caption, colours)
    height, width = layout.canvas.shape[:2]
    photo = base64.b64encode(encode_image(".jpg", layout.canvas, quality)).decode()
    marks = [mark for pair in layout.dots for mark in _svg_circles(pair, 2)]
    for pair in layout.lines:
        (x, y), (u, v) = pair.start + 0.5, pair.end + 0.5
        marks.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" '
            f'stroke="{_rgb(pair)}" stroke-opacity="{_OPAQUE}"/>'
        )
        marks += _svg_circles(pair, 3)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">',
            f'<image width="{width}" height="{height}" href="data:image/jpeg;base64,{photo}"/>',
            *marks,
            f'<text x="8" y="29" font-family="sans-serif" font-size="17" fill="#282828">'
            f"{escape(layout.caption)}</text>",
            "</svg>",
            "",
        ]
    )


class _Line(NamedTuple):
    """Where a match is in either image of a picture, and its colour (blue first)."""

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    colour: Colour


class _Layout(NamedTuple):
    """Both images on white, the matches that get lines and those that do not, and what to say."""

    canvas: NDArray[np.uint8]
    lines: list[_Line]
    dots: list[_Line]
    caption: str


def _rgb(pair: _Line) -> str:
    blue, green, red = pair.colour
    return f"rgb({red},{green},{blue})"


def _svg_circles(pair: _Line, radius: int) -> list[str]:
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{_rgb(pair)}"/>'
        for x, y in (pair.start + 0.5, pair.end + 0.5)
    ]


def _layout(
    a: NDArray[np.uint8],
    b: NDArray[np.uint8],
    here: ArrayLike,
    there: ArrayLike,
    caption: str,
    colours: ArrayLike | None,
) -> _Layout:
    scales = [min(1.0, LONGEST / max(image.shape[:2])) for image in (a, b)]
    small = [resized(image, scale) for image, scale in zip((a, b), scales, strict=True)]
    height = max(image.shape[0] for image in small)
    shift = small[0].shape[1] + _GAP
    canvas = np.full((height + _HEAD, shift + small[1].shape[1], 3), 255, np.uint8)
    for image, left in zip(small, (0, shift), strict=True):
        # A little paler than they are: the lines are what is to be seen.
        pale = (image * 0.75 + 40).astype(np.uint8)
        if pale.ndim == 2:
            pale = pale[..., None]
        canvas[_HEAD : _HEAD + image.shape[0], left : left + image.shape[1]] = pale
    starts = _placed(here, scales[0], 0)
    ends = _placed(there, scales[1], shift)
    hues = _colours(starts, small[0].shape) if colours is None else _as_colours(colours)
    pairs = [_Line(*each) for each in zip(starts, ends, hues, strict=True)]
    chosen = set(spread_out(starts, LINES).tolist())
    lines = [pair for i, pair in enumerate(pairs) if i in chosen]
    dots = [pair for i, pair in enumerate(pairs) if i not in chosen]
    return _Layout(canvas, lines, dots, _with_share(caption, "lines", len(lines), len(pairs)))


def spread_out(places: NDArray[np.floating], most: int) -> NDArray[np.intp]:
    """Which places (N, 2) to take so that at most so many cover the area, by rising index.

    The area is divided into about as many cells; the first place of every cell is taken, then the
    second, until there are enough.

    >>> spread_out(np.array([[0, 0], [0.1, 0], [0, 0.1], [9, 9.0]]), 2).tolist()
    [0, 3]
    """
    if len(places) <= most:
        return np.arange(len(places))
    low = places.min(axis=0)
    span = np.maximum(places.max(axis=0) - low, 1e-9)
    across = int(np.ceil(np.sqrt(most)))
    column, row = np.minimum((places - low) / span * across, across - 1).astype(int).T
    cell = row * across + column
    by_cell = np.argsort(cell, kind="stable")
    ordered = cell[by_cell]
    turn = np.empty(len(places), np.intp)  # how many of its cell come before a place
    turn[by_cell] = np.arange(len(places)) - np.searchsorted(ordered, ordered)
    return np.sort(np.argsort(turn, kind="stable")[:most])


def _placed(xy: ArrayLike, scale: float, left: int) -> NDArray[np.float64]:
    places = np.asarray(xy, np.float64).reshape(-1, 2)
    return (places + 0.5) * scale - 0.5 + [left, _HEAD]


def _as_colours(colours: ArrayLike) -> list[Colour]:
    return [tuple(row) for row in np.asarray(colours, np.int64).reshape(-1, 3).tolist()]


def _colours(places: NDArray[np.float64], shape: tuple[int, ...]) -> list[Colour]:
    """A hue by direction from the centre of the image, all of them bright."""
    centre = np.array([shape[1] / 2, shape[0] / 2 + _HEAD])
    away = places - centre
    return bright_colours(np.arctan2(away[:, 1], away[:, 0]) / (2 * np.pi))


def bright_colours(hues: NDArray[np.float64]) -> list[Colour]:
    """Colours, blue first, of hues (N,) from 0 (red) to 1 (red again).

    >>> bright_colours(np.array([0, 1 / 3, 2 / 3]))
    [(32, 32, 235), (32, 235, 32), (235, 32, 32)]
    """
    sixths = (np.array([1, 3, 5]) + 6 * hues[:, None]) % 6
    share = np.clip(np.minimum(sixths, 4 - sixths), 0, 1)
    return [tuple(row) for row in np.rint(_BRIGHT * (1 - _VIVID * share)).astype(int).tolist()]

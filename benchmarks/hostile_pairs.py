"""Pairs that look alike and are not the same, drawn or cut, for :mod:`hostile`.

What belongs where is known: each pair tells where a position of the first image is in the second,
or that it is nowhere. The same drawings, seen twice, are pairs that must still be believed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from mkdesc.images import read_gray

#: Letters of the words of pages, and how wide and high pages are.
LETTERS = "etaoinshrdlucmfwypvbgk"
PAGE = (900, 700)

#: OpenCV's fonts of pages of text.
FONTS = (cv2.FONT_HERSHEY_COMPLEX, cv2.FONT_HERSHEY_SIMPLEX, cv2.FONT_HERSHEY_TRIPLEX)

Image = np.ndarray
#: Where positions (N, 2) of the first image are in the second; not a number: nowhere.
Truth = Callable[[np.ndarray], np.ndarray]


class Hostile(NamedTuple):
    kind: str
    name: str
    a: Image
    b: Image
    truth: Truth | None


def nowhere(xy: np.ndarray) -> np.ndarray:
    return np.full(xy.shape, np.nan)


def through(matrix: np.ndarray) -> Truth:
    return lambda xy: cv2.perspectiveTransform(np.asarray(xy, float)[None], matrix)[0]


def photographs(data: Path) -> list[Path]:
    """Of all folders; of the sequences the first ones."""
    return [
        *sorted((data / "photos").glob("*.jpg")),
        *sorted((data / "sequences").glob("*/1.png")),
        *sorted((data / "multiview").glob("*/images/*")),
    ]


def halves(data: Path) -> Iterator[Hostile]:
    """Left and right, top and bottom of a photograph: they share no pixel."""
    for path in photographs(data):
        gray = read_gray(path)
        name = path.stem if path.parent.name == "photos" else f"{path.parts[-2]}/{path.stem}"
        height, width = (n // 2 for n in gray.shape)
        yield Hostile("halves", f"{name} left", gray[:, :width], gray[:, -width:], nowhere)
        yield Hostile("halves", f"{name} top", gray[:height], gray[-height:], nowhere)


def seen(rng: np.random.Generator, drawn: Image, far: float) -> tuple[Image, np.ndarray]:
    """A drawing as a camera sees it: its corners moved by up to so many pixels, noise, blur."""
    height, width = drawn.shape
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    moved = corners + rng.uniform(-far, far, (4, 2)).astype(np.float32)
    matrix = cv2.getPerspectiveTransform(corners, moved)
    view = cv2.warpPerspective(drawn, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)
    noisy = cv2.GaussianBlur(view, (0, 0), 0.7) + rng.normal(0, 2, view.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8), matrix


def line(rng: np.random.Generator) -> str:
    words: list[str] = []
    while sum(map(len, words)) < 38:
        words.append("".join(rng.choice(list(LETTERS), rng.integers(2, 9))))
    return " ".join(words)


def page(lines: list[str], font: int) -> Image:
    drawn = np.full(PAGE, 240, np.uint8)
    for row, words in enumerate(lines):
        cv2.putText(drawn, words, (30, 50 + 36 * row), font, 0.6, 20, 1, cv2.LINE_AA)
    return drawn


def texts() -> Iterator[Hostile]:
    """Pages that share their first lines."""
    for number, (font, shared, far) in enumerate(
        itertools.product(FONTS, (0, 2, 4, 7, 12), (0.0, 8.0, 30.0))
    ):
        rng = np.random.default_rng(number)
        first = [line(rng) for _ in range(23)]
        second = first[:shared] + [line(rng) for _ in range(23 - shared)]
        a, one = seen(rng, page(first, font), far)
        b, other = seen(rng, page(second, font), far)
        truth = _above(36 * shared + 30, one, other)
        yield Hostile("text", f"font {font} shared {shared} far {far:g}", a, b, truth)
        if shared == 4:
            b, other = seen(rng, page(first, font), far)
            yield Hostile(
                "same text",
                f"font {font} far {far:g}",
                a,
                b,
                through(other @ np.linalg.inv(one)),
            )


def _above(last: float, one: np.ndarray, other: np.ndarray) -> Truth:
    """Where what is drawn above a row of pixels is; one and other: how the drawing is seen."""

    def truth(xy: np.ndarray) -> np.ndarray:
        drawn = through(np.linalg.inv(one))(xy)
        there = through(other)(drawn)
        there[drawn[:, 1] >= last] = np.nan
        return there

    return truth


def table(rng: np.random.Generator) -> Image:
    drawn = np.full(PAGE, 240, np.uint8)
    for y in range(40, 861, 41):
        cv2.line(drawn, (40, y), (660, y), 60, 2)
    for x in range(40, 661, 124):
        cv2.line(drawn, (x, 40), (x, 860), 60, 2)
    for row, column in np.ndindex(20, 5):
        number = f"{rng.uniform(0, 9999):.2f}"
        where = (48 + 124 * column, 70 + 41 * row)
        cv2.putText(drawn, number, where, cv2.FONT_HERSHEY_SIMPLEX, 0.7, 20, 1, cv2.LINE_AA)
    return drawn


def sudoku(rng: np.random.Generator) -> Image:
    drawn = np.full((720, 720), 245, np.uint8)
    for k in range(10):
        thick = 4 if k % 3 == 0 else 1
        cv2.line(drawn, (45 + 70 * k, 45), (45 + 70 * k, 675), 10, thick)
        cv2.line(drawn, (45, 45 + 70 * k), (675, 45 + 70 * k), 10, thick)
    for row, column in np.ndindex(9, 9):
        if rng.random() < 0.4:
            where = (63 + 70 * column, 97 + 70 * row)
            digit = str(rng.integers(1, 10))
            cv2.putText(drawn, digit, where, cv2.FONT_HERSHEY_SIMPLEX, 1.5, 10, 2, cv2.LINE_AA)
    return drawn


def crossword(rng: np.random.Generator) -> Image:
    drawn = np.full((720, 720), 245, np.uint8)
    number = 0
    for row, column in np.ndindex(15, 15):
        x, y = 37 + 43 * column, 37 + 43 * row
        black = rng.random() < 0.25
        cv2.rectangle(drawn, (x, y), (x + 43, y + 43), 10, -1 if black else 1)
        if not black and rng.random() < 0.35:
            number += 1
            where = (x + 3, y + 14)
            cv2.putText(
                drawn, str(number), where, cv2.FONT_HERSHEY_SIMPLEX, 0.4, 10, 1, cv2.LINE_AA
            )
    return drawn


def grids() -> Iterator[Hostile]:
    """Tables, sudokus and crosswords that share their lines alone."""
    yield from _drawn_twice(
        (("table", table), ("sudoku", sudoku), ("crossword", crossword)),
        (0.0, 8.0, 30.0),
        range(5),
    )


def _drawn_twice(
    drawings: tuple[tuple[str, Callable[[np.random.Generator], Image]], ...],
    fars: tuple[float, ...],
    numbers: range,
) -> Iterator[Hostile]:
    """Two different drawings of a kind, and one of them seen twice."""
    for (kind, draw), far, number in itertools.product(drawings, fars, numbers):
        rng = np.random.default_rng(number)
        first, second = draw(rng), draw(rng)
        (a, one), (b, _) = seen(rng, first, far), seen(rng, second, far)
        yield Hostile(kind, f"{number} far {far:g}", a, b, nowhere)
        if number < 2:
            b, other = seen(rng, first, far)
            truth = through(other @ np.linalg.inv(one))
            yield Hostile(f"same {kind}", f"{number} far {far:g}", a, b, truth)


def qr_code(rng: np.random.Generator) -> Image:
    code = cv2.QRCodeEncoder.create().encode("".join(rng.choice(list(LETTERS), 60)))
    drawn = np.full((720, 720), 235, np.uint8)
    large = cv2.resize(code, (560, 560), interpolation=cv2.INTER_NEAREST)
    drawn[80:640, 80:640] = np.clip(large, 20, 235)
    return drawn


#: Outlines of a rook, a bishop and a queen, around their middle.
PIECES = (
    [[-14, 20], [14, 20], [14, -20], [5, -20], [5, -12], [-5, -12], [-5, -20], [-14, -20]],
    [[-14, 20], [14, 20], [0, -24]],
    [[-16, 20], [16, 20], [20, -20], [6, 0], [0, -24], [-6, 0], [-20, -20]],
)


def chess(rng: np.random.Generator) -> Image:
    drawn = np.full((720, 720), 250, np.uint8)
    for row, column in np.ndindex(8, 8):
        x, y = 60 + 75 * column, 60 + 75 * row
        shade = 120 if (row + column) % 2 else 210
        cv2.rectangle(drawn, (x, y), (x + 75, y + 75), shade, -1)
        if rng.random() < 0.4:
            outline = np.add(PIECES[rng.integers(3)], [x + 37, y + 37])
            ink = int(rng.choice([20, 250]))
            cv2.fillPoly(drawn, [outline], ink)
            cv2.polylines(drawn, [outline], True, 270 - ink, 2)
    for k, letter in enumerate("abcdefgh"):
        for text, where in ((letter, (88 + 75 * k, 695)), (str(8 - k), (25, 108 + 75 * k))):
            cv2.putText(drawn, text, where, cv2.FONT_HERSHEY_SIMPLEX, 0.8, 20, 2, cv2.LINE_AA)
    return drawn


#: What a form asks for.
ASKED = (
    *("Name", "Address", "City", "Country", "Telephone", "E-mail", "Date of birth"),
    *("Signature", "Occupation", "Nationality", "Passport no.", "Remarks"),
)


def form(rng: np.random.Generator) -> Image:
    drawn = np.full(PAGE, 245, np.uint8)
    title, asked, written = (
        cv2.FONT_HERSHEY_TRIPLEX,
        cv2.FONT_HERSHEY_COMPLEX,
        cv2.FONT_HERSHEY_SCRIPT_SIMPLEX,
    )
    cv2.putText(drawn, "Application form 27-B", (130, 60), title, 1.1, 20, 2, cv2.LINE_AA)
    for row, label in enumerate(ASKED):
        y = 130 + 62 * row
        cv2.putText(drawn, f"{label}:", (40, y), asked, 0.7, 20, 1, cv2.LINE_AA)
        cv2.rectangle(drawn, (260, y - 30), (660, y + 14), 80, 1)
        word = "".join(rng.choice(list(LETTERS), rng.integers(5, 18)))
        cv2.putText(drawn, word, (270, y), written, 0.9, 60, 2, cv2.LINE_AA)
    return drawn


def makes() -> Iterator[Hostile]:
    """QR codes, chess diagrams and forms: one make, different contents."""
    yield from _drawn_twice(
        (("QR code", qr_code), ("chess", chess), ("form", form)), (8.0, 60.0), range(8)
    )


def _tiled(tiles: list[Image], columns: int) -> Image:
    rows = [np.hstack(tiles[k : k + columns]) for k in range(0, len(tiles), columns)]
    return np.vstack(rows)


def _tiles_moved(order: np.ndarray, columns: int, height: int, width: int) -> Truth:
    """Where tile k, of a grid, is at place order[k] of the same grid."""

    def truth(xy: np.ndarray) -> np.ndarray:
        rows = len(order) // columns
        column = np.clip(xy[:, 0] // width, 0, columns - 1).astype(int)
        row = np.clip(xy[:, 1] // height, 0, rows - 1).astype(int)
        tile = columns * row + column
        by = np.column_stack(
            [
                (order % columns - np.arange(len(order)) % columns) * width,
                (order // columns - np.arange(len(order)) // columns) * height,
            ]
        )
        return np.asarray(xy + by[tile])

    return truth


def puzzles(data: Path) -> Iterator[Hostile]:
    """Photographs cut into tiles that changed places, and collages of photographs that did."""
    paths = sorted((data / "photos").glob("*_00.jpg")) + sorted((data / "photos").glob("sk_*"))
    for number, path in enumerate(paths):
        gray = read_gray(path)
        columns = 2 + number % 4
        height, width = (n // columns for n in gray.shape)
        cut = [
            gray[y * height : (y + 1) * height, x * width : (x + 1) * width]
            for y, x in np.ndindex(columns, columns)
        ]
        order = np.random.default_rng(number).permutation(len(cut))
        moved = [cut[k] for k in np.argsort(order)]
        truth = _tiles_moved(order, columns, height, width)
        images = _tiled(cut, columns), _tiled(moved, columns)
        yield Hostile("puzzle", f"{path.stem} {columns}", *images, truth)
    for number in range(12):
        rng = np.random.default_rng(number)
        columns, rows = ((2, 2), (3, 2), (3, 3))[number % 3]
        some = rng.choice(len(paths), columns * rows, replace=False)
        small = [
            cv2.resize(read_gray(paths[k]), (360, 270), interpolation=cv2.INTER_AREA) for k in some
        ]
        order = rng.permutation(len(small))
        moved = [small[k] for k in np.argsort(order)]
        truth = _tiles_moved(order, columns, 270, 360)
        images = _tiled(small, columns), _tiled(moved, columns)
        yield Hostile("collage", f"{number} {columns}x{rows}", *images, truth)


def _logo(rng: np.random.Generator) -> Image:
    drawn = np.full((110, 260), 250, np.uint8)
    for _ in range(25):
        centre = tuple(rng.integers(0, (260, 110)).tolist())
        cv2.circle(drawn, centre, int(rng.integers(3, 20)), int(rng.integers(0, 255)), -1)
    cv2.putText(drawn, "Example.org", (10, 70), cv2.FONT_HERSHEY_TRIPLEX, 1.2, 0, 2, cv2.LINE_AA)
    return drawn


def _stamped(gray: Image, what: str, where: str) -> Image:
    """A photograph of 900 x 675 pixels with a logo, a date or a frame."""
    image = cv2.resize(gray, (900, 675), interpolation=cv2.INTER_AREA)
    rng = np.random.default_rng(7)
    if what == "logo":
        y, x = {"corner": (545, 620), "middle": (280, 320), "top": (20, 20)}[where]
        image[y : y + 110, x : x + 260] = _logo(rng)
    elif what == "clear logo":
        y, x = {"corner": (545, 620), "middle": (280, 320), "top": (20, 20)}[where]
        part = image[y : y + 110, x : x + 260]
        image[y : y + 110, x : x + 260] = part // 2 + _logo(rng) // 2
    elif what == "date":
        words = "2026-11-18 03:40:12 CAMERA 7 NORTH GATE"
        cv2.putText(image, words, (20, 655), cv2.FONT_HERSHEY_SIMPLEX, 0.9, 255, 2, cv2.LINE_AA)
    else:
        frame = rng.integers(0, 255, (675, 900), np.uint8)
        frame = cv2.GaussianBlur(frame, (0, 0), 2).astype(float)
        frame = np.clip((frame - 127) * 8 + 127, 0, 255).astype(np.uint8)
        inner = image[45:-45, 45:-45].copy()
        image = frame
        image[45:-45, 45:-45] = inner
    return image


#: What is put over photographs, and where.
OVERLAYS = (
    ("logo", "corner"),
    ("logo", "middle"),
    ("clear logo", "top"),
    ("date", "bottom"),
    ("frame", "around"),
)


def overlaid(data: Path) -> Iterator[Hostile]:
    """Strangers with the same logo, date or frame; and photographs of one place with it."""
    scenes = ("beach", "castle", "fern", "herzjesus", "kitchen", "sacrecoeur")
    for what, where in OVERLAYS:
        pictures = [
            _stamped(read_gray(data / "photos" / f"{scene}_00.jpg"), what, where)
            for scene in scenes
        ]
        for (one, a), (other, b) in itertools.combinations(zip(scenes, pictures, strict=True), 2):
            yield Hostile("overlay", f"{what} {where} {one} {other}", a, b, nowhere)
        for scene, a in zip(scenes, pictures, strict=True):
            b = _stamped(read_gray(data / "photos" / f"{scene}_01.jpg"), what, where)
            yield Hostile("same overlay", f"{what} {where} {scene}", a, b, None)


def hostile(data: Path) -> Iterator[Hostile]:
    """All of them; kinds that begin with "same" are to be believed."""
    yield from texts()
    yield from grids()
    yield from makes()
    yield from puzzles(data)
    yield from overlaid(data)
    yield from halves(data)

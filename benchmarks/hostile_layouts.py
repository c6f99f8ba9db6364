"""Things of one layout for :mod:`hostile`: what is printed on all of them, and what moved on it.

Of number plates, charts, clocks, slides, calendars, screens of code, clouds of words and pictures
on a wall, the layout moves as the camera does. What differs, or has another place on it, is wrong
wherever it is matched, though it may move along the epipolar lines of what is there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
from hostile_pairs import LETTERS, Hostile, Image, line, seen, through

from mkdesc.images import read_gray

#: How far the corners of a view are moved, in pixels: from the front, and from aside.
FARS = (8.0, 60.0)

TRIPLEX, SIMPLEX, COMPLEX = (
    cv2.FONT_HERSHEY_TRIPLEX,
    cv2.FONT_HERSHEY_SIMPLEX,
    cv2.FONT_HERSHEY_COMPLEX,
)

Draw = Callable[[np.random.Generator], Image]


def _write(drawn: Image, text: str, where: tuple[int, int], size: float, ink: int = 20) -> None:
    thick = max(1, round(2 * size))
    cv2.putText(drawn, text, where, TRIPLEX, size, ink, thick, cv2.LINE_AA)


def plate(rng: np.random.Generator) -> Image:
    drawn = np.full((300, 800), 170, np.uint8)
    cv2.rectangle(drawn, (40, 60), (760, 240), 245, -1)
    cv2.rectangle(drawn, (40, 60), (760, 240), 10, 4)
    cv2.rectangle(drawn, (44, 64), (100, 236), 70, -1)
    for k in range(12):
        angle = 2 * np.pi * k / 12
        at = (round(72 + 18 * np.cos(angle)), round(110 + 18 * np.sin(angle)))
        cv2.circle(drawn, at, 3, 230, -1)
    _write(drawn, "D", (60, 220), 0.9, 240)
    text = "".join(rng.choice(list("ABCDEFGHKLMNPRSTUVWXYZ"), 3)) + " "
    text += "".join(rng.choice(list("0123456789"), 4))
    _write(drawn, text, (120, 195), 2.9)
    for x in (60, 740):
        cv2.circle(drawn, (x, 75), 5, 60, 2)
    return drawn


def chart(rng: np.random.Generator) -> Image:
    drawn = np.full((600, 800), 250, np.uint8)
    _write(drawn, "Revenue by quarter (million)", (130, 50), 0.9)
    for k in range(11):
        y = 520 - 42 * k
        cv2.line(drawn, (90, y), (760, y), 200, 1)
        _write(drawn, f"{10 * k}", (40, y + 6), 0.5)
    for k in range(8):
        top = int(520 - rng.uniform(30, 410))
        x = 110 + 80 * k
        cv2.rectangle(drawn, (x, top), (x + 50, 520), 90 + 20 * (k % 3), -1)
        cv2.rectangle(drawn, (x, top), (x + 50, 520), 20, 2)
        _write(drawn, f"{(520 - top) / 4.2:.1f}", (x, top - 8), 0.5)
        _write(drawn, f"Q{k % 4 + 1} {2024 + k // 4}", (x - 8, 545), 0.4)
    cv2.line(drawn, (90, 520), (760, 520), 10, 2)
    cv2.line(drawn, (90, 90), (90, 520), 10, 2)
    return drawn


def clock(rng: np.random.Generator) -> Image:
    drawn = np.full((720, 720), 235, np.uint8)
    cv2.circle(drawn, (360, 360), 320, 20, 8)
    for k in range(60):
        way = np.array([np.sin(2 * np.pi * k / 60), -np.cos(2 * np.pi * k / 60)])
        inner = 285 if k % 5 else 270
        start, end = (np.rint(360 + r * way).astype(int).tolist() for r in (inner, 305))
        cv2.line(drawn, start, end, 20, 2 if k % 5 else 6)
        if k % 5 == 0:
            x, y = np.rint(360 + 235 * way).astype(int).tolist()
            _write(drawn, str(k // 5 or 12), (x - 25, y + 18), 1.4)
    cv2.putText(drawn, "REGULATOR", (280, 260), COMPLEX, 0.9, 40, 1, cv2.LINE_AA)
    for length, thick in ((150, 14), (220, 9), (250, 3)):
        angle = rng.uniform(0, 2 * np.pi)
        end = np.rint(360 + length * np.array([np.sin(angle), -np.cos(angle)])).astype(int)
        cv2.line(drawn, (360, 360), end.tolist(), 10, thick)
    cv2.circle(drawn, (360, 360), 16, 10, -1)
    return drawn


def slide(rng: np.random.Generator) -> Image:
    drawn = np.full((600, 800), 250, np.uint8)
    cv2.rectangle(drawn, (0, 0), (800, 80), 60, -1)
    cv2.rectangle(drawn, (0, 560), (800, 600), 60, -1)
    _write(drawn, "Institute of Applied Optics", (20, 586), 0.6, 240)
    _write(drawn, f"{rng.integers(1, 60)} / 62", (700, 586), 0.6, 240)
    for k in range(5):
        cv2.circle(drawn, (690 + 14 * k, 40 + 12 * (k % 2)), 12, 120 + 25 * k, -1)
        cv2.circle(drawn, (690 + 14 * k, 40 + 12 * (k % 2)), 12, 240, 2)
    _write(drawn, line(rng)[:26], (20, 52), 1.0, 240)
    for row in range(6):
        y = 150 + 68 * row
        cv2.circle(drawn, (50, y - 8), 7, 60, -1)
        cv2.putText(drawn, line(rng)[:38], (75, y), SIMPLEX, 0.9, 20, 2, cv2.LINE_AA)
    return drawn


def calendar(rng: np.random.Generator) -> Image:
    drawn = np.full((640, 760), 248, np.uint8)
    month = ("January", "March", "April", "June", "July", "August", "October")[rng.integers(7)]
    _write(drawn, f"{month} 2027", (40, 60), 1.4)
    for k, day in enumerate(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")):
        _write(drawn, day, (45 + 98 * k, 110), 0.8)
    for row, column in np.ndindex(6, 7):
        x, y = 38 + 98 * column, 130 + 80 * row
        cv2.rectangle(drawn, (x, y), (x + 98, y + 80), 150, 1)
    first = int(rng.integers(7))
    for day in range(int(rng.integers(28, 32))):
        row, column = divmod(first + day, 7)
        _write(drawn, str(day + 1), (48 + 98 * column, 175 + 80 * row), 1.0)
    return drawn


#: Lines of programs.
WORDS = (
    *("def", "return", "for", "if", "else", "import", "self", "value", "index", "result"),
    *("print", "range", "None", "True", "array", "length", "name", "items", "count", "data"),
)


def code(rng: np.random.Generator) -> Image:
    drawn = np.full((760, 800), 30, np.uint8)
    cv2.rectangle(drawn, (0, 0), (800, 34), 60, -1)
    cv2.putText(drawn, "main.py  x    utils.py    +", (60, 24), SIMPLEX, 0.6, 220, 1, cv2.LINE_AA)
    for row in range(30):
        y = 60 + 23 * row
        cv2.putText(drawn, str(row + 1), (10, y), SIMPLEX, 0.5, 120, 1, cv2.LINE_AA)
        words = " ".join(rng.choice(WORDS, rng.integers(2, 7)))
        x = 50 + 32 * int(rng.integers(0, 4))
        if rng.random() < 0.9:
            cv2.putText(drawn, words, (x, y), SIMPLEX, 0.5, 210, 1, cv2.LINE_AA)
    return drawn


def cloud(rng: np.random.Generator) -> Image:
    """The same words, each of the same size, elsewhere."""
    drawn = np.full((640, 860), 250, np.uint8)
    words = np.random.default_rng(5)
    taken = np.zeros_like(drawn, bool)
    for k in range(40):
        text = "".join(words.choice(list(LETTERS), words.integers(4, 9)))
        size = 1.7 / (1 + k / 10)
        (wide, high), below = cv2.getTextSize(text, TRIPLEX, size, max(1, round(2 * size)))
        for _ in range(200):
            x, y = int(rng.integers(5, 855 - wide)), int(rng.integers(high + 5, 630))
            part = taken[y - high : y + below, x : x + wide]
            if not part.any():
                part[:] = True
                _write(drawn, text, (x, y), size, int(words.integers(0, 120)))
                break
    return drawn


DRAWINGS: dict[str, Draw] = {
    "plate": plate,
    "chart": chart,
    "clock": clock,
    "slide": slide,
    "calendar": calendar,
    "code": code,
    "cloud": cloud,
}


def wall(rng: np.random.Generator, pictures: list[Image]) -> Image:
    """Framed pictures on a plain wall, in some order."""
    drawn = np.clip(rng.normal(190, 3, (760, 1000)), 0, 255).astype(np.uint8)
    for place, which in enumerate(rng.permutation(len(pictures))):
        row, column = divmod(place, 3)
        y, x = 60 + 340 * row, 60 + 310 * column
        cv2.rectangle(drawn, (x - 12, y - 12), (x + 272, y + 212), 60, -1)
        drawn[y : y + 200, x : x + 260] = cv2.resize(
            pictures[which], (260, 200), interpolation=cv2.INTER_AREA
        )
    return drawn


def layouts(data: Path) -> Iterator[Hostile]:
    """Two things of each layout, and one of them twice."""
    scenes = ("beach", "castle", "fern", "herzjesus", "kitchen", "sacrecoeur")
    pictures = [read_gray(data / "photos" / f"{scene}_00.jpg") for scene in scenes]
    walls: dict[str, Draw] = {"wall": lambda rng: wall(rng, pictures)}
    for (kind, draw), far, number in itertools.product((DRAWINGS | walls).items(), FARS, range(8)):
        rng = np.random.default_rng(number)
        first, second = draw(rng), draw(rng)
        a, one = seen(rng, first, far)
        b, other = seen(rng, second, far)
        truth = through(other @ np.linalg.inv(one))
        yield Hostile(kind, f"{number} far {far:g}", a, b, truth)
        if number < 4:
            b, other = seen(rng, first, far)
            truth = through(other @ np.linalg.inv(one))
            yield Hostile(f"same {kind}", f"{number} far {far:g}", a, b, truth)

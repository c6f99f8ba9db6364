"""A photograph, and what noise, blur or compression makes of it, for :mod:`hostile`.

Both are one view: a match is right where nothing moves. There is no depth in it, though matches
slide along edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
from hostile_pairs import Hostile, Image

from mkdesc.images import read_gray

SCENES = ("beach", "castle", "fern", "herzjesus", "kitchen", "sacrecoeur", "fox", "room")


def noisy(gray: Image, deviation: float) -> Image:
    noise = np.random.default_rng(0).normal(0, deviation, gray.shape)
    return np.clip(gray + noise, 0, 255).astype(np.uint8)


def blurred(gray: Image, sigma: float) -> Image:
    return noisy(cv2.GaussianBlur(gray, (0, 0), sigma), 2)


def moved(gray: Image, length: int, angle: float) -> Image:
    """By a camera that moved while it looked, by so many pixels."""
    along = (length - 1) / 2 * np.array([np.cos(angle), np.sin(angle)])
    ends = [np.rint((length - 1) / 2 + side * along).astype(int).tolist() for side in (-1, 1)]
    line = np.zeros((length, length), np.float32)
    cv2.line(line, *ends, 1)
    return noisy(cv2.filter2D(gray, -1, line / line.sum()), 2)


def compressed(gray: Image, quality: int) -> Image:
    _, data = cv2.imencode(".jpg", gray, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE), np.uint8)


def degraded(data: Path) -> Iterator[Hostile]:
    """Each of some photographs with each of these."""
    ways: dict[str, dict[str, Callable[[Image], Image]]] = {
        "same, noise": {f"{s}": lambda g, s=s: noisy(g, s) for s in (25, 40, 60, 80, 110)},
        "same, blur": {f"{s}": lambda g, s=s: blurred(g, s) for s in (3, 5, 8, 12)},
        "same, JPEG": {f"{q}": lambda g, q=q: compressed(g, q) for q in (2, 5, 10)},
    }
    for length in (15, 23, 27, 31, 41):
        ways[f"same, moved {length}"] = {
            f"{angle:g}": lambda g, n=length, a=angle: moved(g, n, a) for angle in (0.0, 0.4, 1.57)
        }
    for kind, how in ways.items():
        for name, make in how.items():
            for scene in SCENES:
                gray = read_gray(data / "photos" / f"{scene}_00.jpg")
                yield Hostile(kind, f"{name} {scene}", gray, make(gray), lambda xy: xy)

"""Which photographs are not learned from, so that they can say how good it is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

#: One in so many photographs is held out, or as many as this if they are a quarter at most.
HELD_OUT, WANTED = 10, 3


def hold_out(names: list[str], seed: int) -> tuple[list[str], list[str]]:
    """Names of photographs to learn from, and of those held out.

    Photographs whose names differ by a number at the end alone may show the same: all of them are
    held out, or none. If that is not possible (``IMG_0001.jpg``, ``IMG_0002.jpg``, ...), the last
    ones are. Of fewer than four in all, none may be.

    Examples
    --------
    >>> learned, kept = hold_out([f"{scene}_{i}.jpg" for scene in "abcd" for i in range(5)], 0)
    >>> len(learned), len(kept), len({name[0] for name in kept})
    (15, 5, 1)
    >>> hold_out([f"IMG_{i:04}.jpg" for i in range(12)], 0)[1]
    ['IMG_0009.jpg', 'IMG_0010.jpg', 'IMG_0011.jpg']
    """
    wanted = max(len(names) / HELD_OUT, min(WANTED, len(names) // 4))
    scenes: dict[str, list[str]] = {}
    for name in sorted(names):
        scenes.setdefault(scene_of(name), []).append(name)
    kept: list[str] = []
    for number in np.random.default_rng([seed, 13]).permutation(len(scenes)):
        scene = list(scenes.values())[number]
        if len(kept) >= wanted or len(kept) + len(scene) > len(names) / 2:
            continue
        kept += scene
    if not kept and len(names) >= 4:
        kept = sorted(names)[-math.ceil(wanted) :]
    return [name for name in names if name not in kept], sorted(kept)


def scene_of(name: str) -> str:
    """What a photograph shows, by its name: all but a number at its end.

    >>> scene_of("church_03.jpg")
    'church'
    """
    return re.sub(r"[\W_]*\d*\.\w+$", "", name)


def names_of(files: Iterable[str]) -> list[str]:
    """Names without folders, for cards.

    >>> names_of(["photos/a.jpg"])
    ['a.jpg']
    """
    return [Path(file).name for file in files]

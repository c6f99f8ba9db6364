"""Pairs of photographs for :mod:`wide`: sequences, slanted photographs, unrelated ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from mkdesc.images import read_gray

#: Tilts of the two views of a slanted pair.
TILTS = ((1, 4), (1, 8), (2, 4), (2, 6), (3, 5), (4, 4), (3, 7), (5, 5))

#: Facades of one courtyard that only look alike: they show different walls.
FACADES = (("castle_00", "castle_04"), ("castle_00", "castle_03"), ("castle_01", "castle_04"))

#: Names of photographs that show the scene of another name.
SAME_SCENE = {"door": "lund", "lund-door": "lund", "entry": "castle", "fountain-P11": "castle"}


class Pair(NamedTuple):
    name: str
    a: np.ndarray
    b: np.ndarray
    truth: np.ndarray
    #: Where in the first image the error is measured, (N, 2).
    places: np.ndarray


def mapped(xy: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return cv2.perspectiveTransform(np.asarray(xy, float).reshape(1, -1, 2), matrix)[0]


def sequences(data: Path, scenes: list[str] | None, all_pairs: bool) -> Iterator[Pair]:
    for folder in sorted((data / "sequences").iterdir()):
        if scenes is not None and folder.name not in scenes:
            continue
        to = {1: np.eye(3)} | {k: np.loadtxt(folder / f"H_1_{k}") for k in range(2, 7)}
        for i, j in itertools.combinations(range(1, 7), 2):
            if i == 1 or all_pairs:
                a, b = (read_gray(folder / f"{k}.png") for k in (i, j))
                height, width = a.shape
                corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
                truth = to[j] @ np.linalg.inv(to[i])
                yield Pair(f"{folder.name} {i}-{j}", a, b, truth, np.array(corners, float))


def seen_from(
    shape: tuple[int, int], tilt: float, rng: np.random.Generator, size: tuple[int, int]
) -> np.ndarray:
    """The homography of a camera that looks at the middle of a photograph from aside."""
    around = rng.uniform(0, 2 * np.pi)
    slant, roll = np.arccos(1 / tilt), rng.uniform(-0.6, 0.6) - around
    zoom = np.sqrt(np.prod(size) / np.prod(shape)) * rng.uniform(0.8, 1.4) * tilt**0.4
    focal = 1.3 * size[1]

    def turn(angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])

    c, s = np.cos(slant), np.sin(slant)
    rotation = turn(roll) @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ turn(around)
    plane = np.column_stack([rotation[:, :2], [0, 0, focal / zoom]])
    camera = np.array([[focal, 0, size[1] / 2], [0, focal, size[0] / 2], [0, 0, 1]])
    centre = np.array([[1, 0, -shape[1] / 2], [0, 1, -shape[0] / 2], [0, 0, 1]])
    return camera @ plane @ centre


def slanted(data: Path, count: int, seed: int = 0) -> Iterator[Pair]:
    rng = np.random.default_rng(seed)
    photos = sorted((data / "photos").glob("*.jpg"))
    size = (750, 1000)
    fine = np.array([[3, 0, 1], [0, 3, 1], [0, 0, 1.0]])
    for number in range(count):
        tilts = TILTS[number % len(TILTS)]
        path = photos[rng.integers(len(photos))]
        photo = read_gray(path)
        matrices = [seen_from(photo.shape, tilt, rng, size) for tilt in tilts]
        views = []
        for matrix in matrices:
            large = cv2.warpPerspective(
                photo, fine @ matrix, (3 * size[1], 3 * size[0]), flags=cv2.INTER_CUBIC
            )
            view = cv2.resize(large, size[::-1], interpolation=cv2.INTER_AREA)
            view = cv2.GaussianBlur(view, (0, 0), rng.uniform(0.5, 1.5)).astype(float)
            light = 255 * (view / 255) ** rng.uniform(0.6, 1.6) * rng.uniform(0.5, 1)
            noisy = light + rng.normal(0, rng.uniform(1, 5), size)
            views.append(np.clip(noisy, 0, 255).astype(np.uint8))
        grid = np.stack(np.meshgrid(*(np.linspace(0, n, 50) for n in photo.shape[::-1])), -1)
        shown = [mapped(grid.reshape(-1, 2), matrix) for matrix in matrices]
        both = np.all([(xy > 0) & (xy < size[::-1]) for xy in shown], axis=(0, 2))
        truth = matrices[1] @ np.linalg.inv(matrices[0])
        yield Pair(f"{path.stem} {tilts[0]}-{tilts[1]}", *views, truth, shown[0][both])


def unrelated(data: Path, count: int, seed: int = 0) -> list[tuple[str, Path, Path]]:
    """Pairs of photographs of different scenes, by name; up to two photographs of a folder's."""
    files = [
        *sorted((data / "photos").glob("*.jpg")),
        *sorted((data / "sequences").glob("*/[16].png")),
        *sorted((data / "multiview").glob("*/images/*")),
    ]
    named = {_name(path): path for path in files}
    of: dict[str, list[str]] = {}
    for name in named:
        of.setdefault(name if name.startswith("sk_") else name.rpartition("_")[0], []).append(name)
    chosen = sorted(name for names in of.values() for name in (names[0], names[-1]))
    pairs = [
        (a, b)
        for a, b in itertools.combinations(dict.fromkeys(chosen), 2)
        if _scene(a) != _scene(b)
    ]
    drawn = np.random.default_rng(seed).permutation(len(pairs))[:count]
    return [(f"{a} {b}", named[a], named[b]) for a, b in (pairs[index] for index in drawn)]


def _name(path: Path) -> str:
    """As castle_00 is, for photographs that have their folder's name or a number alone, too."""
    folder = path.parent.parent.name if path.parent.name == "images" else path.parent.name
    return path.stem if folder == "photos" else f"{folder}_{path.stem}"


def _scene(name: str) -> str:
    """What a photograph shows; some names are of one courtyard, others of one door."""
    if name.startswith("sk_"):
        return name
    scene = name.split("_")[0]
    return SAME_SCENE.get(scene, scene)

"""Photographs to try things with: two places, a portrait, and what is made of the portrait.

A street and a town, each photographed twice, and the portrait come with the package;
``photographs/SOURCES.md`` says where they are from. Changed copies of the portrait, and views of a
small scene that is papered with it, are made here, because there the truth is known.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path
from mkdesc._support.targets import check_folder, make_folder
from mkdesc.images.reading import read_gray
from mkdesc.images.resampling import blur, homography_between, shrunk, warp
from mkdesc.images.writing import encode_image

#: The photographs that come with the package.
_PHOTOGRAPHS = Path(__file__).with_name("photographs")
#: Two photographs of one place each.
_PLACES = ("street_a.jpg", "street_b.jpg", "town_a.jpg", "town_b.jpg")

Gray = NDArray[np.uint8]
Floats = NDArray[np.float64]

#: The walls of the scene, a corner of a room with a box in it: a corner of each and its two edges
#: (x to the right, y down, z away), and which part of the portrait it shows (x, y, side).
_WALLS = (
    ((-4.0, -3.0, 10.0), (5.0, 0.0, 3.0), (0.0, 6.0, 0.0), (60, 0, 400)),
    ((1.0, -3.0, 13.0), (4.0, 0.0, -4.0), (0.0, 6.0, 0.0), (100, 200, 400)),
    ((-1.6, -0.2, 8.5), (2.2, 0.0, 0.6), (0.0, 2.4, 0.0), (150, 40, 260)),
    ((0.6, -0.2, 9.1), (1.2, 0.0, -1.4), (0.0, 2.4, 0.0), (20, 330, 260)),
)
#: Size of the views, their focal length in pixels, and how many there are.
_WIDTH, _HEIGHT, _FOCAL, _VIEWS = 640, 480, 600.0, 8


class SceneView(NamedTuple):
    """A view (480, 640) of the scene, and the camera's place (3,)."""

    image: Gray
    centre: Floats


def photograph() -> Gray:
    """The portrait, gray.

    >>> photograph().shape
    (600, 512)
    """
    return read_gray(_PHOTOGRAPHS / "portrait.jpg")


def warped(image: Gray) -> tuple[Gray, Floats]:
    """A turned, darkened, blurred copy with noise, and the homography (3, 3) to it.

    >>> copy, homography = warped(photograph())
    >>> copy.shape, homography.shape
    ((600, 512), (3, 3))
    """
    height, width = image.shape
    corners = [[0, 0], [width, 0], [width, height], [0, height]]
    moved = [[150, 40], [width - 20, 130], [width - 90, height - 20], [10, height - 150]]
    homography = _turned(width, height, 35, 0.8) @ homography_between(corners, moved)
    copy = blur(warp(image, homography, image.shape), 0.8)
    return _darkened(copy, 1.6, 5, seed=0), homography


def slanted(image: Gray) -> Gray:
    """The photograph from far aside: compressed by six along a diagonal, in perspective.

    >>> slanted(photograph()).shape
    (600, 512)
    """
    height, width = image.shape
    middle = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1]])
    squeeze = np.array([[0.25, 0, width / 2], [0, 1.5, height / 2], [0, 4e-4, 1]])
    fine = np.array([[4, 0, 1.5], [0, 4, 1.5], [0, 0, 1]])
    whole = fine @ squeeze @ middle @ _turned(width, height, 40, 1.0)
    seen = shrunk(warp(image, whole, (4 * height, 4 * width), order=3), (height, width))
    return _darkened(seen, 1.4, 4, seed=1)


def _turned(width: int, height: int, degrees: float, scale: float) -> Floats:
    """A turn and zoom about the middle, as a homography."""
    x, y = width / 2, height / 2
    c, s = scale * np.cos(np.radians(degrees)), scale * np.sin(np.radians(degrees))
    return np.array([[c, s, x - c * x - s * y], [-s, c, y + s * x - c * y], [0, 0, 1]])


def _darkened(image: Gray, gamma: float, noise: float, seed: int) -> Gray:
    dark = 255 * (image.astype(np.float32) / 255) ** gamma
    noisy = dark + np.random.default_rng(seed).normal(0, noise, image.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8)


def scene_views() -> list[SceneView]:
    """Eight views of a corner of a room, papered with the portrait, from an arc of 40 degrees.

    >>> len(scene_views())
    8
    """
    angles = np.radians(np.linspace(-20, 20, _VIEWS))
    return [_view(float(angle), seed) for seed, angle in enumerate(angles)]


def _view(angle: float, seed: int) -> SceneView:
    """What a camera sees that went around the point (0, 0, 10) by an angle."""
    centre = np.array([10 * np.sin(angle), -0.3 * np.cos(5 * angle), 10 - 10 * np.cos(angle)])
    cos, sin = np.cos(angle), np.sin(angle)
    rotation = np.array([[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]])
    camera = np.array([[_FOCAL, 0, _WIDTH / 2 - 0.5], [0, _FOCAL, _HEIGHT / 2 - 0.5], [0, 0, 1]])
    portrait = photograph()
    image = np.full((_HEIGHT, _WIDTH), 128, np.uint8)
    for corner, right, down, (x, y, side) in _WALLS:  # the farthest first
        # A pixel (u, v) of the picture is the point corner + u / side right + v / side down.
        steps = [np.array(right) / side, np.array(down) / side, np.array(corner) - centre]
        wall = camera @ rotation @ np.column_stack(steps)
        picture = portrait[y : y + side, x : x + side]
        seen, there = (
            warp(shown, wall, image.shape) for shown in (picture, np.full_like(picture, 255))
        )
        image[there == 255] = seen[there == 255]
    return SceneView(_darkened(image, 1.0, 2, seed), centre)


def _sequence(image: Gray, turn: float, gamma: float) -> dict[str, bytes]:
    """Five changed copies of an image, ever more, and the homographies to them, as files."""
    height, width = image.shape
    files = {"1.png": encode_image(".png", image)}
    for k in range(2, 7):
        homography = _turned(width, height, turn * (k - 1), 1 - 0.01 * abs(turn))
        copy = warp(image, homography, image.shape)
        changed = _darkened(copy, gamma ** (k - 1), 3, seed=k)
        files[f"{k}.png"] = encode_image(".png", changed)
        rows = (" ".join(f"{number:.9g}" for number in row) for row in homography)
        files[f"H_1_{k}"] = "\n".join(rows).encode()
    return files


def write_demo(folder: Path) -> list[Path]:
    """Write the photographs to a folder, which is made if need be.

    ``street_a.jpg`` and ``street_b.jpg``, two views of a street; ``town_a.jpg`` and
    ``town_b.jpg``, of a town from the air; the portrait ``photo.png`` and its copies
    ``warped.png`` and ``slanted.png``; ``views/``, of the drawn scene; and two folders of
    ``sequences/`` with six photographs of a plane each and the homographies between them. Files
    that are there already stay as they are. Returns all of them.
    """
    check_folder(folder)
    image, views = photograph(), scene_views()
    pictures = {"photo.png": image, "warped.png": warped(image)[0], "slanted.png": slanted(image)}
    pictures |= {f"views/{k}.png": view.image for k, view in enumerate(views)}
    files = {name: (_PHOTOGRAPHS / name).read_bytes() for name in _PLACES}
    files |= {name: encode_image(".png", pixels) for name, pixels in pictures.items()}
    turns = {"v_turn": (image, 7.0, 1.0), "i_light": (views[3].image, 0.0, 1.2)}
    for sequence, (first, turn, gamma) in turns.items():
        for name, data in _sequence(first, turn, gamma).items():
            files[f"sequences/{sequence}/{name}"] = data
    for name, data in files.items():
        path = folder / name
        make_folder(path.parent)
        if not path.exists():
            with atomic_path(path) as partial:
                partial.write_bytes(data)
    return [folder / name for name in files]

"""Sequences of photographs of a plane: pairs of images and the homographies between them.

Two layouts are known, in one folder per sequence or in the folder itself: that of HPatches
(``1.ppm`` ... ``6.ppm``, ``H_1_2`` ...) and that of Oxford (``img1.ppm``, ``H1to2p``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import read_text
from mkdesc._support.text import shorten

#: Names of the files that hold a homography from the first image, and what the images are called.
_LAYOUTS = {"H_1_{}": "{}", "H1to{}p": "img{}"}

#: Endings of photographs, in the order in which they are looked for.
_ENDINGS = (".ppm", ".png", ".jpg", ".jpeg", ".pgm")


class HomographyPair(NamedTuple):
    """Two photographs of a plane.

    Attributes
    ----------
    scene
        Name of the sequence.
    images
        The first image of the sequence, and another one.
    homography
        (3, 3): brings positions in the first to positions in the other one.
    """

    scene: str
    images: tuple[Path, Path]
    homography: NDArray[np.float64]

    @property
    def name(self) -> str:
        """Short, for tables: ``graf 1-3``."""
        return f"{self.scene} {self.images[0].stem}-{self.images[1].stem}"


def read_sequences(root: str | Path) -> list[HomographyPair]:
    """All pairs of a folder of sequences, sorted by name.

    Parameters
    ----------
    root
        Folder of sequences, or one sequence.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp(), "wall")
    >>> folder.mkdir()
    >>> for name in ("1.png", "2.png"):
    ...     (folder / name).touch()
    >>> np.savetxt(folder / "H_1_2", np.diag([2.0, 2.0, 1.0]))
    >>> [pair] = read_sequences(folder.parent)
    >>> pair.name, pair.homography[0, 0]
    ('wall 1-2', np.float64(2.0))
    """
    folder = Path(root)
    if not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder of sequences")
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    pairs = [pair for one in (folder, *inside) for pair in _pairs(one)]
    if not pairs:
        raise ValueError(
            f"{folder}: no sequences; expected folders with 1.ppm, 2.ppm and H_1_2 (HPatches), or "
            "img1.ppm, img2.ppm and H1to2p (Oxford)"
        )
    return pairs


def _pairs(folder: Path) -> list[HomographyPair]:
    found = []
    for matrix, image in _LAYOUTS.items():
        pattern = re.compile(matrix.format("([0-9]+)"))
        names = [pattern.fullmatch(file.name) for file in folder.iterdir()]
        for number in sorted(int(name[1]) for name in names if name):
            file = folder / matrix.format(number)
            images = _image(folder, image.format(1)), _image(folder, image.format(number))
            found.append(HomographyPair(folder.resolve().name, images, read_homography(file)))
    return found


def _image(folder: Path, name: str) -> Path:
    for ending in _ENDINGS:
        if (folder / f"{name}{ending}").is_file():
            return folder / f"{name}{ending}"
    raise ValueError(f"{folder}: no image {name} ({', '.join(_ENDINGS)}), but a homography to it")


def read_homography(path: str | Path) -> NDArray[np.float64]:
    """Read a text file with the nine numbers of a homography, scaled to end in 1.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "H_1_2"
    >>> _ = file.write_text("2 0 6  0 2 8  0 0 2")
    >>> read_homography(file).tolist()
    [[1.0, 0.0, 3.0], [0.0, 1.0, 4.0], [0.0, 0.0, 1.0]]
    """
    text = read_text(path)
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError as error:
        raise ValueError(f"{path}: {shorten(str(error))}") from None
    if len(numbers) != 9:
        raise ValueError(f"{path}: expected 3 x 3 numbers, got {len(numbers)}")
    matrix = np.array(numbers).reshape(3, 3)
    with np.errstate(all="ignore"):  # what overflows is refused
        scaled: NDArray[np.float64] = matrix / matrix[2, 2]
        extent = np.linalg.det(scaled)
    if not np.isfinite([*scaled.flat, extent]).all() or extent == 0:
        raise ValueError(f"{path}: not a homography (not finite, or singular)")
    return scaled

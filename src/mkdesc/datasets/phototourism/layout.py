"""The Phototourism (UBC, Brown) layout: sheets of 16 x 16 patches of 64 x 64 pixels.

A subset is a folder of

* ``patches0000.bmp``, ``patches0001.bmp``, ...: sheets, patches in rows, the last one padded;
* ``info.txt``: line i holds the 3-D point of patch i;
* ``interest.txt``: line i holds image, x, y, orientation and scale of patch i;
* ``m50_N_N_0.txt``: N pairs of patches, half of them of the same point.

Writing it is in ``writing.py`` beside this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.datasets.text_files import line_of_row, read_columns
from mkdesc.images.reading import read_gray

PATCH_SIZE = 64
#: Patches along a side of a sheet.
PER_SIDE = 16


class Interest(NamedTuple):
    """Where patches come from: arrays of shape (N,), one entry per patch.

    ``image`` is int64, the others float64. In the three published subsets it is the *reference*
    image of the point, the same for all of its patches.
    """

    image: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    orientation: NDArray[np.float64]
    scale: NDArray[np.float64]


class PatchPairs(NamedTuple):
    """Pairs of patches by index, arrays of shape (N,); ``matching`` where the point is one."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    matching: NDArray[np.bool_]


def sheets(folder: str | Path) -> list[Path]:
    """The sheets of a subset, sorted: ``patches0000.bmp``, ``patches0001.bmp``, ..."""
    found = sorted(Path(folder).glob("*.bmp"))
    if not found:
        raise ValueError(f"{folder}: no sheets of patches (*.bmp) in this folder")
    numbers = [re.fullmatch(r"patches(\d{4})\.bmp", file.name) for file in found]
    for expected, match in enumerate(numbers):
        # A sheet left out would shift every patch after it against info.txt.
        if match and int(match[1]) != expected:
            raise ValueError(f"{folder}: the sheet patches{expected:04}.bmp is missing")
    return found


def count_patches(folder: str | Path) -> int:
    """Number of patches: the lines of ``info.txt``, or without it the slots on all sheets."""
    slots = len(sheets(folder)) * PER_SIDE**2
    info = Path(folder) / "info.txt"
    if not info.exists():
        return slots
    with info.open("rb") as lines:
        count = sum(1 for line in lines if line.strip())
    if not slots - PER_SIDE**2 < count <= slots:
        raise ValueError(
            f"{info}: {count} lines do not fit {slots // PER_SIDE**2} sheets of "
            f"{PER_SIDE**2} patches"
        )
    return count


def read_sheet(file: Path) -> NDArray[np.uint8]:
    """The 256 patches of one sheet, shape (256, 64, 64)."""
    sheet = read_gray(file)
    size = PER_SIDE * PATCH_SIZE
    if sheet.shape != (size, size):
        raise ValueError(f"{file}: expected a sheet of {size} x {size} px, got {sheet.shape}")
    grid = sheet.reshape(PER_SIDE, PATCH_SIZE, PER_SIDE, PATCH_SIZE).swapaxes(1, 2)
    return grid.reshape(-1, PATCH_SIZE, PATCH_SIZE)


class Subset:
    r"""A folder in the Phototourism layout; everything is read when it is asked for.

    Parameters
    ----------
    folder
        The folder that holds the sheets. Missing sheets are an error here, bad lines of the
        text files when these are read.

    Examples
    --------
    >>> import tempfile
    >>> from mkdesc.images.writing import encode_image
    >>> folder = Path(tempfile.mkdtemp()) / "tower"
    >>> folder.mkdir()
    >>> sheet = encode_image(".bmp", np.zeros((1024, 1024), np.uint8))
    >>> _ = (folder / "patches0000.bmp").write_bytes(sheet)
    >>> _ = (folder / "info.txt").write_text("5 0\n5 0\n6 0\n6 0\n")
    >>> _ = (folder / "m50_2_2_0.txt").write_text("0 5 0 1 5 0 0\n1 5 0 2 6 0 0\n")
    >>> subset = Subset(folder)
    >>> len(subset), subset.name, subset.labels().tolist()
    (4, 'tower', [5, 5, 6, 6])
    >>> subset.pairs().matching.tolist()
    [True, False]
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise ValueError(f"{self.folder}: not a folder")
        self.sheets = sheets(self.folder)

    @property
    def name(self) -> str:
        """The folder's name, that of the link if it is one."""
        named = self.folder.name not in ("", "..")
        return (self.folder if named else self.folder.resolve()).name

    @cached_property
    def count(self) -> int:
        """Number of patches."""
        return count_patches(self.folder)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"Subset({str(self.folder)!r})"

    def blocks(
        self, which: NDArray[np.integer] | None = None, size: int = 4096
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
        """Go through patches in order, with at most ``size`` + 255 of them in memory.

        Parameters
        ----------
        which
            Indices of the patches wanted, or None for all; sheets without any are not read.
        size
            Patches to collect before they are handed over.

        Yields
        ------
        indices, patches
            Shapes (n,) and (n, 64, 64), uint8.
        """
        wanted = np.arange(self.count) if which is None else np.unique(which)
        if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < self.count:
            raise ValueError(
                f"which: expected indices below {self.count}, got {wanted[0]}..{wanted[-1]}"
            )
        bounds = np.searchsorted(wanted, np.arange(len(self.sheets) + 1) * PER_SIDE**2)
        indices: list[NDArray[np.int64]] = []
        patches: list[NDArray[np.uint8]] = []
        for sheet, file in enumerate(self.sheets):
            here = wanted[bounds[sheet] : bounds[sheet + 1]].astype(np.int64)
            if not len(here):
                continue
            indices.append(here)
            patches.append(read_sheet(file)[here - sheet * PER_SIDE**2])
            if sum(map(len, indices)) >= size:
                yield np.concatenate(indices), np.concatenate(patches)
                indices, patches = [], []
        if indices:
            yield np.concatenate(indices), np.concatenate(patches)

    def labels(self) -> NDArray[np.int64]:
        """The 3-D point of every patch, shape (N,)."""
        self._counted("info.txt", self.count)
        points: NDArray[np.int64] = read_columns(self.folder / "info.txt", [0])[:, 0]
        return points

    def interest(self) -> Interest:
        """Image, position, orientation and scale of every patch."""
        file = self.folder / "interest.txt"
        table = read_columns(file, range(5), float)
        self._counted(file.name, len(table))
        with np.errstate(invalid="ignore"):  # what is no integer is refused below
            image = table[:, 0].astype(np.int64)
        odd = np.flatnonzero((image != table[:, 0]) | ~np.isfinite(table).all(axis=1))
        if len(odd):
            raise ValueError(
                f"{file}, line {line_of_row(file, int(odd[0]))}: expected an integer (the image) "
                f"and four finite numbers, got {table[odd[0]].tolist()}"
            )
        return Interest(image, table[:, 1], table[:, 2], table[:, 3], table[:, 4])

    def _counted(self, name: str, lines: int) -> None:
        if not (self.folder / name).is_file():
            raise ValueError(f"{self.folder / name}: no such file")
        if lines != self.count:
            raise ValueError(
                f"{self.folder / name}: expected {self.count} lines, one per patch, got {lines}"
            )

    def pair_files(self) -> dict[int, Path]:
        """The files of pairs by their number of pairs, smallest first."""
        found = {}
        for file in self.folder.glob("m50_*_*_0.txt"):
            if match := re.fullmatch(r"m50_(\d+)_\1_0\.txt", file.name):
                found[int(match[1])] = file
        return dict(sorted(found.items()))

    def pairs(self, count: int | None = None) -> PatchPairs:
        """The pairs of ``m50_{count}_{count}_0.txt``; without ``count`` those to test on.

        Those to test on are ``m50_100000_100000_0.txt`` or, in a smaller set, the largest file.
        """
        files = self.pair_files()
        if not files:
            raise ValueError(f"{self.folder}: no files of pairs (m50_N_N_0.txt) in this folder")
        if count is None:
            count = 100_000 if 100_000 in files else max(files)
        if count not in files:
            raise ValueError(
                f"{self.folder}: no file of {count} pairs; there are "
                f"{', '.join(str(number) for number in files)}"
            )
        return self._read_pairs(files[count], count)

    def _read_pairs(self, file: Path, count: int) -> PatchPairs:
        table = read_columns(file, (0, 1, 3, 4))
        if len(table) != count:
            raise ValueError(f"{file}: expected {count} lines, as its name says, got {len(table)}")
        patches, points = table[:, ::2], table[:, 1::2]
        outside = np.flatnonzero(((patches < 0) | (patches >= self.count)).any(axis=1))
        if len(outside):
            raise ValueError(
                f"{file}, line {line_of_row(file, int(outside[0]))}: expected patches below "
                f"{self.count}, got {' and '.join(map(str, patches[outside[0]].tolist()))}"
            )
        if (self.folder / "info.txt").exists():
            labels = self.labels()[patches]
            wrong = np.flatnonzero((labels != points).any(axis=1))
            if len(wrong):
                raise ValueError(
                    f"{file}, line {line_of_row(file, int(wrong[0]))}: points "
                    f"{points[wrong[0]].tolist()}, but info.txt says {labels[wrong[0]].tolist()}"
                )
        first, second = np.ascontiguousarray(patches.T)
        return PatchPairs(first, second, points[:, 0] == points[:, 1])

"""The Phototourism (UBC, Brown) layout: sheets of 16 x 16 patches of 64 x 64 pixels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.reading import read_gray

__all__ = ["PATCH_SIZE", "count_patches", "read_sheets", "sheets"]

PATCH_SIZE = 64
#: Patches along a side of a sheet.
PER_SIDE = 16


def sheets(folder: str | Path) -> list[Path]:
    """The sheets of a subset, sorted: ``patches0000.bmp``, ``patches0001.bmp``, ..."""
    found = sorted(Path(folder).glob("*.bmp"))
    if not found:
        raise ValueError(f"{folder}: no sheets of patches (*.bmp) in this folder")
    return found


def count_patches(folder: str | Path) -> int:
    """Number of patches: the lines of ``info.txt``, or without it the places on all sheets."""
    places = len(sheets(folder)) * PER_SIDE**2
    info = Path(folder) / "info.txt"
    if not info.exists():
        return places
    with info.open("rb") as lines:
        count = sum(1 for line in lines if line.strip())
    if not places - PER_SIDE**2 < count <= places:
        raise ValueError(
            f"{info}: {count} lines do not fit {places // PER_SIDE**2} sheets of "
            f"{PER_SIDE**2} patches"
        )
    return count


def read_sheets(folder: str | Path, count: int | None = None) -> Iterator[NDArray[np.uint8]]:
    """Go through the patches of a subset, one sheet (up to 256 patches, 64 x 64) at a time."""
    left = count_patches(folder) if count is None else count
    side = PER_SIDE * PATCH_SIZE
    for file in sheets(folder):
        sheet = read_gray(file)
        if sheet.shape != (side, side):
            raise ValueError(f"{file}: expected a sheet of {side} x {side} px, got {sheet.shape}")
        grid = sheet.reshape(PER_SIDE, PATCH_SIZE, PER_SIDE, PATCH_SIZE).swapaxes(1, 2)
        yield grid.reshape(-1, PATCH_SIZE, PATCH_SIZE)[:left]
        left -= min(left, PER_SIDE**2)

"""Where the pixels of a W x W patch are: cartesian and polar coordinates, and the window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PatchGrid:
    """Coordinates of pixels, in arrays of one shape; (W, W), indexed [row, column], for a patch.

    Attributes
    ----------
    x, y
        Cartesian coordinates in [-1, 1]; ``x`` runs along a row, ``y`` down the rows.
    rho
        Distance from the centre, 1 in the corners.
    phi
        Polar angle ``atan2(y, x)``.
    window
        The weight ``exp(-rho**2)`` that favours central pixels.
    """

    x: Plane
    y: Plane
    rho: Plane
    phi: Plane
    window: Plane

    @classmethod
    def at(cls, x: Plane, y: Plane) -> PatchGrid:
        """The coordinates of pixels at cartesian positions ``x`` and ``y``."""
        rho = np.hypot(x, y) / np.sqrt(2)
        return cls(x, y, rho, np.arctan2(y, x), np.exp(-(rho**2)))


@lru_cache(maxsize=32)
def patch_grid(size: int) -> PatchGrid:
    """Coordinates of a ``size`` x ``size`` patch (read-only arrays, shared between callers).

    Examples
    --------
    >>> patch_grid(3).x[0].tolist()
    [-1.0, 0.0, 1.0]
    """
    u = np.arange(-(size - 1), size, 2) / (size - 1)
    y, x = np.meshgrid(u, u, indexing="ij")
    grid = PatchGrid.at(x, y)
    for plane in (grid.x, grid.y, grid.rho, grid.phi, grid.window):
        plane.flags.writeable = False
    return grid

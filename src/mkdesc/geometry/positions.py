"""Positions in images, checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def as_positions(name: str, xy: ArrayLike, count: int | None = None) -> NDArray[np.float64]:
    """Positions (M, 2) as float64; ValueError for anything else, and if there are not ``count``.

    >>> as_positions("a", [[1, 2]])
    array([[1., 2.]])
    """
    found = np.asarray(xy)
    if found.dtype.kind not in "iuf":
        raise ValueError(f"{name}: expected positions as real numbers, got {found.dtype}")
    array = np.ascontiguousarray(found, np.float64)
    if array.shape == (0,):
        array = array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name}: expected positions (M, 2), got {array.shape}")
    if count is not None and len(array) != count:
        raise ValueError(f"{name}: expected ({count}, 2), got {array.shape}")
    good = np.isfinite(array).all(axis=1)
    if not good.all():
        raise ValueError(f"{name}[{int(good.argmin())}] has NaN or infinity")
    return array

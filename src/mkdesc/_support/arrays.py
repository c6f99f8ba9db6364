"""Arrays as they come from files and other machines."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

__all__ = ["in_native_order"]


def in_native_order(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers with their bytes in the order of this machine; a copy only if needed.

    >>> import numpy as np
    >>> in_native_order(np.ones(2, ">u2")).dtype == np.uint16
    True
    """
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))

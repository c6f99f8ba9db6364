"""How many rows of pixels the compiled layers of the learned detector make at a time."""

from __future__ import annotations


def rows_at_once(side: int, channels: int) -> int:
    """Of a layer with kernels of this side, over so many channels, that is not the last."""
    return 4 if side == 5 and channels > 1 else 1

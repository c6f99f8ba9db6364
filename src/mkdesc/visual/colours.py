"""The colours of everything that is drawn: figures, inspection, and the explorer's page.

>>> MAP[0], MAP[-1]
('#440154', '#fde725')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Of maps, from unlike to similar: viridis, which is even in brightness for all eyes.
MAP = (
    "#440154",
    "#472d7b",
    "#3b528b",
    "#2c728e",
    "#21918c",
    "#28ae80",
    "#5ec962",
    "#addc30",
    "#fde725",
)
#: Of what has a sign: takes away, nothing, adds.
DIVERGING = ("#2166ac", "#f4f4f4", "#d95f0e")
#: Of curves, told apart by colour-blind eyes too.
LINES = ("#1b6ec2", "#d95f0e", "#2a9d5c", "#a0439b", "#8a6d00", "#c43355")
#: Of what is marked in a map, on any ground: light over dark.
MARK, MARK_EDGE = "#ffffff", "#000000"


def colour_map(colours: Sequence[str]) -> Any:
    """A colour map of matplotlib that goes through colours in even steps."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("mkdesc", colours)

"""What a way of finding and describing keypoints is to the benchmarks of photographs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Photograph(NamedTuple):
    """A photograph as features are found in it.

    Attributes
    ----------
    name
        Its name among the others, with folders: ``graf/1.png``.
    gray
        (H, W) uint8.
    scale
        Pixels of ``gray`` for each pixel of the file, along x and y.
    """

    name: str
    gray: NDArray[np.uint8]
    scale: tuple[float, float] = (1.0, 1.0)


class PhotographFeatures(NamedTuple):
    """What a method finds in a photograph.

    Attributes
    ----------
    xy
        (N, 2) float64: positions, pixel centres at integers, the strongest first.
    descriptors
        (N, D); binary ones as bits.
    """

    xy: NDArray[np.float64]
    descriptors: NDArray[np.float32]


Extract = Callable[[Photograph, int], PhotographFeatures]

#: Takes the features of two photographs, with the heights and widths of these; gives the rows of
#: what belongs together, (K, 2).
Match = Callable[
    [PhotographFeatures, PhotographFeatures, tuple[tuple[int, int], tuple[int, int]]],
    NDArray[np.int64],
]


@dataclass(frozen=True)
class Method:
    """A way of finding and describing keypoints, with a name.

    Attributes
    ----------
    name
        What it was asked for by.
    extract
        Takes a :class:`Photograph` and how many keypoints to find at most; computes in the
        thread that calls it.
    identity
        What else the result depends on, such as the hash of a weights file.
    match
        A matcher of its own; None: mutual nearest neighbours.
    """

    name: str
    extract: Extract
    identity: dict[str, str] = field(default_factory=dict)
    match: Match | None = None

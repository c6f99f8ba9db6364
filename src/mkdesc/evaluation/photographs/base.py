"""What a way of finding, describing and matching keypoints is to the benchmarks of photographs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_integer, check_number

#: At the end of a method's name: matches are grown; before a file: weights that match.
GROW, LIGHTGLUE = "+grow", "+lightglue:"


class PhotographOptions(NamedTuple):
    """What is asked of every method.

    Attributes
    ----------
    keypoints
        How many to find at most.
    max_size
        Pixels of the longer side that photographs are reduced to; None: they stay as they are.
    ratio
        Of Lowe's test; None: mutual nearest neighbours alone. Matchers of their own have none.
    """

    keypoints: int = 2000
    max_size: int | None = None
    ratio: float | None = None

    def check(self) -> None:
        """Refuse what makes no sense."""
        check_integer("keypoints", self.keypoints)
        check_integer("max_size", self.max_size, optional=True)
        check_number("ratio", self.ratio, above=0, most=1, optional=True)


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
    keypoints
        (N, 4) float64: x, y, sigma and angle as :class:`mkdesc.images.Keypoints` has them, or
        (N, 2) where a method gives positions alone; the strongest first.
    descriptors
        (N, D); binary ones as bits.
    """

    keypoints: NDArray[np.float64]
    descriptors: NDArray[np.float32]


class FoundFeatures(NamedTuple):
    """Features of a photograph, and what they cost.

    Attributes
    ----------
    keypoints, descriptors
        As for :class:`PhotographFeatures`.
    seconds
        Of CPU, in one thread.
    shape
        Height and width of the image they were found in.
    scale
        Its pixels for each pixel of the file, along x and y.
    """

    keypoints: NDArray[np.float64]
    descriptors: NDArray[np.float32]
    seconds: float
    shape: tuple[int, int]
    scale: tuple[float, float]

    @property
    def xy(self) -> NDArray[np.float64]:
        """Positions (N, 2), pixel centres at integers."""
        return self.keypoints[:, :2]


Extract = Callable[[Photograph, int], PhotographFeatures]

#: Takes the features of two photographs; gives the rows of what belongs together, (K, 2).
Match = Callable[[FoundFeatures, FoundFeatures], NDArray[np.int64]]


@dataclass(frozen=True)
class Method:
    """A way of finding, describing and matching keypoints, with a name.

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

    Examples
    --------
    >>> method = Method("orb+grow", lambda photograph, most: None)
    >>> method.features, method.grows
    ('orb', True)
    """

    name: str
    extract: Extract
    identity: dict[str, str] = field(default_factory=dict)
    match: Match | None = None

    @property
    def features(self) -> str:
        """The name of its features, which methods that match them in another way share."""
        return self.name.removesuffix(GROW).partition(LIGHTGLUE)[0]

    @property
    def grows(self) -> bool:
        """Whether matches are grown with the gray values of the photographs."""
        return self.name.endswith(GROW)

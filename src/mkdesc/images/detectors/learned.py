"""The learned detector: points that a descriptor was seen to match, by a small network's score."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.threads import checked_threads
from mkdesc._support.workfolder import cached_reader
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.learned_reference import Maxima
from mkdesc.images.detectors.learned_weights import Weights, load_weights, weights_file
from mkdesc.images.detectors.places import RADIUS, one_per_place, spread_evenly

if TYPE_CHECKING:
    from torch import Tensor

    from mkdesc.images.detectors.padded_torch import PaddedKeypoints

#: Sigma of a keypoint of the first level: a model that looks at 20 sigma sees 32 px of a level.
SIGMA = 1.6
#: Levels of the pyramid, each 1 / sqrt 2 of the one before.
LEVELS = 6
#: A score counts so many times what it would on the next finer level: what coarse levels show is
#: seen again more often (docs/keypoints.md).
COARSER = 1.1
#: Maxima for each keypoint that is wanted: some are of one place, and dropped.
SPARE = 2.0


@dataclass(frozen=True)
class Learned:
    """Keypoints by a learned score, one a place.

    Attributes
    ----------
    weights
        Name of bundled weights, or a file.
    repeats
        Whether to keep keypoints of several levels that are of one place.
    spread
        Whether to spread keypoints evenly over the image, rather than keep the best.
    engine
        What computes: ``"numba"``, ``"torch"`` (where a device is given, in any case) or
        ``"reference"``.
    """

    max_keypoints: int | None = None
    upright: bool = False
    n_threads: int | None = None
    device: str | None = None
    weights: str | os.PathLike[str] = "keypoints"
    repeats: bool = False
    spread: bool = False
    engine: str = "numba"

    side: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        if self.engine not in ("numba", "torch", "reference"):
            raise ValueError(f"engine: expected numba, torch or reference, got {self.engine!r}")
        if self.spread and self.max_keypoints is None:
            raise ValueError("spread: needs max_keypoints, got None")
        checked_threads(self.n_threads)
        if not isinstance(self.weights, (str, os.PathLike)):
            raise ValueError(f"weights: expected a name or a file, got {self.weights!r}")
        self._network()

    def _network(self) -> Weights:
        file = weights_file(self.weights)
        return _loaded(file) if file.is_file() else load_weights(self.weights)

    def detect(self, gray: NDArray[np.uint8], mask: NDArray[np.uint8] | None = None) -> Keypoints:
        """As every :class:`~mkdesc.images.detectors.registry.Detector`."""
        engine = self.engine if self.device is None else "torch"
        how: Any = import_module(f"mkdesc.images.detectors.learned_{engine}")
        more: dict[str, Any] = {}
        if engine == "numba":
            more["n_threads"] = checked_threads(self.n_threads)
        if engine == "torch":
            more["device"] = self.device or "cpu"
        levels, found = how.maxima(gray, self._network(), LEVELS, **more)
        found = found._replace(score=_weighed(found.score, found.level))
        shapes = [tuple(level.shape) for level in levels]
        if mask is not None:
            x, y = self._places(found, gray.shape, shapes)
            inside = mask[np.rint(y).astype(int), np.rint(x).astype(int)] != 0
            found = found.take(np.flatnonzero(inside))
        n = self.max_keypoints
        some = found
        if n is not None and not self.spread:
            some = found.strongest(n if self.repeats else round(SPARE * n) + 100)
        chosen = self._chosen(self._keypoints(some, gray.shape, shapes))
        if n is not None and len(chosen) < n and len(some) < len(found.score):
            some = found
            chosen = self._chosen(self._keypoints(some, gray.shape, shapes))
        points = chosen.points.copy()
        points[:, 3] = 0
        if not self.upright:
            points[:, 3] = how.angles(levels, some.take(chosen.points[:, 3].astype(np.int64)))
        return Keypoints(points, chosen.scores)

    @property
    def fits_device(self) -> bool:
        """Whether :meth:`detect_padded` finds what :meth:`detect` does."""
        return not self.spread

    def detect_padded(self, images: Tensor, masks: Tensor | None = None) -> PaddedKeypoints:
        """As every detector that can be used on a device."""
        from mkdesc.images.detectors.learned_padded_torch import Choice, detect

        if self.max_keypoints is None:
            raise ValueError("max_keypoints: expected a number on a device, got None")
        n = int(self.max_keypoints)
        choice = Choice(
            most=n,
            maxima=n if self.repeats else round(SPARE * n) + 100,
            sigma=SIGMA,
            radius=None if self.repeats else RADIUS,
            coarser=COARSER,
            upright=self.upright,
        )
        return detect(images, self._network(), LEVELS, choice, masks)

    def _places(
        self, found: Maxima, shape: tuple[int, ...], shapes: list[tuple[int, ...]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Places x and y (N,) in the image, by its shape and those of the levels."""
        down, across = (np.array([shape]) / np.array(shapes or [(1, 1)]))[found.level].T
        return (found.x + 0.5) * across - 0.5, (found.y + 0.5) * down - 0.5

    def _keypoints(
        self, found: Maxima, shape: tuple[int, ...], shapes: list[tuple[int, ...]]
    ) -> Keypoints:
        """Keypoints with their numbers in place of angles: angles are for those that are kept."""
        x, y = self._places(found, shape, shapes)
        sigma, number = SIGMA * 2 ** (found.level / 2), np.arange(len(x))
        return Keypoints(np.column_stack([x, y, sigma, number]), found.score)

    def _chosen(self, every: Keypoints) -> Keypoints:
        """Those that are kept."""
        n = self.max_keypoints
        if not self.repeats:
            at_once = None if self.spread else n
            every = one_per_place(every, RADIUS / SIGMA * every.points[:, 2], at_once)
        return spread_evenly(every, n) if self.spread and n is not None else every.strongest(n)


def _weighed(score: NDArray[np.float32], level: NDArray[np.int64]) -> NDArray[np.float32]:
    """Scores (N,) that favour coarse levels.

    >>> _weighed(np.array([1, 1, -1], np.float32), np.array([0, 1, 1])).round(2).tolist()
    [1.0, 1.100000023841858, -0.9100000262260437]
    """
    factor = COARSER ** level.astype(np.float32)
    return np.where(score > 0, score * factor, score / factor).astype(np.float32)


_loaded = cached_reader(8)(load_weights)

"""The learned detector: points that a descriptor was seen to match, by a small network's score."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.threads import checked_threads
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.learned_weights import Weights, load_weights
from mkdesc.images.detectors.places import RADIUS, one_per_place, spread_evenly

__all__ = ["LEVELS", "SIGMA", "Learned"]

#: Sigma of a keypoint of the first level: a model that looks at 20 sigma sees 32 px of a level.
SIGMA = 1.6
#: Levels of the pyramid, each 1 / sqrt 2 of the one before.
LEVELS = 6
#: Maxima for each keypoint that is wanted: some are of one place, and dropped.
SPARE = 2.0


@dataclass(frozen=True)
class Learned:
    """Keypoints by a learned score, one a place.

    Attributes
    ----------
    weights
        Name of bundled weights or a file; None: ``keypoints-turned``, or ``keypoints-upright``
        where angles do not matter.
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
    weights: str | os.PathLike[str] | None = None
    repeats: bool = False
    spread: bool = False
    engine: str = "numba"

    side: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        if self.engine not in ("numba", "torch", "reference"):
            raise ValueError(f"engine: expected numba, torch or reference, got {self.engine!r}")
        if self.spread and self.max_keypoints is None:
            raise ValueError("spread: expected max_keypoints with it, got None")
        checked_threads(self.n_threads)
        self._network()

    def _network(self) -> Weights:
        name = self.weights
        if name is None:
            name = "keypoints-upright" if self.upright else "keypoints-turned"
        return _loaded(os.fspath(name))

    def detect(self, gray: NDArray[np.uint8], mask: NDArray[np.uint8] | None = None) -> Keypoints:
        """As every :class:`~mkdesc.images.detectors.registry.Detector`."""
        network = self._network()
        engine = "numba" if self.device is None else "torch"
        engine = self.engine if self.device is None else engine
        how: Any = import_module(f"mkdesc.images.detectors.learned_{engine}")
        more = {}
        if engine == "numba":
            more["n_threads"] = checked_threads(self.n_threads)
        if engine == "torch":
            more["device"] = self.device or "cpu"
        levels, found = how.maxima(gray, network, LEVELS, **more)
        scales = 2 ** (found.level / 2)
        sizes = np.array([gray.shape]) / np.array(
            [tuple(level.shape) for level in levels] or [(1, 1)]
        )
        down, across = sizes[found.level].T
        x, y = (found.x + 0.5) * across - 0.5, (found.y + 0.5) * down - 0.5
        if mask is not None:
            inside = mask[np.rint(y).astype(int), np.rint(x).astype(int)] != 0
            kept = np.flatnonzero(inside)
            found, x, y, scales = found.take(kept), x[kept], y[kept], scales[kept]
        # Instead of an angle each has its number: angles are for those that are kept.
        number = np.arange(len(x))
        every = Keypoints(np.column_stack([x, y, SIGMA * scales, number]), found.score)
        chosen = self._chosen(every)
        number = chosen.points[:, 3].astype(np.int64)
        points = chosen.points.copy()
        points[:, 3] = 0 if self.upright else how.angles(levels, found.take(number))
        return Keypoints(points, chosen.scores)

    def _chosen(self, every: Keypoints) -> Keypoints:
        """Those that are kept."""
        n = self.max_keypoints
        if self.repeats:
            return every.strongest(n) if not self.spread or n is None else spread_evenly(every, n)
        if n is None or self.spread:
            kept = one_per_place(every, RADIUS / SIGMA * every.points[:, 2])
            return kept if n is None else spread_evenly(kept, n)
        some = every.strongest(round(SPARE * n) + 100)
        kept = one_per_place(some, RADIUS / SIGMA * some.points[:, 2], n)
        if len(kept) < n and len(some) < len(every):
            kept = one_per_place(every, RADIUS / SIGMA * every.points[:, 2], n)
        return kept


@lru_cache(maxsize=8)
def _loaded(name: str) -> Weights:
    return load_weights(name)

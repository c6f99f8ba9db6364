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
from mkdesc.images.detectors.learned_reference import (
    COARSER,
    LEVELS,
    SIGMA,
    Maxima,
    candidates,
)
from mkdesc.images.detectors.learned_weights import Weights, load_weights, weights_file
from mkdesc.images.detectors.places import RADIUS, choose_places, choose_spread

if TYPE_CHECKING:
    from torch import Tensor

    from mkdesc.images.detectors.padded_torch import PaddedKeypoints

#: What computes, by name.
ENGINES = {
    "numba": "mkdesc.images.detectors.learned_numba",
    "torch": "mkdesc.images.detectors.learned_padded_torch",
    "reference": "mkdesc.images.detectors.learned_reference",
}


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
        if self.engine not in ENGINES:
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
        how: Any = import_module(ENGINES[engine])
        more: dict[str, Any] = {}
        if engine == "numba":
            more["n_threads"] = checked_threads(self.n_threads)
        if engine == "torch":
            more["device"] = self.device or "cpu"
        levels, found = how.maxima(gray, self._network(), LEVELS, **more)
        every = _keypoints(found, gray.shape, [level.shape for level in levels])
        if mask is None:
            chosen = self._choose(every)
        else:
            x, y = np.rint(every.points[:, :2]).astype(np.int64).T
            shown = np.flatnonzero(mask[y, x])
            chosen = shown[self._choose(every.take(shown))]
        if not self.upright:
            every.points[chosen, 3] = how.angles(levels, found.take(chosen))
        return every.take(chosen)

    def _choose(self, every: Keypoints) -> NDArray[np.int64]:
        """Numbers of those that are kept."""
        n = self.max_keypoints
        if self.repeats:
            return (
                choose_spread(every, n)
                if self.spread and n is not None
                else every.strongest_first(n)
            )
        radii = RADIUS / SIGMA * every.points[:, 2]
        if self.spread and n is not None:
            kept = choose_places(every, radii)
            return kept[choose_spread(every.take(kept), n)]
        some = every.strongest_first(None if n is None else candidates(n))
        kept = choose_places(every.take(some), radii[some], n)
        if n is not None and len(kept) < n and len(some) < len(every):
            return choose_places(every, radii, n)
        return some[kept]

    @property
    def fits_device(self) -> bool:
        """Whether :meth:`detect_padded` finds what :meth:`detect` does."""
        return not self.spread

    def detect_padded(self, images: Tensor, masks: Tensor | None = None) -> PaddedKeypoints:
        """As every detector that can be used on a device."""
        from mkdesc.images.detectors.learned_padded_torch import detect

        if self.max_keypoints is None:
            raise ValueError("max_keypoints: expected a number on a device, got None")
        n = int(self.max_keypoints)
        how = {"repeats": self.repeats, "upright": self.upright}
        return detect(images, self._network(), n, masks, **how)


def _keypoints(found: Maxima, shape: tuple[int, ...], shapes: list[tuple[int, ...]]) -> Keypoints:
    """Keypoints without angles, by the shapes of the image and of its levels.

    Scores favour coarse levels:

    >>> place, level = np.zeros(3), np.array([0, 1, 1])
    >>> found = Maxima(level, level, level, place, place, np.array([1, 1, -1], np.float32))
    >>> _keypoints(found, (20, 20), [(20, 20), (14, 14)]).scores.round(2).tolist()
    [1.0, 1.100000023841858, -0.9100000262260437]
    """
    number = np.arange(max(1, len(shapes)))
    down, across = (np.array([shape]) / np.array(shapes or [(1, 1)])).T
    sigmas, factors = SIGMA * 2 ** (number / 2), COARSER ** number.astype(np.float32)
    points = np.zeros((len(found.level), 4))
    points[:, 0] = (found.x + 0.5) * across[found.level] - 0.5
    points[:, 1] = (found.y + 0.5) * down[found.level] - 0.5
    points[:, 2] = sigmas[found.level]
    factor = factors[found.level]
    score = np.where(found.score > 0, found.score * factor, found.score / factor)
    return Keypoints(points, score.astype(np.float32))


_loaded = cached_reader(8)(load_weights)

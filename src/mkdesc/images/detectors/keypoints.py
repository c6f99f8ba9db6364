"""Keypoints as arrays: where they are, how large, which way they point, how strong they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_integer
from mkdesc._support.dataframes import make_dataframe
from mkdesc.images.reading import opencv

if TYPE_CHECKING:
    import cv2
    import pandas as pd


#: Sigma of the first image of SIFT's pyramid, and images per octave that keypoints are found in.
SIFT_SIGMA, SIFT_LAYERS = 1.6, 3


@dataclass(frozen=True, eq=False)
class Keypoints:
    """Keypoints of one image.

    Attributes
    ----------
    points
        (N, 4) float64: x, y, sigma, angle. Pixel centres are at integers; sigma is half of
        OpenCV's ``size``; the angle is in degrees, clockwise as seen in the image.
    scores
        (N,) float32: how strong they are, OpenCV's ``response``.

    Examples
    --------
    >>> found = Keypoints([[10, 20, 3, 90], [30, 5, 2, 0], [4, 4, 1, 0]], [0.1, 0.7, 0.3])
    >>> found, found.strongest(2).points[:, 0].tolist()
    (Keypoints(3), [30.0, 4.0])
    """

    points: NDArray[np.float64]
    scores: NDArray[np.float32]

    def __post_init__(self) -> None:
        points, scores = as_points(self.points), np.asarray(self.scores, np.float32)
        if scores.shape != points.shape[:1]:
            raise ValueError(
                f"scores: expected one for each of {len(points)} keypoints, got {scores.shape}"
            )
        if not np.isfinite(scores).all():
            raise ValueError("scores: expected finite numbers, got NaN or infinity")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "scores", scores)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"Keypoints({len(self)})"

    @classmethod
    def empty(cls) -> Keypoints:
        """No keypoints."""
        return cls(np.empty((0, 4)), np.empty(0, np.float32))

    def take(self, indices: NDArray[Any]) -> Keypoints:
        """Some of them, by their numbers or a mask, in that order."""
        return Keypoints(self.points[indices], self.scores[indices])

    def strongest(self, n: int | None = None) -> Keypoints:
        """The ``n`` strongest (None: all), by falling score.

        Equally strong ones by place, sigma and angle, so that the order is always the same.
        """
        return self.take(self.strongest_first(n))

    def strongest_first(self, n: int | None = None) -> NDArray[np.int64]:
        """The numbers of :meth:`strongest`, in its order."""
        check_max_keypoints(n)
        chosen = np.arange(len(self))
        if n is not None and n < len(self):  # sorting all of them takes long
            enough = np.partition(self.scores, -n)[-n]
            chosen = np.flatnonzero(self.scores >= enough)
        x, y, sigma, angle = self.points[chosen].T
        order = np.lexsort((angle, sigma, y, x, -self.scores[chosen]))
        return chosen[order[:n]]

    def upright(self) -> Keypoints:
        """All with an angle of 0, one for each place and sigma; the strongest first."""
        found = self.strongest()
        points = found.points * [1, 1, 1, 0]
        _, first = np.unique(points, axis=0, return_index=True)
        return Keypoints(points, found.scores).take(np.sort(first))

    @classmethod
    def from_opencv(cls, keypoints: Sequence[cv2.KeyPoint]) -> Keypoints:
        """Of ``cv2.KeyPoint`` objects; those without an angle (-1) are upright.

        Examples
        --------
        >>> import cv2
        >>> Keypoints.from_opencv([cv2.KeyPoint(10, 20, 6, 90), cv2.KeyPoint(3, 4, 2)]).points
        array([[10., 20.,  3., 90.],
               [ 3.,  4.,  1.,  0.]])
        """
        points = np.empty((len(keypoints), 4))
        points[:, :2] = opencv().KeyPoint.convert(keypoints) if len(keypoints) else 0
        points[:, 2] = [keypoint.size / 2 for keypoint in keypoints]
        points[:, 3] = [max(keypoint.angle, 0.0) for keypoint in keypoints]
        return cls(points, np.array([keypoint.response for keypoint in keypoints], np.float32))

    def to_dataframe(self) -> pd.DataFrame:
        """A data frame of pandas with the columns ``x``, ``y``, ``sigma``, ``angle``, ``score``.

        Examples
        --------
        >>> Keypoints([[10, 20, 3, 90]], [0.5]).to_dataframe()
              x     y  sigma  angle  score
        0  10.0  20.0    3.0   90.0    0.5
        """
        names = ("x", "y", "sigma", "angle")
        return make_dataframe(
            {**dict(zip(names, self.points.T, strict=True)), "score": self.scores}
        )

    def to_opencv(self) -> list[cv2.KeyPoint]:
        """``cv2.KeyPoint`` objects.

        Their ``octave`` is SIFT's for such a sigma, so that ``cv2.SIFT.compute`` looks at them in
        the right image of its pyramid.

        Examples
        --------
        >>> keypoint, = Keypoints([[10, 20, 3, 90]], [0.5]).to_opencv()
        >>> keypoint.pt, keypoint.size, keypoint.angle, keypoint.response
        ((10.0, 20.0), 6.0, 90.0, 0.5)
        """
        make = opencv("cv2.KeyPoint (Features.extract gives arrays)").KeyPoint
        level = np.rint(SIFT_LAYERS * np.log2(self.points[:, 2] / SIFT_SIGMA)).astype(np.int64)
        octave, layer = np.divmod(np.maximum(level, 1 - SIFT_LAYERS) - 1, SIFT_LAYERS)
        octaves = (octave & 255 | (layer + 1) << 8).tolist()
        return [
            make(x, y, 2 * sigma, angle % 360, score, octave)
            for (x, y, sigma, angle), score, octave in zip(
                self.points.tolist(), self.scores.tolist(), octaves, strict=True
            )
        ]


def as_points(points: ArrayLike) -> NDArray[np.float64]:
    """Check points (N, 4) of x, y, sigma, angle and return them as float64.

    Examples
    --------
    >>> as_points([[10, 20, 3, 90]])
    array([[10., 20.,  3., 90.]])
    """
    array = np.asarray(points, np.float64)
    if array.size == 0:
        array = array.reshape(-1, 4)
    if array.ndim != 2 or array.shape[1] != 4:
        raise ValueError(f"points: expected (N, 4) of x, y, sigma, angle, got {array.shape}")
    bad = ~(np.isfinite(array).all(axis=1) & (array[:, 2] > 0))
    if bad.any():
        i = int(bad.argmax())
        raise ValueError(f"points[{i}]: expected finite numbers and sigma > 0, got {array[i]}")
    return array


def check_max_keypoints(number: object) -> None:
    """Refuse what is no number of keypoints; None means all of them."""
    check_integer("max_keypoints", number, optional=True)

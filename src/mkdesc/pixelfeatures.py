"""Features of a pixel besides its position and gradient angle: intensity and local shape.

A kernel over an angle has a feature map of cosines and sines; these have theirs written down, and
their kernel is its dot product. In a product of kernels both are factors like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Intensity", "Shape", "compress", "shape_features"]

Array = NDArray[np.float64]

#: Added to the squared strength of the second derivatives before its square root.
SHAPE_EPSILON = 1e-4


def compress(intensity: Array) -> Array:
    """Squeeze standardised intensities into (-1, 1): ``q / (1 + |q|)``."""
    return intensity / (1 + np.abs(intensity))


@dataclass(frozen=True, slots=True)
class Intensity:
    """How bright a pixel is: ``z``, and with ``n = 2`` also ``|z|``.

    ``z`` is the squeezed intensity of :func:`compress`.

    Examples
    --------
    >>> Intensity(2).feature_map(np.array([-0.5, 0.25])).tolist()
    [[-0.5, 0.5], [0.25, 0.25]]
    """

    n: int = 2

    def __post_init__(self) -> None:
        if self.n not in (1, 2):
            raise ValueError(f"intensity: expected 1 or 2 features, got {self.n!r}")

    @property
    def dims(self) -> int:
        """Number of features."""
        return self.n

    def feature_map(self, z: Array) -> Array:
        """Map squeezed intensities (...) to features (..., n)."""
        return np.stack([z, np.abs(z)][: self.n], axis=-1)

    def __str__(self) -> str:
        return f"({self.n})"


def shape_features(blob: Array, ridge: Array, saddle: Array) -> Array:
    """Features (..., 9) of second derivatives: strength times polynomials of their direction.

    The three derivatives, divided by their strength c, are a point on the unit sphere (blob,
    ridge direction, saddle). The features are ``sqrt(c)`` times the polynomials up to degree two
    that are independent on the sphere.

    Examples
    --------
    >>> shape_features(np.array(-1.0), np.array(0.0), np.array(0.0)).round(2).tolist()
    [1.0, -1.0, 0.0, 0.0, 0.67, -0.0, -0.0, 0.0, 0.0]
    """
    strength = np.sqrt(blob**2 + ridge**2 + saddle**2 + SHAPE_EPSILON)
    l, d, e = blob / strength, ridge / strength, saddle / strength  # noqa: E741
    one = np.ones_like(l)
    polynomials = [one, l, d, e, l * l - 1 / 3, l * d, l * e, d * d - e * e, d * e]
    return np.sqrt(strength)[..., None] * np.stack(polynomials, axis=-1)


@dataclass(frozen=True, slots=True)
class Shape:
    """The local second-order shape of a pixel's surroundings; see :func:`shape_features`."""

    @property
    def dims(self) -> int:
        """Number of features."""
        return 9

    def feature_map(self, features: Array) -> Array:
        """The features themselves, (..., 9)."""
        return features

    def __str__(self) -> str:
        return ""

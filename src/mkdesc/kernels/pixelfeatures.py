"""Features of a pixel besides its position and gradient angle: intensity, shape, one's own.

A kernel over an angle has a feature map of cosines and sines; these have theirs written down, and
their kernel is its dot product. In a product of kernels both are factors like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True, slots=True)
class OwnFeature:
    """A feature that its user computes; see :func:`mkdesc.register_feature`."""

    name: str
    dims: int

    def feature_map(self, features: Array) -> Array:
        """The features themselves, (..., dims)."""
        return features

    def __str__(self) -> str:
        return f"({self.dims})"


#: What computes the features registered so far, and how many numbers each has.
_OWN: dict[str, tuple[Callable[[Array], Any], int]] = {}


def remember_feature(name: str, function: Callable[[Array], Any], dims: int) -> OwnFeature:
    """Keep what computes a feature; its name is checked by who calls this."""
    _OWN[name] = function, dims
    return OwnFeature(name, dims)


def registered_feature(name: str) -> OwnFeature | None:
    """The feature registered by a name, here or by an installed package, if there is one."""
    if name not in _OWN:
        _load_installed()
    return OwnFeature(name, _OWN[name][1]) if name in _OWN else None


@cache
def _load_installed() -> None:
    """Let installed packages register their features: in every process, workers' too.

    Their entry points of the group ``mkdesc.features`` are called; each registers what it has.
    """
    for entry in entry_points(group="mkdesc.features"):
        entry.load()()


def own_features(feature: OwnFeature, prepared: Array) -> Array:
    """The registered function's features (N, S, S, dims) of prepared patches (N, S, S)."""
    if registered_feature(feature.name) != feature:
        raise ValueError(f"{feature.name}{feature}: not registered; see mkdesc.register_feature")
    found = np.asarray(_OWN[feature.name][0](prepared), np.float64)
    expected = (*prepared.shape, feature.dims)
    if found.shape != expected:
        raise ValueError(
            f"feature {feature.name!r}: expected an array {expected}, got {found.shape}"
        )
    if not np.isfinite(found).all():
        raise ValueError(f"feature {feature.name!r} has NaN or infinity")
    return found

"""A product of kernels over the attributes of a pixel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.text import shorten
from mkdesc.kernels.angles import AngleKernel
from mkdesc.kernels.pixelfeatures import Intensity, OwnFeature, Shape
from mkdesc.kernels.pixelvalues import SPATIAL

#: Attributes of a gradient: the angle itself, and the angle relative to ``phi``.
ANGULAR = ("theta", "relative_theta")
#: Other features of a pixel.
FEATURES: dict[str, type[Intensity] | type[Shape]] = {"intensity": Intensity, "shape": Shape}
#: All names that one's own features cannot have.
BUILT_IN = (*SPATIAL, *ANGULAR, *FEATURES, "weight")

#: A factor of a product: a kernel over an angle, or an explicit feature.
Factor = AngleKernel | Intensity | Shape | OwnFeature


@dataclass(frozen=True)
class Product:
    """A product of kernels, one per pixel attribute; its feature map is their Kronecker product.

    Features and gradient attributes come first (slowest) in the feature map, then the positions;
    both in the order in which they are written. Pixels are weighted by the square root of their
    gradient magnitude, except in products over intensity or shape that leave the gradient out.
    """

    kernels: tuple[tuple[str, Factor], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.kernels]
        known = (*SPATIAL, *ANGULAR, *FEATURES)
        if not names:
            raise ValueError("a product needs at least one kernel")
        for name, factor in self.kernels:
            if isinstance(factor, OwnFeature) and factor.name == name:
                continue
            if name not in known:
                raise ValueError(
                    f"unknown attribute {shorten(name)!r}: expected one of {', '.join(known)}"
                )
            if not isinstance(factor, FEATURES.get(name, AngleKernel)):
                raise ValueError(f"attribute {name!r} cannot have the kernel {factor!r}")
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"attribute {name!r} is given twice in {shorten(str(self))}")
        if len(self.explicit) + bool(self.angular) > 2:
            raise ValueError(
                f"{shorten(str(self))}: at most two of gradient angle, intensity, shape, your own"
            )

    def __str__(self) -> str:
        return "*".join(f"{name}{factor}" for name, factor in self.kernels)

    @property
    def explicit(self) -> tuple[tuple[str, Factor], ...]:
        """The factors over intensity, shape and one's own features."""
        return tuple(item for item in self.kernels if not isinstance(item[1], AngleKernel))

    @property
    def angular(self) -> tuple[tuple[str, AngleKernel], ...]:
        """The kernels over the gradient angle."""
        return tuple(
            (name, k) for name, k in self.kernels if name in ANGULAR and isinstance(k, AngleKernel)
        )

    @property
    def spatial(self) -> tuple[tuple[str, Factor], ...]:
        """The kernels over the position."""
        return tuple(item for item in self.kernels if item[0] in SPATIAL)

    @property
    def weighted(self) -> bool:
        """Whether pixels are weighted by their gradients."""
        return bool(self.angular) or not self.explicit

    @property
    def dims(self) -> int:
        """Length of the feature map."""
        return math.prod(kernel.dims for _, kernel in self.kernels)

    def feature_map(self, values: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Map what :func:`~mkdesc.kernels.pixelvalues.pixel_values` returns to (..., dims).

        >>> from mkdesc.kernels import VonMises
        >>> v = {"x": np.zeros(2), "theta": np.ones(2)}
        >>> Product((("theta", VonMises(8, 3)), ("x", VonMises(1, 1)))).feature_map(v).shape
        (2, 21)
        """
        ordered = (*self.explicit, *self.angular, *self.spatial)
        return reduce(_kronecker, [k.feature_map(values[name]) for name, k in ordered])

    def responses(
        self,
        p: Mapping[str, NDArray[np.float64]],
        q: Mapping[str, NDArray[np.float64]],
        exact: bool = True,
    ) -> NDArray[np.float64]:
        """The kernel between all of N pixels and all of M, (N, M); exact or truncated.

        >>> from mkdesc.kernels import VonMises
        >>> p, q = {"theta": np.zeros(2)}, {"theta": np.array([0, np.pi, 1])}
        >>> Product((("theta", VonMises(8, 3)),)).responses(p, q)[0].round(3).tolist()
        [1.0, 0.0, 0.025]
        """
        k = np.ones(())
        for name, factor in self.kernels:
            if isinstance(factor, AngleKernel):
                delta = np.subtract.outer(p[name], q[name])
                k = k * (factor(delta) if exact else factor.approximate(delta))
            else:  # an explicit feature's kernel is the dot product of its features
                k = k * (factor.feature_map(p[name]) @ factor.feature_map(q[name]).T)
        return k


def _kronecker(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kronecker product of the last axes."""
    return (a[..., :, None] * b[..., None, :]).reshape(*a.shape[:-1], a.shape[-1] * b.shape[-1])

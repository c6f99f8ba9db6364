"""Parametrizations: products of kernels over pixel attributes, and sums of such products.

A parametrization is data. The paper's two are

>>> print(POLAR)
phi(8,2)*rho(8,2)*relative_theta(8,3)
>>> print(CARTESIAN)
x(1,1)*y(1,1)*theta(8,3)

and one's own is a line, in Python or as text:

>>> mine = product(rho=VonMises(4, 2), theta=VonMises(8, 3))
>>> mine == as_parametrization("rho(4,2)*theta(8,3)")
True
>>> (POLAR + mine).dims
210
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from mkdesc.kernels import VonMises
from mkdesc.patchgrid import PatchGrid

__all__ = [
    "CARTESIAN",
    "CARTESIAN_RELATIVE",
    "NAMED",
    "POLAR",
    "POLAR_ABSOLUTE",
    "Parametrization",
    "Product",
    "as_parametrization",
    "attributes",
    "product",
]

#: Attributes of a pixel's position, with the factor that maps each to an angle.
SPATIAL = {"x": np.pi / 2, "y": np.pi / 2, "rho": np.pi, "phi": 1.0}
#: Attributes of its gradient: the angle itself, and the angle relative to ``phi``.
ANGULAR = ("theta", "relative_theta")


def attributes(grid: PatchGrid, theta: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """All attributes of the pixels of a patch as angles, each of the shape of ``theta``.

    Parameters
    ----------
    grid
        Positions of the pixels.
    theta
        Gradient angles, shape (W, W).
    """
    position = {name: factor * getattr(grid, name) for name, factor in SPATIAL.items()}
    return {**position, "theta": theta, "relative_theta": theta - grid.phi}


@dataclass(frozen=True)
class Product:
    """A product of kernels, one per pixel attribute; its feature map is their Kronecker product.

    Gradient attributes come first (slowest) in the feature map, then the positions; both in
    the order in which they are written.
    """

    kernels: tuple[tuple[str, VonMises], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.kernels]
        known = (*SPATIAL, *ANGULAR)
        if not names:
            raise ValueError("a product needs at least one kernel")
        for name in names:
            if name not in known:
                raise ValueError(f"unknown attribute {name!r}: expected one of {', '.join(known)}")
            if names.count(name) > 1:
                raise ValueError(f"attribute {name!r} is given twice in {self}")

    def __str__(self) -> str:
        return "*".join(f"{name}({k.kappa:.17g},{k.n})" for name, k in self.kernels)

    @property
    def angular(self) -> tuple[tuple[str, VonMises], ...]:
        """The kernels over the gradient angle."""
        return tuple(item for item in self.kernels if item[0] in ANGULAR)

    @property
    def spatial(self) -> tuple[tuple[str, VonMises], ...]:
        """The kernels over the position."""
        return tuple(item for item in self.kernels if item[0] in SPATIAL)

    @property
    def dims(self) -> int:
        """Length of the feature map."""
        return int(np.prod([kernel.dims for _, kernel in self.kernels]))

    def feature_map(self, values: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Map attributes of shape (...) to features (..., dims).

        >>> v = {"x": np.zeros(2), "y": np.zeros(2), "theta": np.ones(2)}
        >>> CARTESIAN.parts[0].feature_map(v).shape
        (2, 63)
        """
        maps = [k.feature_map(values[name]) for name, k in (*self.angular, *self.spatial)]
        return reduce(_kronecker, maps)


def _kronecker(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kronecker product of the last axes."""
    return (a[..., :, None] * b[..., None, :]).reshape(*a.shape[:-1], -1)


@dataclass(frozen=True)
class Parametrization:
    """One or more products of kernels, whose descriptors are normalised and concatenated.

    Build it with :func:`product` and ``+``, or from text with :func:`as_parametrization`.
    """

    parts: tuple[Product, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a parametrization needs at least one product of kernels")

    def __add__(self, other: object) -> Parametrization:
        if not isinstance(other, Parametrization):
            return NotImplemented
        return Parametrization(self.parts + other.parts)

    def __str__(self) -> str:
        return " + ".join(str(part) for part in self.parts)

    @property
    def dims(self) -> int:
        """Length of the raw descriptor."""
        return sum(part.dims for part in self.parts)


def product(**kernels: VonMises) -> Parametrization:
    """A parametrization that is a single product of kernels over named attributes.

    Parameters
    ----------
    **kernels
        Any of ``x``, ``y``, ``rho``, ``phi``, ``theta``, ``relative_theta``.

    Examples
    --------
    >>> product(x=VonMises(1, 1), y=VonMises(1, 1), theta=VonMises(8, 3)) == CARTESIAN
    True
    """
    return Parametrization((Product(tuple(kernels.items())),))


_PHI, _RHO, _X, _THETA = VonMises(8, 2), VonMises(8, 2), VonMises(1, 1), VonMises(8, 3)

#: The paper's polar kernel (Bursuc et al.): position and the gradient angle relative to it.
POLAR = product(phi=_PHI, rho=_RHO, relative_theta=_THETA)
#: The paper's cartesian kernel, with the absolute gradient angle.
CARTESIAN = product(x=_X, y=_X, theta=_THETA)
#: The two other parametrizations of the paper's Figure 2.
POLAR_ABSOLUTE = product(phi=_PHI, rho=_RHO, theta=_THETA)
CARTESIAN_RELATIVE = product(x=_X, y=_X, relative_theta=_THETA)

#: Names that :func:`as_parametrization` understands.
NAMED = {
    "polar": POLAR,
    "cartesian": CARTESIAN,
    "polar-absolute": POLAR_ABSOLUTE,
    "cartesian-relative": CARTESIAN_RELATIVE,
}

_KERNEL = re.compile(r"\s*(\w+)\s*\(\s*([-+.\w]+)\s*,\s*(\d+)\s*\)\s*")


def as_parametrization(spec: str | Parametrization) -> Parametrization:
    """Read a parametrization from text such as ``"polar+cartesian"`` or ``"x(1,1)*theta(8,3)"``.

    Names and products of ``attribute(kappa,n)`` may be mixed, joined by ``+``; ``str`` of a
    parametrization is such a text.

    Examples
    --------
    >>> as_parametrization("polar+cartesian") == POLAR + CARTESIAN
    True
    """
    if isinstance(spec, Parametrization):
        return spec
    if not isinstance(spec, str):
        raise ValueError(f"parametrization must be text or a Parametrization, got {spec!r}")
    parts: list[Product] = []
    # A '+' inside parentheses belongs to a number (1e+3).
    for text in re.split(r"\+(?![^(]*\))", spec):
        name = text.strip().lower()
        parts += NAMED[name].parts if name in NAMED else [_parse_product(text, spec)]
    return Parametrization(tuple(parts))


def _parse_product(text: str, spec: str) -> Product:
    kernels = []
    for factor in text.split("*"):
        match = _KERNEL.fullmatch(factor)
        if match is None:
            raise ValueError(
                f"parametrization {spec!r}: cannot read {factor.strip()!r}; expected one of "
                f"{', '.join(NAMED)}, or attribute(kappa,n) such as theta(8,3)"
            )
        name, kappa, n = match.groups()
        try:
            kernels.append((name, VonMises(float(kappa), int(n))))
        except ValueError as error:
            raise ValueError(f"parametrization {spec!r}, {factor.strip()!r}: {error}") from None
    return Product(tuple(kernels))

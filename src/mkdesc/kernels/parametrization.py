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

Products may also have factors over a pixel's intensity and local shape; the extended descriptor is

>>> print(EXTENDED)
standard: x(8,2)*y(8,2)*theta(8,3) + x(8,2)*y(8,2)*intensity(2) + x(8,2)*y(8,2)*shape +
x(8,2)*y(8,2)*intensity(1)*theta(8,2)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mkdesc._support.text import shorten
from mkdesc.kernels.pixelfeatures import Intensity, OwnFeature, Shape, registered_feature
from mkdesc.kernels.preparation import (
    FINE_24,
    PAPER,
    PREPARATIONS,
    STANDARD,
    STANDARD_24,
    Preparation,
)
from mkdesc.kernels.products import Factor, Product
from mkdesc.kernels.vonmises import VonMises

#: Longest raw descriptor; anything longer is a slip of the pen.
MOST_DIMS = 100_000
#: Most products, and the longest text: reading takes a time that grows with its square.
MOST_PRODUCTS = 50
MOST_CHARACTERS = 5000


def _check_length(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(
            f"parametrization {shorten(text)!r}: expected at most {MOST_CHARACTERS} characters, "
            f"got {len(text)}"
        )


def _check_products(count: int) -> None:
    if count > MOST_PRODUCTS:
        raise ValueError(
            f"parametrization: expected at most {MOST_PRODUCTS} products, got {count}"
        )


@dataclass(frozen=True)
class Parametrization:
    """One or more products of kernels, whose descriptors are normalised and concatenated.

    Build it with :func:`product` and ``+``, or from text with :func:`as_parametrization`.

    Attributes
    ----------
    products
        In the order of the descriptor.
    preparation
        What happens to a patch before.

    Examples
    --------
    >>> both = POLAR + CARTESIAN
    >>> len(both.products), both == as_parametrization("polar+cartesian")
    (2, True)
    """

    products: tuple[Product, ...]
    preparation: Preparation = PAPER

    def __post_init__(self) -> None:
        if not self.products:
            raise ValueError("a parametrization needs at least one product of kernels")
        if self.preparation.name not in PREPARATIONS:
            raise ValueError(
                f"preparation: expected one of {', '.join(PREPARATIONS)}, got "
                f"{self.preparation.name!r}"
            )
        _check_products(len(self.products))
        text = str(self)
        _check_length(text)  # what can be written can be read again
        if self.dims > MOST_DIMS:
            raise ValueError(
                f"{shorten(text)}: {self.dims} numbers per descriptor, at most {MOST_DIMS}"
            )
        for one in self.products:
            if one.explicit and not self.preparation.standardise:
                raise ValueError(
                    f"{shorten(str(one))}: such features mean nothing where contrast is not "
                    "removed; use the preparation 'standard'"
                )

    def __add__(self, other: object) -> Parametrization:
        if not isinstance(other, Parametrization):
            return NotImplemented
        if other.preparation != self.preparation:
            raise ValueError(
                f"cannot add parametrizations prepared as {self.preparation.name!r} and as "
                f"{other.preparation.name!r}"
            )
        return Parametrization(self.products + other.products, self.preparation)

    def __str__(self) -> str:
        text = " + ".join(str(one) for one in self.products)
        return text if self.preparation == PAPER else f"{self.preparation.name}: {text}"

    def __repr__(self) -> str:
        return f"as_parametrization({str(self)!r})"

    @property
    def own(self) -> tuple[OwnFeature, ...]:
        """The features in it that were registered, each once."""
        factors = (factor for one in self.products for _, factor in one.kernels)
        return tuple(dict.fromkeys(f for f in factors if isinstance(f, OwnFeature)))

    @property
    def dims(self) -> int:
        """Length of the raw descriptor."""
        return sum(one.dims for one in self.products)


def product(preparation: Preparation = PAPER, **kernels: Factor) -> Parametrization:
    """A parametrization that is a single product of kernels over named attributes.

    Parameters
    ----------
    preparation
        What happens to a patch before.
    **kernels
        Any of ``x``, ``y``, ``rho``, ``phi``, ``theta``, ``relative_theta``, each with a
        :class:`~mkdesc.VonMises`; ``intensity`` with
        :class:`~mkdesc.kernels.Intensity`; ``shape`` with
        :class:`~mkdesc.kernels.Shape`; a name of one's own with what
        :func:`mkdesc.register_feature` returned.

    Examples
    --------
    >>> product(x=VonMises(1, 1), y=VonMises(1, 1), theta=VonMises(8, 3)) == CARTESIAN
    True
    """
    return Parametrization((Product(tuple(kernels.items())),), preparation)


_PHI, _RHO, _X, _THETA = VonMises(8, 2), VonMises(8, 2), VonMises(1, 1), VonMises(8, 3)

#: The paper's polar kernel (Bursuc et al.): position and the gradient angle relative to it.
POLAR = product(phi=_PHI, rho=_RHO, relative_theta=_THETA)
#: The paper's cartesian kernel, with the absolute gradient angle.
CARTESIAN = product(x=_X, y=_X, theta=_THETA)
#: Polar positions with the absolute gradient angle, as in the paper's Figure 2.
POLAR_ABSOLUTE = product(phi=_PHI, rho=_RHO, theta=_THETA)
#: Cartesian positions with the gradient angle relative to them, as in the paper's Figure 2.
CARTESIAN_RELATIVE = product(x=_X, y=_X, relative_theta=_THETA)


def _extended(preparation: Preparation, position: VonMises) -> Parametrization:
    """Gradient, intensity, shape, and products of the first two, on one cartesian kernel."""
    return (
        product(preparation, x=position, y=position, theta=VonMises(8, 3))
        + product(preparation, x=position, y=position, intensity=Intensity(2))
        + product(preparation, x=position, y=position, shape=Shape())
        + product(
            preparation, x=position, y=position, intensity=Intensity(1), theta=VonMises(8, 2)
        )
    )


#: Beyond the paper: intensity and local shape beside the gradient, on standardised patches.
EXTENDED = _extended(STANDARD, VonMises(8, 2))
#: The same on smaller patches.
EXTENDED_24 = _extended(STANDARD_24, VonMises(8, 2))
#: And with more detail, in the patch and of where it is: for large squares around keypoints.
EXTENDED_FINE = _extended(FINE_24, VonMises(8, 3))

#: Names that :func:`as_parametrization` understands.
NAMED = {
    "polar": POLAR,
    "cartesian": CARTESIAN,
    "polar-absolute": POLAR_ABSOLUTE,
    "cartesian-relative": CARTESIAN_RELATIVE,
    "extended": EXTENDED,
    "extended-24": EXTENDED_24,
    "extended-fine": EXTENDED_FINE,
}

_KERNEL = re.compile(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*")


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
    _check_length(spec)
    start, colon, rest = spec.partition(":")
    preparation = PAPER
    if colon:
        if start.strip() not in PREPARATIONS:
            raise ValueError(
                f"parametrization {shorten(spec)!r}: unknown preparation "
                f"{shorten(start.strip())!r}, expected one of {', '.join(PREPARATIONS)}"
            )
        preparation = PREPARATIONS[start.strip()]
    found: list[Parametrization] = []
    # A '+' inside parentheses belongs to a number (1e+3).
    texts = re.split(r"\+(?![^(]*\))", rest if colon else spec)
    _check_products(len(texts))
    for text in texts:
        name = text.strip().lower()
        if name in NAMED and not colon:
            found.append(NAMED[name])
        else:
            found.append(Parametrization((_parse_product(text, spec),), preparation))
    return sum(found[1:], found[0])


def _parse_product(text: str, spec: str) -> Product:
    kernels: list[tuple[str, Factor]] = []
    for factor in text.split("*"):
        match = _KERNEL.fullmatch(factor)
        name, arguments = match.groups() if match else ("", None)
        try:
            kernels.append((name, _parse_factor(name, arguments)))
        except ValueError as error:
            raise ValueError(
                f"parametrization {shorten(spec)!r}: cannot read {shorten(factor.strip())!r}; "
                f"{shorten(str(error), 400)}"
            ) from None
    return Product(tuple(kernels))


def _parse_factor(name: str, arguments: str | None) -> Factor:
    numbers = [] if arguments is None else arguments.split(",")
    if name == "shape" and arguments is None:
        return Shape()
    if name == "intensity" and len(numbers) == 1:
        return Intensity(int(numbers[0]))
    own = registered_feature(name)
    if own is not None:
        if numbers != [str(own.dims)]:
            raise ValueError(f"{name!r} is registered with other dimensions, {name}({own.dims})")
        return own
    if len(numbers) == 2:
        return VonMises(float(numbers[0]), int(numbers[1]))
    raise ValueError(
        f"expected one of {', '.join(NAMED)}, attribute(kappa,n) such as theta(8,3), "
        "intensity(1), intensity(2), shape, or a name given to mkdesc.register_feature"
    )

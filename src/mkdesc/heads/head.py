"""A head: the stages that a raw descriptor goes through, as data.

Every head is a list of four kinds of stages. The linear ones of the paper are

>>> rng = np.random.default_rng(0)
>>> project = Affine(rng.normal(size=(575, 128)))
>>> linear = Head((Power(0.75), L2(), project, L2()))
>>> linear.dims_in, linear.dims_out
(575, 128)

and a hidden layer beside the projection is two affine stages with a rectifier between them, which
spares the first 128 numbers:

>>> both = Affine(rng.normal(size=(575, 640)))
>>> down = Affine(rng.normal(size=(640, 128)))
>>> hidden = Head((Power(0.75), L2(), both, Relu(128), down, L2()))
>>> hidden.apply(rng.normal(size=(3, 575))).shape, hidden.linear() is None
((3, 128), True)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_integer, check_number

Single = NDArray[np.float32]


@dataclass(frozen=True)
class Power:
    """Every number raised to a power, its sign kept.

    >>> Power(0.5).apply(np.array([[0.36, -0.64]], np.float32)).round(6).tolist()
    [[0.6000000238418579, -0.800000011920929]]
    """

    exponent: float

    def __post_init__(self) -> None:
        check_number("power", self.exponent, above=0, most=1)
        object.__setattr__(self, "exponent", float(self.exponent))

    def __str__(self) -> str:
        return f"power {self.exponent:g}"

    def apply(self, x: Single) -> Single:
        """Raise (N, D)."""
        return np.copysign(np.abs(x) ** x.dtype.type(self.exponent), x)


@dataclass(frozen=True, eq=False)
class Affine:
    """``(x - centre) @ matrix + offset``.

    Attributes
    ----------
    matrix
        (D, d) float32, one column per number of the result.
    centre
        (D,) float32; default: zeros.
    offset
        (d,) float32; default: zeros.
    """

    matrix: Single
    centre: Single = field(default_factory=lambda: _LEFT_OUT)
    offset: Single = field(default_factory=lambda: _LEFT_OUT)

    def __post_init__(self) -> None:
        shape = np.shape(self.matrix)
        if len(shape) != 2 or not min(shape):
            raise ValueError(f"matrix: expected (D, d), got {shape}")
        for name, expected in (("matrix", shape), ("centre", shape[:1]), ("offset", shape[1:])):
            value = getattr(self, name)
            single = np.zeros(expected, np.float32) if value is _LEFT_OUT else _single(name, value)
            if single.shape != expected:
                raise ValueError(f"{name}: expected {expected}, got {single.shape}")
            single.flags.writeable = False
            object.__setattr__(self, name, single)

    def __str__(self) -> str:
        return f"{self.matrix.shape[0]} -> {self.matrix.shape[1]}"

    @property
    def constant(self) -> Single:
        """What is added to ``x @ matrix``, (d,), for those who compute it that way."""
        centre = self.centre.astype(np.float64) @ self.matrix.astype(np.float64)
        return (self.offset - centre).astype(np.float32)

    def apply(self, x: Single) -> Single:
        """Map (N, D) to (N, d)."""
        centred: Single = x - self.centre
        return centred @ self.matrix + self.offset


_LEFT_OUT: Single = np.zeros(0, np.float32)


def _single(name: str, value: ArrayLike) -> Single:
    """Finite real numbers as float32, in a new array."""
    found = np.asarray(value)
    with np.errstate(over="ignore"):
        single = np.array(found, np.float32, order="C") if found.dtype.kind == "f" else None
    if single is None or not np.isfinite(single).all():
        raise ValueError(f"{name}: has NaN, infinity or no real numbers")
    return single


@dataclass(frozen=True)
class Relu:
    """Negative numbers become zero, those from ``start`` on."""

    start: int = 0

    def __post_init__(self) -> None:
        check_integer("start", self.start, 0)

    def __str__(self) -> str:
        return f"relu {self.start}"

    def apply(self, x: Single) -> Single:
        """Rectify (N, D)."""
        y = x.copy()
        np.maximum(y[:, self.start :], 0, out=y[:, self.start :])
        return y


@dataclass(frozen=True)
class L2:
    """Rows divided by their norms; a row of zeros stays."""

    def __str__(self) -> str:
        return "l2"

    def apply(self, x: Single) -> Single:
        """Normalise (N, D)."""
        norms = np.sqrt(np.einsum("ij,ij->i", x, x))
        return x / np.maximum(norms, np.finfo(np.float32).tiny)[:, None]


Stage = Power | Affine | Relu | L2


def signed_power(X: NDArray[Any], power: float) -> NDArray[Any]:
    """Descriptors (N, D) with every number raised to a power, its sign kept; then l2.

    >>> signed_power(np.array([[0.36, -0.64]]), 0.5).round(6).tolist()
    [[0.6, -0.8]]
    """
    return X if power == 1 else L2().apply(Power(power).apply(X))


@dataclass(frozen=True, eq=False, repr=False)
class Head:
    """Stages that turn raw descriptors (N, dims_in) into unit vectors (N, dims_out).

    Attributes
    ----------
    stages
        At least one :class:`Affine`, whose sizes fit each other; :class:`L2` comes last.

    Examples
    --------
    >>> Head((Power(0.75), L2(), Affine(np.ones((3, 2))), Relu(1), L2()))
    Head(power 0.75, l2, 3 -> 2, relu 1, l2)
    """

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        for stage in self.stages:
            if not isinstance(stage, Stage):
                raise ValueError(f"stages: expected Power, Affine, Relu and L2, got {stage!r}")
        if not self._affine:
            raise ValueError("stages: expected at least one Affine, got none")
        if not isinstance(self.stages[-1], L2):
            raise ValueError(f"stages: expected L2 to be the last, got {self.stages[-1]!r}")
        dims = self.dims_in
        for stage in self.stages:
            if isinstance(stage, Affine):
                if len(stage.matrix) != dims:
                    raise ValueError(
                        f"stages: a matrix {stage.matrix.shape} follows {dims} numbers"
                    )
                dims = stage.matrix.shape[1]
            elif isinstance(stage, Relu) and stage.start >= dims:
                raise ValueError(f"stages: Relu from {stage.start} follows {dims} numbers")

    def __str__(self) -> str:
        return ", ".join(map(str, self.stages))

    def __repr__(self) -> str:
        return f"Head({self})"

    @property
    def _affine(self) -> tuple[Affine, ...]:
        return tuple(stage for stage in self.stages if isinstance(stage, Affine))

    @property
    def dims_in(self) -> int:
        """Length of the raw descriptor."""
        return len(self._affine[0].matrix)

    @property
    def dims_out(self) -> int:
        """Length of the result."""
        return self._affine[-1].matrix.shape[1]

    def apply(self, X: NDArray[np.floating]) -> Single:
        """Map raw descriptors (N, dims_in) to unit vectors (N, dims_out)."""
        y = np.asarray(X, np.float32)
        for stage in self.stages:
            y = stage.apply(y)
        return y

    def linear(self) -> Affine | None:
        """The one affine stage there is, powers and norms aside; None if there is more to it.

        That is what patch maps and inspection can show.
        """
        if len(self._affine) > 1 or any(isinstance(stage, Relu) for stage in self.stages):
            return None
        return self._affine[0]

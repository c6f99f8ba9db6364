r"""The algebra of descriptors: what any backend computes, free of how it does so.

Every feature is a trigonometric polynomial of the gradient angle ``theta`` whose coefficients
are functions of the position alone (``cos n(theta - phi)`` included), perhaps times features of
intensity and shape. A raw descriptor is therefore a fixed linear combination of sums, over the
patch, of a *plane* (a product of pixel quantities, such as the weight times ``cos 2 theta``)
times a *spatial function*:

.. math:: d_c = \sum_{t:\,c_t = c} a_t \sum_{y,x} P_{p_t}(y, x)\, F_{f_t}(y, x)

after which its parts, and then the whole, are divided by their norms. With ``planes`` (N, P, S, S)
that is, in numpy or in any other library of arrays,

    sums = np.einsum("npyx,fyx->npf", planes, terms.functions)
    raw = np.zeros((len(planes), terms.dims))
    np.add.at(raw.T, terms.component, (sums[:, terms.plane, terms.function] * terms.factor).T)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product as all_of

import numpy as np
from numpy.typing import NDArray

from mkdesc.kernels.angles import AngleKernel
from mkdesc.kernels.grid import PatchGrid, patch_grid
from mkdesc.kernels.parametrization import Parametrization
from mkdesc.kernels.pixelvalues import positions
from mkdesc.kernels.products import Product

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Relative size below which a function or a coefficient is rounding, not content.
ROUNDING = 1e-10

#: A pixel quantity: a name and a number. ("theta", k): the k-th of 1, cos, sin, cos 2, sin 2, ...
#: of the gradient angle, times the pixel's weight; ("intensity", k): z, ``|z|``; ("shape", k): the
#: k-th of :func:`~mkdesc.kernels.pixelfeatures.shape_features`; (name, k): of one's own feature.
Quantity = tuple[str, int]
#: A plane: the product of these one or two quantities.
Plane = tuple[Quantity, ...]


@dataclass(frozen=True, eq=False)
class Separation:
    """Spatial functions as products of one of x and one of y.

    ``functions[f] == factor[f] * outer(down[of_y[f]], across[of_x[f]])``, to rounding.

    Attributes
    ----------
    across, down
        Functions of x (A, S) and of y (B, S), float64.
    of_x, of_y
        (F,) int64: the two that make each spatial function.
    factor
        (F,) float64: and what they are multiplied by.
    """

    across: Array
    down: Array
    of_x: Indices
    of_y: Indices
    factor: Array


@dataclass(frozen=True, eq=False)
class Terms:
    """The raw descriptor of one parametrization and patch size, as planes, functions and terms.

    Attributes
    ----------
    planes
        What is summed over the patch, each once.
    functions
        Spatial functions (F, S, S) float64, the window included, of absolute value up to 1. Each
        is there once, whatever its factor; where extremes are 1 and -1 perhaps its negative too.
    separation
        The same as functions of x and of y; None if some are no such products.
    component, plane, function, factor
        (T,) int64, int64, int64, float64: term t adds ``factor[t]`` times the sum of plane
        ``plane[t]`` times function ``function[t]`` to number ``component[t]`` of the descriptor.
    dims
        Length of the descriptor.
    part_starts
        (parts + 1,) int64: where the parts that are normalised begin, and the length of all.
    """

    planes: tuple[Plane, ...]
    functions: Array
    separation: Separation | None
    component: Indices
    plane: Indices
    function: Indices
    factor: Array
    dims: int
    part_starts: Indices

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """All pixel quantities that planes are made of, sorted.

        >>> from mkdesc.kernels.parametrization import as_parametrization
        >>> make_terms(as_parametrization("x(1,1)*theta(8,1)"), 8).quantities
        (('theta', 0), ('theta', 1), ('theta', 2))
        """
        return tuple(sorted({quantity for plane in self.planes for quantity in plane}))

    def separable_sums(
        self, planes: Indices, strides: tuple[int, int, int]
    ) -> tuple[Indices, Array]:
        """Where each term finds its sum, and what it multiplies it by, if functions separate.

        Parameters
        ----------
        planes
            (P,) int64: the number that a backend gives each plane.
        strides
            How far apart the sums of two planes, functions of y and functions of x are.

        Returns
        -------
        where, factor
            (T,) int64 and (T,) float64.
        """
        assert self.separation is not None
        of_plane, of_y, of_x = strides
        where = planes[self.plane] * of_plane
        where += self.separation.of_y[self.function] * of_y
        where += self.separation.of_x[self.function] * of_x
        return where, self.factor * self.separation.factor[self.function]


def make_terms(parametrization: Parametrization, size: int) -> Terms:
    """The terms for patches of ``size`` px after preparation.

    Examples
    --------
    >>> from mkdesc.kernels.parametrization import CARTESIAN, POLAR
    >>> terms = make_terms(CARTESIAN, 64)
    >>> len(terms.planes), terms.functions.shape, terms.separation is None
    (7, (9, 64, 64), False)
    >>> make_terms(POLAR, 64).separation is None
    True
    """
    grid, functions = patch_grid(size), _Functions()
    found: dict[Plane, list[Term]] = {}
    part_starts = np.cumsum([0, *(part.dims for part in parametrization.products)], dtype=np.int64)
    preparation = parametrization.preparation
    for part, start in zip(parametrization.products, part_starts.tolist(), strict=False):
        _add_part(part, grid, preparation.window, start, functions, found)
    terms = [(c, p, f, a) for p, these in enumerate(found.values()) for c, f, a in these]
    if not terms:
        raise ValueError(f"{parametrization}: kernels too narrow to compute with")
    component, plane, function, factor = map(np.array, zip(*terms, strict=True))
    return Terms(
        planes=tuple(found),
        functions=np.stack(functions.values),
        separation=_separate(functions.values),
        component=component,
        plane=plane,
        function=function,
        factor=factor,
        dims=parametrization.dims,
        part_starts=part_starts[[0, -1]] if preparation.joint else part_starts,
    )


#: Component of the descriptor, function, factor.
Term = tuple[int, int, float]


class _Functions:
    """Functions of the position, each kept once up to a factor."""

    def __init__(self) -> None:
        self.values: list[Array] = []
        self._index: dict[bytes, int] = {}

    def add(self, function: Array) -> tuple[int, float]:
        """The number of a function, and the factor of the kept one."""
        factor = float(function.flat[np.abs(function).argmax()])
        kept = function / factor
        # Zeros have signs, and bytes tell them apart.
        index = self._index.setdefault((np.round(kept, 9) + 0.0).tobytes(), len(self.values))
        if index == len(self.values):
            self.values.append(kept)
        return index, factor


def _fourier_features(kernel: AngleKernel, shift: Array) -> NDArray[np.complex128]:
    """Feature map of ``theta - shift`` as Fourier series in theta, shape (2n+1, 2n+1, W, W).

    Entry [i, n + h] is the factor of ``exp(1j h theta)`` in feature i.
    """
    n, root = kernel.n, np.sqrt(kernel.coefficients)
    series = np.zeros((kernel.dims, 2 * n + 1, *shift.shape), np.complex128)
    series[0, n] = root[0]
    for h in range(1, n + 1):
        turn = root[h] / 2 * np.exp(-1j * h * shift)
        series[h, n + h], series[h, n - h] = turn, turn.conj()  # cos h(theta - shift)
        series[n + h, n + h], series[n + h, n - h] = -1j * turn, 1j * turn.conj()  # sin
    return series


def _multiply_series(
    a: NDArray[np.complex128], b: NDArray[np.complex128]
) -> NDArray[np.complex128]:
    """Products of all pairs of features given as Fourier series in theta."""
    out = np.zeros((len(a), len(b), a.shape[1] + b.shape[1] - 1, *a.shape[2:]), np.complex128)
    for h in range(b.shape[1]):
        out[:, :, h : h + a.shape[1]] += a[:, None] * b[None, :, h, None]
    return out.reshape(-1, *out.shape[2:])


def _add_part(
    part: Product,
    grid: PatchGrid,
    window: bool,
    start: int,
    functions: _Functions,
    terms: dict[Plane, list[Term]],
) -> None:
    """Write a product of kernels, whose components begin at ``start``, as planes and functions."""
    values = positions(grid)
    values |= {"theta": np.zeros_like(grid.x), "relative_theta": grid.phi}
    one = np.ones((1, 1, *grid.x.shape), np.complex128)
    angular = reduce(
        _multiply_series, [_fourier_features(k, values[name]) for name, k in part.angular], one
    )
    space = (grid.window if window else np.ones_like(grid.x))[..., None]
    if part.spatial:
        space = space * Product(part.spatial).feature_map(values)
    harmonics = angular.shape[1] // 2
    explicit = list(all_of(*([(name, i) for i in range(k.dims)] for name, k in part.explicit)))
    for plane in range(2 * harmonics + 1):
        h = (plane + 1) // 2
        series = angular[:, harmonics + h]
        factor = series.imag * -2 if plane and plane % 2 == 0 else series.real * (2 if h else 1)
        gradient: Plane = (("theta", plane),) if part.weighted else ()
        for a in np.flatnonzero(np.abs(factor).max(axis=(1, 2)) > ROUNDING):
            for s in range(space.shape[-1]):
                function = factor[a] * space[..., s]
                if not function.any():  # a frequency that the kernel does not have
                    continue
                index, scale = functions.add(function)
                for e, features in enumerate(explicit):
                    component = (e * len(factor) + int(a)) * space.shape[-1] + s
                    terms.setdefault((*features, *gradient), []).append(
                        (start + component, index, scale)
                    )


def _separate(functions: list[Array]) -> Separation | None:
    """Functions (S, S) as products of one of x and one of y; None if some are not."""
    across, down = _Functions(), _Functions()
    found = []
    for value in functions:
        y, x = np.unravel_index(np.abs(value).argmax(), value.shape)
        if np.abs(value - np.outer(value[:, x], value[y]) / value[y, x]).max() > ROUNDING:
            return None
        (i, scale_x), (j, scale_y) = across.add(value[y]), down.add(value[:, x])
        found.append((i, j, scale_x * scale_y / float(value[y, x])))
    of_x, of_y, factor = map(np.array, zip(*found, strict=True))
    return Separation(np.stack(across.values), np.stack(down.values), of_x, of_y, factor)

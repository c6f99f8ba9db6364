"""From a parametrization to what the fast path needs: planes, spatial functions, assembly.

Every feature is a trigonometric polynomial of the gradient angle ``theta`` whose coefficients
are functions of the position alone (``cos n(theta - phi)`` included), perhaps times features of
intensity and shape. A descriptor is therefore a fixed linear combination of sums, over the patch,
of a *plane* (a product of pixel quantities, such as the weight times ``cos 2 theta``) times a
*spatial function*.

Two facts make the sums cheap. The functions that one plane meets are linearly dependent, so a
basis of them is enough. And functions split into even and odd ones under x -> -x and y -> -y,
so the planes can be folded onto a quarter of the patch first, once for each of the four
parities. Where all functions are products of one of x and one of y, neither is needed: the sums
are taken along x, then along y.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import product as all_of
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.kernels.grid import PatchGrid, patch_grid
from mkdesc.kernels.parametrization import Parametrization
from mkdesc.kernels.pixelfeatures import OwnFeature
from mkdesc.kernels.pixelvalues import positions
from mkdesc.kernels.product import Product
from mkdesc.kernels.vonmises import VonMises

__all__ = ["LANES", "PARITIES", "Plan", "make_plan"]

Array = NDArray[np.float64]

#: The signs under x -> -x and y -> -y of the four kinds of spatial functions.
PARITIES = ((1, 1), (-1, 1), (1, -1), (-1, -1))
#: Quarter patches are padded with zeros to a multiple of this many pixels, for the vector unit.
LANES = 16
#: A tile of the contraction: two planes times four spatial functions.
TILE_PLANES, TILE_FUNCTIONS = 2, 4
#: Functions of one coordinate that a line of pixels is multiplied with at a time.
LINE_FUNCTIONS = 5
#: Relative size below which a function or a coefficient is rounding, not content.
ROUNDING = 1e-10

#: A pixel quantity, such as ("theta", 3): the third of 1, cos, sin, cos 2, sin 2, ...
Quantity = tuple[str, int]
#: A plane: the product of these quantities.
Plane = tuple[Quantity, ...]


class Plan(NamedTuple):
    """What :mod:`mkdesc.compute.cpu.backend` computes for one parametrization and patch size.

    Attributes
    ----------
    counts
        (4,) int64: quantities of the gradient (weight times 1, cos, sin, cos 2, ...), of the
        intensity, of the shape, and of registered features that are needed. They are numbered in
        this order.
    products
        (K, 2) int64: pairs of quantities whose products are quantities too, numbered on.
    planes
        (P,) int64: the quantities that are summed over the patch.
    functions
        Spatial functions on the quarter patch, float32, shape (F, Q); rows come in fours. None
        if the plan is separable.
    tiles
        (T, 4) int64: two planes, a parity, and the first of four functions. Tile ``t`` gives
        the eight sums ``8 t .. 8 t + 7``.
    across, down
        Functions of x and of y, float32, shapes (A, S) and (B, S); rows come in fives. None if
        the plan is not separable. The sums are numbered by function of y, then function of x,
        then quantity.
    row_starts, columns, coefficients
        The sparse matrix (CSR) that turns the sums into the unnormalised descriptor.
    part_starts
        Where the parts that are normalised begin, and the length of all, (parts + 1,).
    """

    counts: NDArray[np.int64]
    products: NDArray[np.int64]
    planes: NDArray[np.int64]
    functions: NDArray[np.float32]
    tiles: NDArray[np.int64]
    across: NDArray[np.float32]
    down: NDArray[np.float32]
    row_starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    coefficients: NDArray[np.float32]
    part_starts: NDArray[np.int64]

    @property
    def separable(self) -> bool:
        """Whether sums are taken along x, then along y."""
        return len(self.across) > 0


def _fourier_features(kernel: VonMises, shift: Array) -> NDArray[np.complex128]:
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


class _Functions:
    """Spatial functions, each kept once up to a factor."""

    def __init__(self) -> None:
        self.values: list[Array] = []
        self._index: dict[bytes, int] = {}

    def add(self, function: Array) -> tuple[int, float]:
        """The number of a function, and the factor of the kept one."""
        factor = float(function.flat[np.abs(function).argmax()])
        kept = function / factor
        index = self._index.setdefault(np.round(kept, 9).tobytes(), len(self.values))
        if index == len(self.values):
            self.values.append(kept)
        return index, factor


#: By plane: descriptor component, function, factor.
Terms = dict[Plane, list[tuple[int, int, float]]]


def _add_part(
    part: Product, grid: PatchGrid, window: bool, start: int, functions: _Functions, terms: Terms
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


def _fold_functions(functions: Array, parity: tuple[int, int]) -> Array:
    """The part of functions (K, W, W) with the given parity, on the quarter patch (K, Q)."""
    half = (functions.shape[-1] + 1) // 2
    mirrored_x = functions + parity[0] * functions[:, :, ::-1]
    both = mirrored_x + parity[1] * mirrored_x[:, ::-1]
    return both[:, :half, :half].reshape(len(functions), -1) / 4


def _basis(functions: Array) -> tuple[Array, Array]:
    """Some of the functions (K, Q), and all of them in terms of these: (R, Q) and (K, R)."""
    from scipy.linalg import qr, solve_triangular  # numba has imported it already

    r, pivots = qr(functions.T, mode="r", pivoting=True, check_finite=False)
    size = np.abs(np.diag(r))
    rank = int(np.count_nonzero(size > ROUNDING * size[0]))
    weights = np.empty((len(functions), rank))
    weights[pivots] = solve_triangular(r[:rank, :rank], r[:rank]).T
    weights[np.abs(weights) < ROUNDING] = 0
    return functions[pivots[:rank]], weights


def _pairs(terms: Terms) -> list[tuple[Plane, Plane]]:
    """Planes that meet the same functions, two by two; what is left over goes with itself."""
    pairs: list[tuple[Plane, Plane]] = []
    single: dict[tuple[int, ...], Plane] = {}
    for plane in terms:
        name, number = plane[-1]
        if name == "theta" and number:
            if number % 2:  # cos h and sin h
                pairs.append((plane, (*plane[:-1], (name, number + 1))))
            continue
        met = tuple(sorted({index for _, index, _ in terms[plane]}))
        if met in single:
            pairs.append((single.pop(met), plane))
        else:
            single[met] = plane
    return pairs + [(plane, plane) for plane in single.values()]


@lru_cache(maxsize=32)
def make_plan(parametrization: Parametrization, size: int) -> Plan:
    """The plan for patches of ``size`` px after preparation; kept for the next call.

    Examples
    --------
    >>> from mkdesc.kernels.parametrization import CARTESIAN
    >>> make_plan(CARTESIAN, 64).counts.tolist()
    [7, 0, 0, 0]
    """
    grid, functions, terms = patch_grid(size), _Functions(), Terms()
    part_starts = np.cumsum([0, *(part.dims for part in parametrization.parts)])
    window = parametrization.preparation.window
    for part, start in zip(parametrization.parts, part_starts, strict=False):
        _add_part(part, grid, window, int(start), functions, terms)
    for plane in list(terms):  # a cosine never comes without its sine
        if plane[-1][0] == "theta" and plane[-1][1] % 2:
            terms.setdefault((*plane[:-1], ("theta", plane[-1][1] + 1)), [])

    planes = list(terms)
    counts, products, planes_of = _number(planes, parametrization.own)
    found = _separate(
        planes_of, int(counts.sum()) + len(products), functions, list(terms.values())
    )
    nothing = np.zeros((0, 0))
    if found is None:
        quarter, tiles, entries = _tile(terms, functions)
        across = down = nothing
    else:
        across, down, entries = found
        quarter, tiles = nothing, []
    if not entries:
        raise ValueError(f"{parametrization}: these kernels are too narrow to compute with")
    named = {component for component, _, _ in entries}
    entries += [(j, 0, 0.0) for j in range(parametrization.dims) if j not in named]
    entries.sort()
    components_of, columns, coefficients = map(np.array, zip(*entries, strict=True))
    return Plan(
        counts=counts,
        products=products,
        planes=planes_of,
        functions=np.pad(quarter, [(0, 0), (0, -quarter.shape[1] % LANES)]).astype(np.float32),
        tiles=np.array(tiles, np.int64).reshape(-1, 4),
        across=across.astype(np.float32),
        down=down.astype(np.float32),
        row_starts=np.searchsorted(components_of, np.arange(parametrization.dims + 1)),
        columns=columns.astype(np.int64),
        coefficients=coefficients.astype(np.float32),
        part_starts=part_starts[[0, -1]] if parametrization.preparation.joint else part_starts,
    )


#: Descriptor component, sum, coefficient.
Entry = tuple[int, int, float]


def _separate(
    planes_of: NDArray[np.int64],
    n_quantities: int,
    functions: _Functions,
    terms: list[list[Entry]],
) -> tuple[Array, Array, list[Entry]] | None:
    """Functions of x (A, S), of y (B, S), and what sums make of them; None if some are neither."""
    across, down = _Functions(), _Functions()
    factors: list[tuple[int, int, float]] = []  # of x, of y, factor
    for value in functions.values:
        y, x = np.unravel_index(np.abs(value).argmax(), value.shape)
        if np.abs(value - np.outer(value[:, x], value[y]) / value[y, x]).max() > ROUNDING:
            return None
        (i, scale_x), (j, scale_y) = across.add(value[y]), down.add(value[:, x])
        factors.append((i, j, scale_x * scale_y / float(value[y, x])))
    kept = [np.stack(f.values) if f.values else np.zeros((0, 0)) for f in (across, down)]
    kept = [np.pad(k, [(0, -len(k) % LINE_FUNCTIONS), (0, 0)]) for k in kept]
    entries = []
    for quantity, these in zip(planes_of.tolist(), terms, strict=True):
        for component, index, scale in these:
            i, j, factor = factors[index]
            place = (j * len(kept[0]) + i) * n_quantities + quantity
            entries.append((component, place, scale * factor))
    return kept[0], kept[1], entries


def _tile(
    terms: Terms, functions: _Functions
) -> tuple[Array, list[tuple[int, int, int, int]], list[Entry]]:
    """Functions on the quarter patch (F, Q), tiles, and what sums make of them."""
    planes = list(terms)
    rows: list[Array] = []  # functions, in padded groups of four
    tiles: list[tuple[int, int, int, int]] = []
    entries: list[Entry] = []
    shared: dict[tuple[tuple[int, ...], int], tuple[int, Array]] = {}
    for pair in _pairs(terms):
        met = tuple(sorted({index for plane in pair for _, index, _ in terms[plane]}))
        place = {index: k for k, index in enumerate(met)}
        for which, parity in enumerate(PARITIES):
            if (met, which) not in shared:
                folded = _fold_functions(np.stack([functions.values[i] for i in met]), parity)
                present = np.flatnonzero(np.abs(folded).max(axis=1) > ROUNDING)
                weights = np.zeros((len(met), 0))
                first_row = sum(map(len, rows))
                if present.size:
                    basis, found = _basis(folded[present])
                    weights = np.zeros((len(met), len(basis)))
                    weights[present] = found
                    rows.append(np.pad(basis, [(0, -len(basis) % TILE_FUNCTIONS), (0, 0)]))
                shared[met, which] = first_row, weights
            first_row, weights = shared[met, which]
            first_tile = len(tiles)
            for r in range(0, weights.shape[1], TILE_FUNCTIONS):
                tiles.append((planes.index(pair[0]), planes.index(pair[1]), which, first_row + r))
            for plane in dict.fromkeys(pair):
                for component, index, scale in terms[plane]:
                    for column in np.flatnonzero(weights[place[index]]):
                        tile, function = divmod(int(column), TILE_FUNCTIONS)
                        place_in = (first_tile + tile) * TILE_PLANES + pair.index(plane)
                        coefficient = scale * float(weights[place[index], column])
                        entries.append(
                            (component, place_in * TILE_FUNCTIONS + function, coefficient)
                        )
    return np.concatenate(rows) if rows else np.zeros((0, 0)), tiles, entries


def _number(
    planes: list[Plane], own: tuple[OwnFeature, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """How many quantities of each kind there are, their products, and the planes' numbers."""
    used = {quantity for plane in planes for quantity in plane}
    gradient = 1 + max((i for name, i in used if name == "theta"), default=-1)
    intensity = 2 if any(name == "intensity" for name, _ in used) else 0
    shape = 9 if any(name == "shape" for name, _ in used) else 0
    first = {"theta": 0, "intensity": gradient, "shape": gradient + intensity}
    last = gradient + intensity + shape
    for feature in own:
        first[feature.name] = last
        last += feature.dims
    products: list[list[int]] = []
    numbers: list[int] = []
    for plane in planes:
        factors = [first[name] + i for name, i in plane]
        if len(factors) == 2:
            numbers.append(last + len(products))
            products.append(factors)
        else:
            numbers += factors
    return (
        np.array([gradient, intensity, shape, sum(f.dims for f in own)], np.int64),
        np.array(products, np.int64).reshape(-1, 2),
        np.array(numbers, np.int64),
    )

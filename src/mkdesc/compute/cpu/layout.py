"""How the loops of the CPU want the terms of a descriptor laid out.

Two facts make the sums cheap. The functions that one plane meets are linearly dependent, so a
basis of them is enough. And functions split into even and odd ones under x -> -x and y -> -y,
so the planes can be folded onto a quarter of the patch first, once for each of the four
parities. Where all functions are products of one of x and one of y, neither is needed: the sums
are taken along y, then along x.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mkdesc.compute.cpu.structures import Assembly, Functions, Layout, Quantities, single, whole
from mkdesc.compute.cpu.unrolling import (
    LANES,
    LINE,
    LINE_FUNCTIONS,
    TILE_FUNCTIONS,
    TILE_SUMS,
)
from mkdesc.compute.terms import ROUNDING, Plane, Separation, Terms, make_terms
from mkdesc.kernels.parametrization import Parametrization
from mkdesc.kernels.pixelfeatures import OwnFeature

Array = NDArray[np.float64]

#: The signs under x -> -x and y -> -y of the four kinds of spatial functions.
PARITIES = ((1, 1), (-1, 1), (1, -1), (-1, -1))


#: Descriptor component, sum, coefficient.
Entry = tuple[int, int, float]


@lru_cache(maxsize=32)
def make_layout(parametrization: Parametrization, size: int) -> Layout:
    """The layout for patches of ``size`` px after preparation; kept for the next call.

    Examples
    --------
    >>> from mkdesc.kernels.parametrization import CARTESIAN
    >>> layout = make_layout(CARTESIAN, 64)
    >>> layout.separable, layout.quantities.gradient
    (True, 7)
    """
    terms = make_terms(parametrization, size)
    planes = list(terms.planes)
    for plane in terms.planes:  # a cosine never comes without its sine
        name, number = plane[-1]
        if name == "theta" and number % 2 and (*plane[:-1], (name, number + 1)) not in planes:
            planes.append((*plane[:-1], (name, number + 1)))
    quantities = _number(planes, parametrization.own)
    if terms.separation is None:
        functions, entries = _tile(planes, quantities, terms)
    else:
        functions, entries = _separate(quantities, terms, terms.separation)
    named = {component for component, _, _ in entries}
    entries += [(j, 0, 0.0) for j in range(terms.dims) if j not in named]
    entries.sort()
    components, columns, coefficients = map(np.array, zip(*entries, strict=True))
    assembly = Assembly(
        row_starts=whole(np.searchsorted(components, np.arange(terms.dims + 1))),
        columns=whole(columns),
        coefficients=single(coefficients),
        part_starts=whole(terms.part_starts),
    )
    return Layout(quantities, functions, assembly)


def _number(planes: list[Plane], own: tuple[OwnFeature, ...]) -> Quantities:
    """The quantities of each kind, their products, and the numbers of the planes."""
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
    return Quantities(
        gradient,
        intensity,
        shape,
        sum(feature.dims for feature in own),
        whole(np.array(products, np.int64).reshape(-1, 2)),
        whole(np.array(numbers)),
    )


def _separate(
    quantities: Quantities, terms: Terms, found: Separation
) -> tuple[Functions, list[Entry]]:
    """Functions of x and of y, and what sums make of them."""
    across, down = (
        np.pad(kept, [(0, -len(kept) % LINE_FUNCTIONS), (0, more)])
        for kept, more in ((found.across, -found.across.shape[1] % LINE), (found.down, 0))
    )
    n_quantities = sum(quantities[:4]) + len(quantities.products)
    strides = (1, n_quantities, len(down) * n_quantities)
    columns, coefficients = terms.separable_sums(quantities.planes, strides)
    entries = zip(terms.component.tolist(), columns.tolist(), coefficients.tolist(), strict=True)
    no_tiles = whole(np.zeros((0, 4), np.int64))
    return Functions(single(np.zeros((0, 0))), no_tiles, single(across), single(down)), list(
        entries
    )


def _fold(functions: Array, parity: tuple[int, int]) -> Array:
    """The part of functions (K, W, W) with the given parity, on the quarter patch (K, Q)."""
    half = (functions.shape[-1] + 1) // 2
    mirrored_x = functions + parity[0] * functions[:, :, ::-1]
    both = mirrored_x + parity[1] * mirrored_x[:, ::-1]
    return both[:, :half, :half].reshape(len(functions), -1) / 4


def _basis(functions: Array) -> tuple[Array, Array]:
    """Some of the functions (K, Q), and all of them in terms of these: (R, Q) and (K, R)."""
    from scipy.linalg import qr, solve_triangular

    r, pivots = qr(functions.T, mode="r", pivoting=True, check_finite=False)
    size = np.abs(np.diag(r))
    rank = int(np.count_nonzero(size > ROUNDING * size[0]))
    weights = np.empty((len(functions), rank))
    weights[pivots] = solve_triangular(r[:rank, :rank], r[:rank]).T
    weights[np.abs(weights) < ROUNDING] = 0
    return functions[pivots[:rank]], weights


#: By plane: descriptor component, function, factor.
ByPlane = dict[Plane, list[Entry]]


def _pairs(planes: list[Plane], terms: ByPlane) -> list[tuple[Plane, Plane]]:
    """Planes that meet the same functions, two by two; what is left over goes with itself."""
    pairs: list[tuple[Plane, Plane]] = []
    single: dict[tuple[int, ...], Plane] = {}
    for plane in planes:
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


def _tile(
    planes: list[Plane], quantities: Quantities, terms: Terms
) -> tuple[Functions, list[Entry]]:
    """Functions on the quarter patch, tiles, and what sums make of them."""
    by_plane: ByPlane = defaultdict(list)
    number = dict(zip(planes, quantities.planes.tolist(), strict=True))
    columns = (terms.component, terms.plane, terms.function, terms.factor)
    for component, plane, function, factor in zip(*map(np.ndarray.tolist, columns), strict=True):
        by_plane[planes[plane]].append((component, function, factor))
    rows: list[Array] = []  # functions, in padded groups
    tiles: list[tuple[int, int, int, int]] = []
    entries: list[Entry] = []
    shared: dict[tuple[tuple[int, ...], int], tuple[int, Array]] = {}
    for pair in _pairs(planes, by_plane):
        met = tuple(sorted({index for plane in pair for _, index, _ in by_plane[plane]}))
        place = {index: k for k, index in enumerate(met)}
        for which, parity in enumerate(PARITIES):
            if (met, which) not in shared:
                folded = _fold(terms.functions[list(met)], parity)
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
                tiles.append((number[pair[0]], number[pair[1]], which, first_row + r))
            for plane in dict.fromkeys(pair):
                for component, index, scale in by_plane[plane]:
                    for column in np.flatnonzero(weights[place[index]]):
                        tile, function = divmod(int(column), TILE_FUNCTIONS)
                        start = (first_tile + tile) * TILE_SUMS + pair.index(
                            plane
                        ) * TILE_FUNCTIONS
                        coefficient = scale * float(weights[place[index], column])
                        entries.append((component, start + function, coefficient))
    quarter = np.concatenate(rows)
    quarter = np.pad(quarter, [(0, 0), (0, -quarter.shape[1] % LANES)])
    nothing = single(np.zeros((0, 0)))
    return Functions(
        single(quarter), whole(np.array(tiles)), across=nothing, down=nothing
    ), entries

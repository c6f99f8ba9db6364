"""From a parametrization to what the fast path needs: planes, spatial functions, assembly.

Every feature is a trigonometric polynomial of the gradient angle ``theta`` whose coefficients
are functions of the position alone (``cos n(theta - phi)`` included). A descriptor is therefore
a fixed linear combination of sums, over the patch, of a *plane* (the weight times
``1, cos theta, sin theta, cos 2 theta, ...``) times a *spatial function*.

Two facts make the sums cheap. The functions that one plane meets are linearly dependent, so a
basis of them is enough. And functions split into even and odd ones under x -> -x and y -> -y,
so the planes can be folded onto a quarter of the patch first, once for each of the four
parities.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.kernels import VonMises
from mkdesc.parametrization import Parametrization, Product, attributes
from mkdesc.patchgrid import PatchGrid, patch_grid

__all__ = ["LANES", "PARITIES", "Plan", "make_plan"]

Array = NDArray[np.float64]

#: The signs under x -> -x and y -> -y of the four kinds of spatial functions.
PARITIES = ((1, 1), (-1, 1), (1, -1), (-1, -1))
#: Quarter patches are padded with zeros to a multiple of this many pixels, for the vector unit.
LANES = 16
#: A tile of the contraction: two planes times four spatial functions.
TILE_PLANES, TILE_FUNCTIONS = 2, 4
#: Relative size below which a function or a coefficient is rounding, not content.
ROUNDING = 1e-10


class Plan(NamedTuple):
    """What :mod:`mkdesc.compute.cpu` computes for one parametrization and patch size.

    Attributes
    ----------
    harmonics
        Highest multiple of the gradient angle; there are ``2 * harmonics + 1`` planes, in the
        order ``1, cos 1, sin 1, cos 2, sin 2, ...``.
    functions
        Spatial functions on the quarter patch, float32, shape (F, Q); rows come in fours.
    tiles
        (T, 4) int64: two planes, a parity, and the first of four functions. Tile ``t`` gives
        the eight sums ``8 t .. 8 t + 7``.
    row_starts, columns, coefficients
        The sparse matrix (CSR) that turns the sums into the unnormalised descriptor.
    part_starts
        Where the parts begin in the descriptor, and its length, shape (parts + 1,).
    """

    harmonics: int
    functions: NDArray[np.float32]
    tiles: NDArray[np.int64]
    row_starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    coefficients: NDArray[np.float32]
    part_starts: NDArray[np.int64]


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


def _plane_functions(part: Product, grid: PatchGrid) -> list[dict[int, Array]]:
    """For every plane, the spatial functions that it is multiplied by: {component: (W, W)}."""
    values = attributes(grid, np.zeros_like(grid.x))  # relative_theta is now -phi
    one = np.ones((1, 1, *grid.x.shape), np.complex128)
    angular = reduce(
        _multiply_series, [_fourier_features(k, -values[name]) for name, k in part.angular], one
    )
    space = grid.window[..., None]
    if part.spatial:
        space = space * Product(part.spatial).feature_map(values)
    harmonics = angular.shape[1] // 2
    planes: list[dict[int, Array]] = []
    for plane in range(2 * harmonics + 1):
        h = (plane + 1) // 2
        series = angular[:, harmonics + h]
        factor = series.imag * -2 if plane and plane % 2 == 0 else series.real * (2 if h else 1)
        planes.append(
            {
                a * space.shape[-1] + s: factor[a] * space[..., s]
                for a in range(len(factor))
                if np.abs(factor[a]).max() > ROUNDING
                for s in range(space.shape[-1])
            }
        )
    return planes


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


@lru_cache(maxsize=32)
def make_plan(parametrization: Parametrization, size: int) -> Plan:
    """The plan for ``size``-px patches; kept for the next call.

    Examples
    --------
    >>> from mkdesc.parametrization import CARTESIAN
    >>> make_plan(CARTESIAN, 64).harmonics
    3
    """
    grid = patch_grid(size)
    part_starts = np.cumsum([0, *(part.dims for part in parametrization.parts)])
    per_plane: list[dict[int, Array]] = []
    for part, start in zip(parametrization.parts, part_starts, strict=False):
        for plane, met in enumerate(_plane_functions(part, grid)):
            if plane == len(per_plane):
                per_plane.append({})
            per_plane[plane].update({int(start) + j: f for j, f in met.items()})

    rows: list[Array] = []  # functions, in padded groups of four
    tiles: list[tuple[int, int, int, int]] = []
    entries: list[tuple[int, int, float]] = []  # descriptor component, sum, coefficient
    # cos h and sin h meet the same functions: they share a basis and the tiles.
    for planes in [(0, 0), *((p, p + 1) for p in range(1, len(per_plane), TILE_PLANES))]:
        components = [(p, j) for p in sorted(set(planes)) for j in per_plane[p]]
        if not components:
            continue
        functions = np.stack([per_plane[p][j] for p, j in components])
        for which, parity in enumerate(PARITIES):
            folded = _fold_functions(functions, parity)
            present = np.flatnonzero(np.abs(folded).max(axis=1) > ROUNDING)
            if not present.size:
                continue
            basis, weights = _basis(folded[present])
            first_tile = len(tiles)
            for r in range(0, len(basis), TILE_FUNCTIONS):
                tiles.append((*planes, which, sum(map(len, rows)) + r))
            rows.append(np.pad(basis, [(0, -len(basis) % TILE_FUNCTIONS), (0, 0)]))
            for k, r in np.argwhere(weights):
                plane, component = components[present[k]]
                tile, function = divmod(int(r), TILE_FUNCTIONS)
                index = (first_tile + tile) * TILE_PLANES + planes.index(plane)
                entries.append(
                    (component, index * TILE_FUNCTIONS + function, float(weights[k, r]))
                )

    entries.sort()
    components_of, columns, coefficients = map(np.array, zip(*entries, strict=True))
    quarter = np.concatenate(rows)
    return Plan(
        harmonics=len(per_plane) // 2,
        functions=np.pad(quarter, [(0, 0), (0, -quarter.shape[1] % LANES)]).astype(np.float32),
        tiles=np.array(tiles, np.int64),
        row_starts=np.searchsorted(components_of, np.arange(parametrization.dims + 1)),
        columns=columns.astype(np.int64),
        coefficients=coefficients.astype(np.float32),
        part_starts=part_starts.astype(np.int64),
    )

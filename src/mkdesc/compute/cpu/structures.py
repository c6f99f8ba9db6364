"""What the compiled loops are given: structures of numbers and read-only arrays, by name.

numba derives its types from them (:func:`mkdesc._support.compiling.type_of`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


def _kept(values: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """A copy that all threads share and nobody changes."""
    kept = np.array(values, dtype, order="C")
    kept.flags.writeable = False
    return kept


def whole(values: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers as the loops take them."""
    return _kept(values, np.int64)


def single(values: NDArray[Any]) -> NDArray[np.float32]:
    """Numbers in single precision as the loops take them."""
    return _kept(values, np.float32)


def double(values: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers in double precision as the loops take them."""
    return _kept(values, np.float64)


class Preparing(NamedTuple):
    """How patches are prepared: of :class:`~mkdesc.kernels.Preparation`.

    ``factor``: by which they are reduced; ``taps``: half of the Gaussian, float64; ``epsilons``:
    ``epsilon_square``, ``epsilon`` and ``flat``, float64.
    """

    factor: int
    taps: NDArray[np.float64]
    softening: float
    epsilons: NDArray[np.float64]


class Quantities(NamedTuple):
    """What is computed of every pixel.

    Attributes
    ----------
    gradient, intensity, shape, own
        How many quantities of the gradient (weight times 1, cos, sin, cos 2, ...), of the
        intensity, of the shape, and of registered features are needed. They are numbered in this
        order.
    products
        (K, 2) int64: pairs of quantities whose products are quantities too, numbered on.
    planes
        (P,) int64: the quantities that are summed over the patch.
    """

    gradient: int
    intensity: int
    shape: int
    own: int
    products: NDArray[np.int64]
    planes: NDArray[np.int64]


class Functions(NamedTuple):
    """Spatial functions, either on the quarter patch or of x and of y; the others are empty.

    Attributes
    ----------
    quarter
        Functions on the quarter patch, float32, shape (F, Q), Q a multiple of ``LANES``; rows come
        in multiples of ``TILE_FUNCTIONS``.
    tiles
        (T, 4) int64: two quantities, a parity, and the first of ``TILE_FUNCTIONS`` functions. Tile
        ``t`` gives the sums from ``TILE_SUMS * t`` on.
    across, down
        Functions of x and of y, float32, shapes (A, S and zeros up to a multiple of ``LINE``) and
        (B, S); rows come in multiples of ``LINE_FUNCTIONS``. The sums are numbered by function of
        x, then function of y, then quantity.
    """

    quarter: NDArray[np.float32]
    tiles: NDArray[np.int64]
    across: NDArray[np.float32]
    down: NDArray[np.float32]


class Assembly(NamedTuple):
    """From sums to a descriptor.

    Attributes
    ----------
    row_starts, columns, coefficients
        The sparse matrix (CSR) that turns the sums into the unnormalised descriptor.
    part_starts
        Where the parts that are normalised begin, and the length of all, (parts + 1,).
    """

    row_starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    coefficients: NDArray[np.float32]
    part_starts: NDArray[np.int64]


class Layout(NamedTuple):
    """What the compiled loops compute for one parametrization and patch size."""

    quantities: Quantities
    functions: Functions
    assembly: Assembly

    @property
    def separable(self) -> bool:
        """Whether sums are taken along y, then along x."""
        return len(self.functions.across) > 0


class Stages(NamedTuple):
    """A head as the loops take it: K stages, all arrays of length K but the last two.

    Attributes
    ----------
    width
        Room that the numbers of any stage take, padded to whole vectors.
    kinds
        int64: what the stage does, of :mod:`mkdesc.compute.cpu.head`.
    sizes
        int64: how many numbers come out of it.
    exponents
        float32, of powers.
    starts
        int64: where a rectifier begins.
    first_weight, first_constant
        int64: where the numbers of an affine stage begin in the last two.
    weights
        The matrices, transposed, with zeros up to multiples of ``TILE_FUNCTIONS`` rows and
        ``LANES`` columns; float32, flat.
    constants
        What is added to the products; float32, flat.
    """

    width: int
    kinds: NDArray[np.int64]
    sizes: NDArray[np.int64]
    exponents: NDArray[np.float32]
    starts: NDArray[np.int64]
    first_weight: NDArray[np.int64]
    first_constant: NDArray[np.int64]
    weights: NDArray[np.float32]
    constants: NDArray[np.float32]

"""Patch maps: how similar one pixel is to every position of a patch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_integer
from mkdesc.kernels.angles import AngleKernel
from mkdesc.kernels.grid import PatchGrid, patch_grid
from mkdesc.kernels.parametrization import Parametrization, as_parametrization
from mkdesc.kernels.patches import SMALLEST
from mkdesc.kernels.pixelfeatures import shape_features
from mkdesc.kernels.pixelvalues import positions
from mkdesc.kernels.products import Product
from mkdesc.visual.whitenings import WhiteningLike, as_head, linear_part

Array = NDArray[np.float64]
#: What kernels look at in pixels, by name, as in :func:`mkdesc.kernels.pixelvalues.pixel_values`.
Values = Mapping[str, Array]

#: Positions that are compared at a time; bounds the memory of the features.
_POSITIONS = 4096
#: Longest side of a map, and largest angle or derivative: squares and multiples stay finite.
_LARGEST_MAP = 2048
_LARGEST = 1e6


def patch_map(
    pixel: ArrayLike,
    parametrization: str | Parametrization,
    p_theta: ArrayLike = 0.0,
    q_theta: ArrayLike = 0.0,
    whitening: WhiteningLike | None = None,
    patch_size: int = 64,
    *,
    exact: bool = False,
    p_intensity: ArrayLike = 0.5,
    q_intensity: ArrayLike | None = None,
    p_shape: ArrayLike = (-1.0, 0.0, 0.0),
    q_shape: ArrayLike | None = None,
) -> Array:
    r"""Similarity of a pixel p to a pixel q at every position of the patch.

    Without whitening it is the response of the kernel, :math:`\psi(p)^\top \psi(q)`; after a
    projection :math:`A^\top(\cdot - \mu)` it is

    .. math:: \psi(p)^\top A A^\top \psi(q) - \psi(p)^\top A A^\top \mu
              - \psi(q)^\top A A^\top \mu,

    the paper's formula without its constant last term. Pixels are not weighted, neither by their
    gradient magnitudes nor by the window.

    Parameters
    ----------
    pixel
        Where p is: (row, column), from 0 to ``patch_size - 1``, fractions allowed; or (N, 2).
    parametrization
        Whose kernels to use. In a sum, products count as in the descriptor: where it normalises
        them one by one, each is divided by the response of a pixel to itself and the mean is
        taken; where it normalises all together (``extended``), they are added up.
    p_theta, q_theta
        Gradient angles: of p, one or (N,); of q, one or (W, W). They point from bright to dark,
        clockwise from the x axis.
    whitening
        A :class:`~mkdesc.Whitening`, a projection, an MKD with one, the name of a
        bundled model or whitening, or a model file (see
        :func:`~mkdesc.visual.whitenings.load_whitening`). Only its linear part is used: powers,
        roots and l2 act on the sum over the patch and cannot be seen pixel by pixel.
    patch_size
        Side W of the map, from 8 to 2048.
    exact
        Use the exact von Mises kernels instead of their feature maps; not with a whitening.
    p_intensity, q_intensity
        For kernels over intensity: squeezed intensities in (-1, 1), one or (N,) and one or (W, W).
        That of q is that of p unless given.
    p_shape, q_shape
        For kernels over shape: second derivatives (l, d, e), (3,) or (N, 3) and (3,) or (W, W, 3):
        (-1, 0, 0) is a bright blob, (0, 1, 0) and (0, 0, 1) are saddles, (1, 1, 0) a dark upright
        line. That of q is that of p unless given.

    Returns
    -------
    ndarray of shape (W, W) or (N, W, W), float64
        The map, indexed [row, column].

    Examples
    --------
    >>> m = patch_map((20, 20), "cartesian")
    >>> m.shape, tuple(map(int, np.unravel_index(m.argmax(), m.shape)))
    ((64, 64), (20, 20))
    >>> patch_map([(20, 20), (31, 40)], "polar", whitening="polar-lw").shape
    (2, 64, 64)
    """
    whole = as_parametrization(parametrization)
    if whole.own:
        raise ValueError(
            f"parametrization: your own features ({whole.own[0].name!r}) have no patch maps"
        )
    check_integer("patch_size", patch_size, SMALLEST, _LARGEST_MAP)
    size = int(patch_size)
    positions = _numbers("pixel", pixel)
    single = positions.ndim == 1
    positions = np.atleast_2d(positions)
    if positions.ndim != 2 or positions.shape[1] != 2:
        raise ValueError(f"pixel: expected (row, column) or (N, 2), got {np.shape(pixel)}")
    outside = (positions < 0) | (positions > size - 1)
    if outside.any():
        wrong = tuple(positions[outside.any(axis=1)][0].tolist())
        raise ValueError(f"pixel: expected from 0 to {size - 1}, within the patch, got {wrong}")
    y, x = (2 * positions.T - (size - 1)) / (size - 1)
    p = _values("p", PatchGrid.at(x, y), p_theta, p_intensity, p_shape)
    q = _values(
        "q",
        patch_grid(size),
        q_theta,
        p_intensity if q_intensity is None else q_intensity,
        p_shape if q_shape is None else q_shape,
    )
    flat = {name: value.reshape(size * size, *value.shape[2:]) for name, value in q.items()}
    blocks = [
        {name: value[start : start + _POSITIONS] for name, value in flat.items()}
        for start in range(0, size * size, _POSITIONS)
    ]
    maps: Sequence[Any]
    if exact:
        if whitening is not None:
            raise ValueError("whitening: exact kernels have no feature maps to project")
        scaled = list(zip(whole.products, product_scales(whole, exact=True), strict=True))
        maps = [sum(s * product.responses(p, block) for product, s in scaled) for block in blocks]
    else:
        maps = _projected(whole, p, blocks, whitening)
    out = np.concatenate(maps, axis=1).reshape(len(positions), size, size)
    return out[0] if single else out


def _numbers(name: str, value: ArrayLike) -> Array:
    """Finite numbers, or an error that names the argument."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected numbers, got {value!r}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: has NaN or infinity")
    return array


def _values(
    who: str, grid: PatchGrid, theta: ArrayLike, intensity: ArrayLike, shape: ArrayLike
) -> dict[str, Array]:
    """What kernels look at in pixels at the positions of a grid, each of the grid's shape."""

    def spread(name: str, value: ArrayLike, *more: int) -> Array:
        array = _numbers(f"{who}_{name}", value)
        wanted = (*grid.x.shape, *more)
        if array.shape not in (more, wanted):
            raise ValueError(f"{who}_{name}: expected {more} or {wanted}, got {array.shape}")
        if np.abs(array).max(initial=0) > _LARGEST:
            raise ValueError(f"{who}_{name}: expected numbers from {-_LARGEST:g} to {_LARGEST:g}")
        return np.broadcast_to(array, wanted)

    angle = spread("theta", theta)
    brightness = spread("intensity", intensity)
    if brightness.size and np.abs(brightness).max() >= 1:
        raise ValueError(f"{who}_intensity: expected squeezed intensities in (-1, 1)")
    derivatives = np.moveaxis(spread("shape", shape, 3), -1, 0)
    return {
        **positions(grid),
        "theta": angle,
        "relative_theta": angle - grid.phi,
        "intensity": brightness,
        "shape": shape_features(*derivatives),
    }


def product_scales(parametrization: Parametrization, exact: bool = False) -> list[float]:
    """What the response of each product is multiplied by when they are added up.

    >>> product_scales(as_parametrization("polar"))
    [1.0]
    >>> product_scales(as_parametrization("polar+cartesian"), exact=True)
    [0.5, 0.5]
    """
    count = len(parametrization.products)
    if count == 1 or parametrization.preparation.joint:
        return [1.0] * count
    return [1 / count / (1.0 if exact else _self(product)) for product in parametrization.products]


def _self(product: Product) -> float:
    """The truncated response of a pixel to itself; the same for all pixels."""
    return math.prod(
        float(k.approximate(0)) for _, k in product.kernels if isinstance(k, AngleKernel)
    )


def _projected(
    whole: Parametrization,
    p: Values,
    blocks: list[dict[str, Array]],
    whitening: WhiteningLike | None,
) -> list[Array]:
    """Dot products of feature maps, projected if so, of N pixels and of blocks of others."""
    scales = np.sqrt(product_scales(whole))

    def features(values: Values) -> Array:
        products = zip(whole.products, scales, strict=True)
        return np.concatenate(
            [s * product.feature_map(values) for product, s in products], axis=-1
        )

    if whitening is None:
        here = features(p)
        return [here @ features(block).T for block in blocks]
    projection = linear_part(as_head(whitening, whole))
    matrix = projection.matrix.astype(np.float64)
    mean = projection.centre @ matrix
    here = features(p) @ matrix
    maps = []
    for block in blocks:
        there = features(block) @ matrix
        maps.append(here @ there.T - (here @ mean)[:, None] - there @ mean)
    return maps

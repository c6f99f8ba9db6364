"""Why two patches are alike: what each pixel adds to the similarity of their descriptors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.compute.reference import pixel_weights, unit
from mkdesc.heads.head import Affine, Head
from mkdesc.kernels.parametrization import Parametrization, as_parametrization
from mkdesc.kernels.patches import one_patch
from mkdesc.kernels.pixelvalues import pixel_values
from mkdesc.visual.whitenings import WhiteningLike, as_head

Array = NDArray[np.float64]


class _ProductSum(NamedTuple):
    """One product of kernels in a patch: its pixels' weights and features, and their sum."""

    weights: Array  # (S, S)
    features: Array  # (S, S, D)
    sum: Array  # (D,)


class _Pulled(NamedTuple):
    """What a descriptor's dot product with a vector is in terms of the raw descriptor x.

    It is ``x @ forward + constant.sum()``.
    """

    forward: Array
    constant: Array


class Contributions(NamedTuple):
    """What pixels add to the similarity of two patches.

    Attributes
    ----------
    map_p, map_q
        (S, S) float64: what each pixel of either patch adds; S is the side of the patch, or what
        the preparation reduces it to.
    score
        The cosine of the two descriptors.
    """

    map_p: Array
    map_q: Array
    score: float


def contributions(
    p: ArrayLike,
    q: ArrayLike,
    parametrization: str | Parametrization,
    whitening: WhiteningLike | None = None,
) -> Contributions:
    r"""What the pixels of two patches add to the similarity of their descriptors.

    A descriptor is a sum over pixels, so its dot product with another one is a sum over pixels
    too. What follows the sum only weighs its numbers: l2, powers, roots and rectifiers multiply
    every number of this patch's descriptor by a factor, and these factors are taken as they are.
    The mean that a whitening subtracts is shared out among the pixels by their weights, product by
    product, so that a pixel counts for what it adds beyond an average one; constants of hidden
    layers are shared out evenly. Both maps add up exactly to the score, for every model.

    Parameters
    ----------
    p, q
        Two patches of the same side, each (W, W).
    parametrization
        Whose kernels to use.
    whitening
        What follows the raw descriptor, all of it; see :func:`mkdesc.patch_map` for what it may
        be.

    Examples
    --------
    >>> p, q = np.random.default_rng(0).random((2, 64, 64))
    >>> map_p, map_q, score = contributions(p, q, "polar+cartesian", "paper")
    >>> bool(np.isclose(map_p.sum(), score)), bool(np.isclose(map_q.sum(), score))
    (True, True)
    """
    whole = as_parametrization(parametrization)
    head = None if whitening is None else as_head(whitening, whole)
    both = _both(p, q, whole)
    finals, pulls, scales = [], [], []
    for products in both:
        scale = _scales(products, whole.preparation.joint)
        raw = scale * np.concatenate([product.sum for product in products])
        final, pull = _finish(raw, head)
        finals.append(final)
        pulls.append(pull)
        scales.append(scale)
    maps = [
        _spread(products, pull(other), scale)
        for products, pull, other, scale in zip(both, pulls, finals[::-1], scales, strict=True)
    ]
    return Contributions(maps[0], maps[1], float(finals[0] @ finals[1]))


def product_scores(
    p: ArrayLike, q: ArrayLike, parametrization: str | Parametrization
) -> dict[str, float]:
    """The cosines of two patches' raw descriptors, product by product.

    Examples
    --------
    >>> p = np.random.default_rng(0).random((16, 16))
    >>> {name: round(score, 6) for name, score in product_scores(p, p, "cartesian").items()}
    {'x(1,1)*y(1,1)*theta(8,3)': 1.0}
    """
    whole = as_parametrization(parametrization)
    here, there = _both(p, q, whole)
    return {
        str(product): float(unit(a.sum) @ unit(b.sum))
        for product, a, b in zip(whole.products, here, there, strict=True)
    }


def _both(p: ArrayLike, q: ArrayLike, whole: Parametrization) -> list[list[_ProductSum]]:
    """The products of both patches."""
    if np.shape(p)[-2:] != np.shape(q)[-2:]:
        raise ValueError(
            f"p and q: expected patches of one size, got {np.shape(p)} and {np.shape(q)}"
        )
    found = []
    for patch, name in ((p, "p"), (q, "q")):
        block, scale = one_patch(patch, name)
        values = pixel_values(block, whole.preparation, scale, whole.own)
        products = []
        for product in whole.products:
            weights = pixel_weights(values, product, whole.preparation.window)
            features = product.feature_map(values)
            products.append(
                _ProductSum(weights, features, np.einsum("ij,ijd->d", weights, features))
            )
        found.append(products)
    return found


def _scales(products: list[_ProductSum], joint: bool) -> Array:
    """What every number of the sums (D,) is multiplied by to normalise them."""
    norms = [1.0 if joint else float(np.linalg.norm(product.sum)) for product in products]
    scales = np.concatenate(
        [
            np.full(len(product.sum), 1 / n if n > 0 else 0.0)
            for product, n in zip(products, norms, strict=True)
        ]
    )
    whole = float(np.linalg.norm(scales * np.concatenate([product.sum for product in products])))
    return scales / whole if whole > 0 else scales


def _finish(raw: Array, head: Head | None) -> tuple[Array, Callable[[Array], _Pulled]]:
    """The descriptor made of a raw one, and how dot products with it are pulled back to that."""
    stages = () if head is None else head.stages
    points: list[NDArray[Any]] = [raw[None]]
    for stage in stages:
        points.append(stage.apply(points[-1]))

    def pull(other: Array) -> _Pulled:
        forward, constant = other, np.zeros(len(other))
        for stage, (x,), (y,) in zip(stages[::-1], points[-2::-1], points[:0:-1], strict=True):
            if isinstance(stage, Affine):
                # The centre belongs to the numbers that it is subtracted from, the rest to none.
                back = stage.matrix.astype(np.float64) @ forward
                rest = constant.sum() + stage.offset @ forward
                forward, constant = back, rest / len(back) - stage.centre * back
            else:
                # All others multiply each number by a gain, that of this point.
                forward = forward * np.divide(y, x, out=np.zeros_like(y), where=x != 0)
        return _Pulled(forward, constant)

    return points[-1][0], pull


def _spread(products: list[_ProductSum], pulled: _Pulled, scale: Array) -> Array:
    """The contributions of all pixels of a patch, (S, S)."""
    total = np.zeros(products[0].weights.shape)
    first = 0
    for product in products:
        numbers = slice(first, first + len(product.sum))
        each = product.features @ (scale * pulled.forward)[numbers]
        share = pulled.constant[numbers].sum() / product.weights.sum()
        total += product.weights * (each + share)
        first = numbers.stop
    return total

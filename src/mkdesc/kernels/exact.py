"""The match kernel of two patches by its definition: the double sum over their pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.kernels.grid import patch_grid
from mkdesc.kernels.parametrization import Parametrization, as_parametrization
from mkdesc.kernels.patches import one_patch
from mkdesc.kernels.pixelvalues import pixel_values
from mkdesc.kernels.products import Product

#: Pixels of the first patch that are compared with all of the second at a time.
_ROWS = 64

Pixels = dict[str, NDArray[np.float64]]


def match_kernel(
    p: ArrayLike,
    q: ArrayLike,
    parametrization: str | Parametrization = "polar+cartesian",
    exact: bool = True,
    normalize: bool = False,
) -> float:
    r"""Similarity of two patches as a sum over all pairs of their pixels.

    .. math:: M(P, Q) = \sum_{p \in P} \sum_{q \in Q} g_p g_q \sqrt{m_p m_q}\; k(p, q)

    This is the definition that descriptors approximate, and what they are tested against. It
    takes W**4 kernel evaluations: about two seconds for 64-px patches.

    Parameters
    ----------
    p, q
        Two patches of the same side, each (W, W).
    parametrization
        Whose kernels to use; for a sum, the sum of the match kernels of its products.
    exact
        Use the exact von Mises kernels; otherwise their truncated series, whose double sum is
        the dot product of descriptors up to rounding.
    normalize
        Divide each product's match kernel by the self-similarities of the two patches and take
        the mean over the products. This is the dot product of the normalised descriptors.

    Examples
    --------
    >>> p, q = np.random.default_rng(0).random((2, 8, 8))
    >>> similarity = match_kernel(p, q, "cartesian", exact=False, normalize=True)
    >>> from mkdesc import MKD
    >>> a, b = MKD("cartesian", patch_size=8).transform(np.stack([p, q]))
    >>> bool(np.isclose(similarity, a @ b, atol=1e-6))
    True
    """
    whole = as_parametrization(parametrization)
    first, second = _pixels(p, "p", whole), _pixels(q, "q", whole)
    if first["weight"].shape != second["weight"].shape:
        raise ValueError(
            f"p and q: expected patches of one size, got {np.shape(p)} and {np.shape(q)}"
        )

    def sums(a: Pixels, b: Pixels) -> NDArray[np.float64]:
        window = whole.preparation.window
        return np.array([_double_sum(a, b, product, window, exact) for product in whole.products])

    similarities = sums(first, second)
    if not normalize:
        return float(similarities.sum())
    if whole.preparation.joint:
        selves = sums(first, first).sum() * sums(second, second).sum()
        return float(similarities.sum() / np.sqrt(selves))
    return float(np.mean(similarities / np.sqrt(sums(first, first) * sums(second, second))))


def _pixels(patch: ArrayLike, name: str, whole: Parametrization) -> Pixels:
    """What there is to know of the pixels of one patch, flattened."""
    block, scale = one_patch(patch, name)
    values = pixel_values(block, whole.preparation, scale, whole.own)
    values["window"] = patch_grid(len(values["weight"])).window
    return {name: value.reshape(-1, *value.shape[2:]) for name, value in values.items()}


def _double_sum(p: Pixels, q: Pixels, product: Product, window: bool, exact: bool) -> float:
    weights = [np.ones_like(values["weight"]) for values in (p, q)]
    for weight, values in zip(weights, (p, q), strict=True):
        if product.weighted:
            weight *= values["weight"]
        if window:
            weight *= values["window"]
    total = 0.0
    for start in range(0, len(weights[0]), _ROWS):
        rows = slice(start, start + _ROWS)
        k = product.responses({name: value[rows] for name, value in p.items()}, q, exact)
        total += float(weights[0][rows] @ k @ weights[1])
    return total

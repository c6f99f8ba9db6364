"""The match kernel of two patches by its definition: the double sum over their pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.compute.reference import pixels
from mkdesc.parametrization import Parametrization, Product, as_parametrization
from mkdesc.patches import as_patches, nonfinite_error, plain_block

__all__ = ["match_kernel"]

#: Pixels of the first patch that are compared with all of the second at a time.
_ROWS = 64

Pixels = tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]


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
    first, second = _pixels(p, "p"), _pixels(q, "q")
    if first[1].shape != second[1].shape:
        raise ValueError(
            f"p and q: expected patches of one size, got {first[1].shape} and {second[1].shape}"
        )
    parts = as_parametrization(parametrization).parts
    similarities = [_double_sum(first, second, part, exact) for part in parts]
    if not normalize:
        return float(sum(similarities))
    selves = [
        _double_sum(first, first, part, exact) * _double_sum(second, second, part, exact)
        for part in parts
    ]
    return float(np.mean(np.array(similarities) / np.sqrt(selves)))


def _pixels(patch: ArrayLike, name: str) -> Pixels:
    """Attributes and weights of all pixels of one patch, flattened."""
    array = as_patches(patch)
    if len(array) != 1:
        raise ValueError(f"{name}: expected one patch (W, W), got {np.shape(patch)}")
    block, scale = plain_block(array)
    if not np.isfinite(block).all():
        raise nonfinite_error(0)
    values, weight = pixels(block[0], scale)
    return {name: value.ravel() for name, value in values.items()}, weight.ravel()


def _double_sum(p: Pixels, q: Pixels, part: Product, exact: bool) -> float:
    total = 0.0
    for start in range(0, p[1].size, _ROWS):
        rows = slice(start, start + _ROWS)
        k = np.ones((p[1][rows].size, q[1].size))
        for name, kernel in part.kernels:
            delta = np.subtract.outer(p[0][name][rows], q[0][name])
            k *= kernel(delta) if exact else kernel.approximate(delta)
        total += float(p[1][rows] @ k @ q[1])
    return total

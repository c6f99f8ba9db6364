"""Heads laid out for the compiled loops: stages as numbers, matrices in whole vectors."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mkdesc.compute.cpu.structures import Stages, single, whole
from mkdesc.compute.cpu.unrolling import LANES, TILE_FUNCTIONS
from mkdesc.heads.head import L2, Affine, Head, Power, Relu

#: The kinds of stages as numbers.
POWER, AFFINE, RELU, NORM = range(4)
_KINDS = {Power: POWER, Affine: AFFINE, Relu: RELU, L2: NORM}


@lru_cache(maxsize=8)
def make_stages(head: Head) -> Stages:
    """The stages of a head; kept for the next call.

    Examples
    --------
    >>> head = Head((Power(0.5), Affine(np.eye(3)), L2()))
    >>> make_stages(head).kinds.tolist(), make_stages(head).sizes.tolist()
    ([0, 1, 3], [3, 3, 3])
    """
    rows = []
    weights, constants = [np.zeros(0, np.float32)], [np.zeros(0, np.float32)]
    size = head.dims_in
    for stage in head.stages:
        first = sum(map(len, weights)), sum(map(len, constants))
        if isinstance(stage, Affine):
            size = stage.matrix.shape[1]
            weights.append(_padded(stage.matrix).ravel())
            constants.append(stage.constant)
        exponent = stage.exponent if isinstance(stage, Power) else 1.0
        start = stage.start if isinstance(stage, Relu) else 0
        rows.append((_KINDS[type(stage)], size, exponent, start, *first))
    kinds, sizes, exponents, starts, first_weight, first_constant = map(
        np.array, zip(*rows, strict=True)
    )
    return Stages(
        width=max(n + -n % LANES for n in (head.dims_in, *sizes.tolist())),
        kinds=whole(kinds),
        sizes=whole(sizes),
        exponents=single(exponents),
        starts=whole(starts),
        first_weight=whole(first_weight),
        first_constant=whole(first_constant),
        weights=single(np.concatenate(weights)),
        constants=single(np.concatenate(constants)),
    )


def _padded(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """A matrix (D, d) transposed; zeros up to whole vectors, and to the rows of a tile."""
    dims_in, dims_out = matrix.shape
    return np.pad(matrix.T, [(0, -dims_out % TILE_FUNCTIONS), (0, -dims_in % LANES)])

"""Ranks of a query's positives among growing pools of distractors, for HPatches retrieval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mkdesc.measures.ranking import hit_precisions

#: Sizes of the published pools, the positives among them.
POOLS = (100, 500, 1000, 5000, 10_000, 15_000, 20_000)
#: Positives of a query, at each level of noise.
POSITIVES = 5
#: Queries whose similarities to all distractors are held at a time.
BLOCK = 256

Vectors = NDArray[np.float32]


def pool_precisions(
    distractors: Vectors, owners: NDArray[np.integer], sizes: Sequence[int]
) -> Callable[[Vectors, Vectors, int], NDArray[np.float64]]:
    """Prepare distractors; return a function that gives the AP of queries in pools of them.

    Parameters
    ----------
    distractors
        Shape (M, D), float32, in the order in which the pools take them.
    owners
        The sequence of each, shape (M,).
    sizes
        Sizes of the pools, increasing, the 5 positives included.

    Returns
    -------
    callable
        Takes queries (n, D), their positives (n, L * 5, D), five for each of L levels of noise,
        and the sequence of all the queries; returns (n, L, len(sizes), 2), the AP (TREC, then
        trapezoid). Distractors of that sequence are left out.
    """
    pool = distractors + np.float32(0)  # a copy without negative zeros
    half_norms = np.einsum("ij,ij->i", pool, pool) / 2
    # Products of equal vectors may differ in the last bit by their place in the matrix. A tie
    # must stay one, so that each vector takes the value of the first one equal to it.
    first: dict[bytes, int] = {}
    canonical = np.array([first.setdefault(row.tobytes(), i) for i, row in enumerate(pool)])
    repeated = len(first) < len(pool)

    def block(
        queries: Vectors, positives: Vectors, kept: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        similarity = queries @ pool.T
        similarity -= half_norms
        if repeated:
            similarity = similarity[:, canonical]
        found = np.einsum("qd,qpd->qp", queries, positives)
        found -= np.einsum("qpd,qpd->qp", positives, positives) / 2
        for query, column in np.ndindex(found.shape):
            twin = first.get(positives[query, column].tobytes())
            if twin is not None:
                found[query, column] = similarity[query, twin]
        above, tied = _counts(similarity[:, kept], found, sizes)
        return _precisions(found, above, tied)

    def score(queries: Vectors, positives: Vectors, sequence: int) -> NDArray[np.float64]:
        kept = owners != sequence
        positives = positives + np.float32(0)
        starts = range(0, len(queries), BLOCK)
        return np.concatenate(
            [block(queries[s : s + BLOCK], positives[s : s + BLOCK], kept) for s in starts]
        )

    return score


def _counts(
    similarity: Vectors, found: Vectors, sizes: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distractors above and level with each positive, by pool: two arrays (n, positives, pools).

    ``similarity`` (n, M) of the queries to the distractors in order, ``found`` (n, positives) to
    their positives.
    """
    shape = (*found.shape, len(sizes))
    above, tied = np.empty(shape, np.int64), np.empty(shape, np.int64)
    bounds = [0, *(max(0, size - POSITIVES) for size in sizes)]
    for pool, (start, stop) in enumerate(pairwise(bounds)):
        # Only what each pool adds is sorted; counts of the smaller pools are carried over.
        added = np.sort(similarity[:, start:stop], axis=1)
        for query, row in enumerate(added):
            below = np.searchsorted(row, found[query], side="left")
            upto = np.searchsorted(row, found[query], side="right")
            above[query, :, pool] = len(row) - upto
            tied[query, :, pool] = upto - below
    return np.cumsum(above, axis=2), np.cumsum(tied, axis=2)


def _precisions(
    found: Vectors, above: NDArray[np.int64], tied: NDArray[np.int64]
) -> NDArray[np.float64]:
    """AP from the ranks, shape (n, levels, pools, 2)."""
    count, _, pools = above.shape
    shape = (count, -1, POSITIVES, pools)
    groups = found.reshape(count, -1, POSITIVES)
    before = (groups[..., None, :] > groups[..., :, None]).sum(axis=-1)
    equal = groups[..., None, :] == groups[..., :, None]
    together = equal.sum(axis=-1)
    position = np.tril(equal).sum(axis=-1)
    ranks = (before[..., None], position[..., None], together[..., None])
    others = (above.reshape(shape), tied.reshape(shape))
    trec = hit_precisions(*ranks, *others, "trec").mean(axis=2)
    trapezoid = hit_precisions(*ranks, *others, "trapezoid").mean(axis=2)
    return np.stack([trec, trapezoid], axis=-1)

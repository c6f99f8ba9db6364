"""What is asked of descriptors of pairs of views: find the partner, or nothing if there is none.

Keypoints without a partner count twice: nobody should find them, and no two of them each other.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mkdesc.learn.match_pool import MatchBatch, MatchRecipe

#: Stands for minus infinity.
NEVER = -1e4


def match_loss(vectors: Tensor, batch: MatchBatch, costs: MatchRecipe) -> Tensor:
    """How far descriptors are from matching what matches, and nothing else.

    The first part is the cross-entropy of finding each one's partner among all keypoints of the
    second views of the batch, and the other way round, where probabilities are a softmax of
    cosines over the temperature. The second is, for each pair of views, the number of wrong mutual
    nearest neighbours minus that of right ones, with softmax probabilities for neighbours, as a
    share of the matches that there are.

    Parameters
    ----------
    vectors
        (B, 2, N, d) unit vectors.
    batch
        What matches.
    costs
        What counts how much.
    """
    temperature = costs.temperature
    first, second = vectors[:, 0], vectors[:, 1]
    pair, one, two, near, used = batch.pair, batch.one, batch.two, batch.near, batch.used
    forth = _found(first[pair, one], second, batch, used[:, 1], near[pair, one], two, temperature)
    back = _found(
        second[pair, two], first, batch, used[:, 0], near.mT[pair, two], one, temperature
    )
    loss = (forth + back) / 2
    if costs.mutual:
        both = used[:, 0, :, None] & used[:, 1, None, :]
        scores = (first @ second.mT / costs.mutual_temperature).masked_fill(~both, NEVER)
        mutual = scores.softmax(2) * scores.softmax(1)
        wrong = both & ~near & batch.known[:, :, None]
        balance = (mutual * wrong).sum() - mutual[pair, one, two].sum()
        loss = loss + costs.mutual * balance / max(1, len(pair))
    return loss


def _found(
    vectors: Tensor,
    others: Tensor,
    batch: MatchBatch,
    used: Tensor,
    near: Tensor,
    target: Tensor,
    temperature: float,
) -> Tensor:
    """Cross-entropy of vectors (M, d) finding their targets (M,) among others (B, N, d)."""
    pairs, count, dims = others.shape
    scores = (vectors @ others.reshape(-1, dims).T / temperature).view(-1, pairs, count)
    number = torch.arange(len(vectors), device=vectors.device)
    own = used[batch.pair] & ~near
    own[number, target] = True
    candidates = batch.apart[batch.pair][:, :, None] & used
    candidates[number, batch.pair] = own
    scores = scores.masked_fill(~candidates, NEVER).view(len(vectors), -1)
    return cross_entropy(scores, batch.pair * count + target)


def as_bits(vectors: Tensor) -> Tensor:
    """Unit vectors (..., d) of signs; gradients pass as if nothing had happened.

    >>> as_bits(torch.tensor([[0.1, -2.0, 0.3, 0.4]])).tolist()
    [[0.5, -0.5, 0.5, 0.5]]
    """
    signs = torch.where(vectors < 0, -1.0, 1.0) / vectors.shape[-1] ** 0.5
    return vectors + (signs - vectors).detach()

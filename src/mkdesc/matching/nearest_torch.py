"""Nearest neighbours on a device, for several pairs of images at a time."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from mkdesc._support.launching import blocks, launches

#: Descriptors of either set that a program of the kernel compares at a time, and its warps.
ROWS, COLUMNS, WARPS = 128, 64, 4
#: The same for products of float32, which take more registers.
SINGLE_ROWS, SINGLE_COLUMNS = 64, 64
#: Those that plain operations compare at a time: bounds the memory.
PLAIN_ROWS, PLAIN_COLUMNS = 2048, 8192


class Nearest(NamedTuple):
    """Of each of N descriptors in P pairs, what is nearest to it.

    Attributes
    ----------
    indices
        (P, N) int64: which it is.
    best, second
        (P, N) float32: minus half its squared distance, and that of the second nearest; minus
        infinity where there is none.
    """

    indices: Tensor
    best: Tensor
    second: Tensor


class PaddedMatches(NamedTuple):
    """Matches of P pairs of images.

    Attributes
    ----------
    indices
        (P, N) int64: for each descriptor of the first image that of the second; -1: none.
    distances
        (P, N) float32, Euclidean; infinity where there is none.
    """

    indices: Tensor
    distances: Tensor


def match_padded(
    a: Tensor,
    b: Tensor,
    counts_a: Tensor | None = None,
    counts_b: Tensor | None = None,
    *,
    mutual: bool = True,
    ratio: float | None = None,
    max_distance: float | None = None,
    half: bool = False,
) -> PaddedMatches:
    """Match descriptors of P pairs of images on their device; nothing waits for it.

    Parameters
    ----------
    a, b
        (P, N, D) and (P, M, D), or (N, D) and (M, D) for one pair: floats of about unit size, or
        int8 or uint8.
    counts_a, counts_b
        (P,): how many descriptors each has, the first ones; None: all.
    mutual, ratio, max_distance
        As for :func:`mkdesc.match_descriptors`.
    half
        Whether floats may be compared in half precision; bytes are exact in any case.

    Returns
    -------
    PaddedMatches
        (P, N), or (N,) for one pair.

    Examples
    --------
    >>> a = torch.eye(4)
    >>> match_padded(a, a[[2, 0, 1]]).indices.tolist()
    [1, 2, 0, -1]
    """
    if a.ndim == 2 and b.ndim == 2:
        found = match_padded(
            a[None], b[None], counts_a, counts_b,
            mutual=mutual, ratio=ratio, max_distance=max_distance, half=half,
        )  # fmt: skip
        return PaddedMatches(found.indices[0], found.distances[0])
    _check(a, b)
    if not a.shape[1] or not b.shape[1]:
        none = torch.full(a.shape[:2], -1, device=a.device)
        return PaddedMatches(none, torch.full(a.shape[:2], torch.inf, device=a.device))
    unit = 1.0 if a.is_floating_point() else 256.0  # a power of two: bytes stay exact
    half = half or not a.is_floating_point()
    here, there = (_comparable(x, unit, half) for x in (a, b))
    forward = nearest(here, there, counts_b, second=ratio is not None)
    number = torch.arange(a.shape[1], device=a.device)
    good = forward.best > -torch.inf
    if counts_a is not None:
        good &= number < counts_a[:, None]
    if mutual:
        back = nearest(there, here, counts_a, second=False).indices
        good &= back.gather(1, forward.indices) == number
    indices = torch.where(good, forward.indices, 0)
    nearest_of = there.gather(1, indices[..., None].expand(-1, -1, b.shape[2]))
    distances = (here.float() - nearest_of.float()).square().sum(2).sqrt()
    if ratio is not None:
        good &= distances < ratio * (-2 * forward.second).clamp_min(0).sqrt()
    distances = distances * unit
    if max_distance is not None:
        good &= distances <= max_distance
    return PaddedMatches(torch.where(good, indices, -1), torch.where(good, distances, torch.inf))


def _check(a: Tensor, b: Tensor) -> None:
    fits = a.ndim == b.ndim == 3 and len(a) == len(b) and a.shape[2] == b.shape[2]
    if not fits or not a.shape[2]:
        shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
        raise ValueError(f"a and b: expected (P, N, D) and (P, M, D), got {shapes}")
    if a.dtype != b.dtype or not (a.is_floating_point() or a.dtype in (torch.int8, torch.uint8)):
        raise ValueError(f"a and b: expected descriptors of one type, got {a.dtype} and {b.dtype}")


def _comparable(x: Tensor, unit: float, half: bool) -> Tensor:
    kind = torch.float16 if half else torch.float32
    if x.dtype == torch.uint8:
        return ((x.to(kind) - 128) / unit).contiguous()
    return (x.to(kind) / unit).contiguous()


def nearest(a: Tensor, b: Tensor, counts: Tensor | None = None, *, second: bool = True) -> Nearest:
    """For each of ``a`` (P, N, D) the nearest of ``b`` (P, M, D): float16 or float32.

    Parameters
    ----------
    a, b
        Descriptors of about unit size.
    counts
        (P,): how many of ``b`` there are, the first ones; None: all.
    second
        Whether the second nearest is wanted, too.
    """
    (pairs, n, _), m = a.shape, b.shape[1]
    if counts is None:
        counts = torch.full((pairs,), m, device=a.device)
    norms = b.float().square().sum(2) / 2
    indices = torch.zeros((pairs, n), dtype=torch.int64, device=a.device)
    best = torch.full((pairs, n), -torch.inf, device=a.device)
    runner_up = best.clone()
    if n and m and pairs:
        if launches(a):
            _search_by_kernel(a, b, norms, counts, indices, best, runner_up, second)
        else:
            for pair in range(pairs):
                found = indices[pair], best[pair], runner_up[pair]
                _search(a[pair].float(), b[pair].float(), norms[pair], counts[pair], *found)
    own = a.float().square().sum(2) / 2
    return Nearest(indices, best - own, runner_up - own)


def _search_by_kernel(
    a: Tensor,
    b: Tensor,
    norms: Tensor,
    counts: Tensor,
    indices: Tensor,
    best: Tensor,
    runner_up: Tensor,
    second: bool,
) -> None:
    from mkdesc.matching.nearest_triton import search

    pairs, n, dims = a.shape
    single = a.dtype == torch.float32
    rows, columns = (SINGLE_ROWS, SINGLE_COLUMNS) if single else (ROWS, COLUMNS)
    search[(blocks(n, rows), pairs)](
        a.contiguous(), b.contiguous(), norms, counts.contiguous(), indices, best, runner_up,
        n, b.shape[1], D=dims, WIDE=max(1 << (dims - 1).bit_length(), 16), ROWS=rows,
        COLUMNS=columns, SECOND=second, PRECISION="tf32x3" if single else "ieee",
        num_warps=4 if single else WARPS,
    )  # fmt: skip


def _search(
    a: Tensor,
    b: Tensor,
    norms: Tensor,
    count: Tensor,
    indices: Tensor,
    best: Tensor,
    runner_up: Tensor,
) -> None:
    """The same for one pair, by plain operations."""
    number = torch.arange(len(b), device=b.device)
    for row in range(0, len(a), PLAIN_ROWS):
        now = slice(row, row + PLAIN_ROWS)
        for column in range(0, len(b), PLAIN_COLUMNS):
            part = slice(column, column + PLAIN_COLUMNS)
            scores = a[now] @ b[part].T - norms[part]
            scores = torch.where(number[part] < count, scores, -torch.inf)
            top, where = scores.max(1)
            others = scores.scatter(1, where[:, None], -torch.inf).amax(1)
            second = torch.maximum(others, torch.minimum(best[now], top))
            runner_up[now] = torch.maximum(runner_up[now], second)
            indices[now] = torch.where(top > best[now], where + column, indices[now])
            best[now] = torch.maximum(best[now], top)

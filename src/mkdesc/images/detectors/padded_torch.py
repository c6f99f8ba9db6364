"""Keypoints of several images in tensors of one size: which to keep, without leaving the device.

Nothing here waits for a device: how many keypoints there are is a number that stays on it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from mkdesc._support.launching import blocks, launches

#: Rounds in which keypoints of one place are found: of each place the strongest first, then what
#: is left. Each settles one more link of a chain of keypoints, each within reach of the next.
ROUNDS = 12
#: Keypoints that a program of the kernel compares at a time.
BLOCK = 32


class PaddedKeypoints(NamedTuple):
    """Keypoints of B images, the strongest first, in tensors with room for N of each.

    Attributes
    ----------
    points
        (B, N, 4) float32: x, y, sigma, angle, as :class:`~mkdesc.images.Keypoints` has them;
        zeros where there is none.
    scores
        (B, N) float32.
    counts
        (B,) int64: how many keypoints each image has.
    """

    points: Tensor
    scores: Tensor
    counts: Tensor

    def there(self) -> Tensor:
        """Which of the rows (B, N) are keypoints."""
        return _numbers(self.scores) < self.counts[:, None]


def starts_of(sizes: list[int]) -> list[int]:
    """Where things of these sizes begin that lie one after the other, and where the last ends.

    >>> starts_of([3, 5])
    [0, 3, 8]
    """
    return [0, *accumulate(sizes)]


def taken(values: Tensor, indices: Tensor) -> Tensor:
    """The numbers of each image (B, C) at its indices (B, N)."""
    return values.gather(1, indices)


def in_batches(
    detect: Callable[[Tensor, Tensor | None], PaddedKeypoints],
    images: Tensor,
    masks: Tensor | None,
    pixels: int,
) -> PaddedKeypoints:
    """What is detected in images (B, H, W), so many pixels at a time: bounds the memory."""
    step = max(1, pixels // images[:1].numel())
    if len(images) <= step:
        return detect(images, masks)
    parts = [
        detect(images[k : k + step], None if masks is None else masks[k : k + step])
        for k in range(0, len(images), step)
    ]
    return PaddedKeypoints._make(torch.cat(each) for each in zip(*parts, strict=True))


def padded(
    images: Tensor,
    most: int,
    points: Tensor | None = None,
    scores: Tensor | None = None,
    counts: Tensor | None = None,
) -> PaddedKeypoints:
    """Keypoints of images (B, H, W), with zeros where there is none; without points: none."""
    if points is None or scores is None or counts is None:
        zeros = torch.zeros((len(images), most, 4), device=images.device)
        none = torch.zeros(len(images), dtype=torch.int64, device=images.device)
        return PaddedKeypoints(zeros, zeros[..., 0].clone(), none)
    there = PaddedKeypoints(points, scores, counts).there()
    return PaddedKeypoints(
        torch.where(there[..., None], points, 0), torch.where(there, scores, 0), counts
    )


def shown(x: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Which places (B, N), in whole pixels, masks (B, H, W) show."""
    height, width = masks.shape[1:]
    column, row = x.long().clamp(0, width - 1), y.long().clamp(0, height - 1)
    return taken(masks.flatten(1), row * width + column) != 0


def choose_first(kept: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Where the first n that are kept of each image are (B, n), and how many they are (B,).

    >>> places, counts = choose_first(torch.tensor([[True, False, True, True]]), 2)
    >>> places.tolist(), counts.tolist()
    ([[0, 2]], [2])
    """
    rank = kept.cumsum(1)
    target = torch.where(kept & (rank <= n), rank - 1, n)
    places = torch.zeros((len(kept), n + 1), dtype=torch.int64, device=kept.device)
    places.scatter_(1, target, _numbers(kept).expand_as(target))
    return places[:, :n], rank[:, -1].clamp(max=n)


def one_a_place(x: Tensor, y: Tensor, radius: Tensor, there: Tensor) -> Tensor:
    """Which keypoints (B, K), the strongest first, have no stronger one within their radius.

    Of two keypoints the smaller radius counts, and one that is dropped drops no other; as
    :func:`mkdesc.images.detectors.places.one_per_place`.

    Parameters
    ----------
    x, y, radius
        (B, K) float32.
    there
        (B, K) bool: those that are keypoints at all.
    """
    if launches(x):
        return _one_a_place_by_kernel(x, y, radius, there)
    return torch.stack([_one_by_one(*each) for each in zip(x, y, radius, there, strict=True)])


def _one_by_one(x: Tensor, y: Tensor, radius: Tensor, there: Tensor) -> Tensor:
    """The same of one image (K,), by plain operations."""
    number = torch.arange(len(x), device=x.device)
    near = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
    near = near <= torch.minimum(radius[:, None], radius) ** 2
    near &= (number < number[:, None]) & there
    kept = there
    for _ in range(ROUNDS):
        kept = there & ~(near & kept).any(1)
    return kept


def _one_a_place_by_kernel(x: Tensor, y: Tensor, radius: Tensor, there: Tensor) -> Tensor:
    from mkdesc.images.detectors.padded_triton import keep_places

    batch, n = x.shape
    x, y, radius = x.contiguous(), y.contiguous(), radius.contiguous()
    valid = there.to(torch.int8).contiguous()
    before, after = valid, torch.empty_like(valid)
    spare = torch.empty_like(valid)
    for _ in range(ROUNDS):
        keep_places[(blocks(n, BLOCK), batch)](x, y, radius, valid, before, after, n, BLOCK=BLOCK)
        before, after = after, (spare if before is valid else before)
    return before.bool()


def _numbers(like: Tensor) -> Tensor:
    return torch.arange(like.shape[1], device=like.device)[None]

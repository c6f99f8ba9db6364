"""Photographs to features on a device, from pixels to descriptors, in batches."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mkdesc._support.check import check_choice, check_integer, checked_sides
from mkdesc.compute.torch.module import Descriptor, check_range
from mkdesc.descriptor import MKD, Side
from mkdesc.features.choices import can_be_on_device, sides_for
from mkdesc.heads.quantise import INT8_SCALE, OUTPUTS, UINT8_SCALE, UINT8_ZERO
from mkdesc.images.cutting_points_torch import cut_points
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.padded_torch import PaddedKeypoints
from mkdesc.images.detectors.registry import DEFAULT_DETECTOR, Detector, as_detector
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.models import DEFAULT_MODEL, load_model

#: Images of one size that are described together, where there are many.
BATCH = 16


class PaddedFeatures(NamedTuple):
    """Features of B images, the strongest first, in tensors with room for N of each.

    Attributes
    ----------
    points
        (B, N, 4) float32: x, y, sigma, angle; zeros where there is none.
    scores
        (B, N) float32.
    descriptors
        (B, N, D) float32, float16, int8 or uint8; zeros where there is none.
    counts
        (B,) int64: how many features each image has.
    """

    points: Tensor
    scores: Tensor
    descriptors: Tensor
    counts: Tensor

    def of(self, image: int) -> tuple[Tensor, Tensor, Tensor]:
        """Points (n, 4), scores (n,) and descriptors (n, D) of one image; waits for the device."""
        n = int(self.counts[image])
        return self.points[image, :n], self.scores[image, :n], self.descriptors[image, :n]


class Features(nn.Module):
    """Detect and describe on a device: images in, padded features out, without waiting for it.

    The same features as :class:`mkdesc.Features` finds, but for what rounding changes.

    Parameters
    ----------
    detector
        ``"learned"``, or this detector with your own settings
        (:func:`~mkdesc.images.make_detector`), which must have the same ``max_keypoints``.
    max_keypoints
        How many to keep of an image, at most: N.
    model
        Name of a bundled model, a model file, or an :class:`mkdesc.MKD`.
    side
        Side of the square that is described, in units of sigma, or sides of several; None: what
        suits the detector or the model.
    upright
        Whether to ignore the orientation of keypoints.
    output
        ``"float32"``, ``"int8"``, ``"uint8"`` or ``"bits"``, as for :class:`mkdesc.MKD`. After
        ``.half()`` floats are float16.

    Examples
    --------
    >>> features = Features(max_keypoints=20)
    >>> images = torch.randint(0, 256, (2, 1, 80, 100), dtype=torch.uint8)
    >>> found = features(images)
    >>> found.points.shape, found.descriptors.shape, found.counts.tolist()
    (torch.Size([2, 20, 4]), torch.Size([2, 20, 128]), [20, 20])
    """

    def __init__(
        self,
        detector: str | Detector = DEFAULT_DETECTOR,
        max_keypoints: int = 2000,
        model: str | os.PathLike[str] | MKD = DEFAULT_MODEL,
        side: Side = None,
        upright: bool = False,
        output: str = "float32",
    ) -> None:
        super().__init__()
        check_integer("max_keypoints", max_keypoints)
        check_choice("output", output, OUTPUTS)
        self.detector: Any = as_detector(detector, max_keypoints=max_keypoints, upright=upright)
        if not can_be_on_device(self.detector, max_keypoints):
            raise ValueError(
                "detector: expected learned, with the same max_keypoints and without spread, "
                f"got {detector!r}"
            )
        mkd = model if isinstance(model, MKD) else load_model(model)
        self.sides = sides_for(self.detector, mkd) if side is None else checked_sides(side)
        if len(self.sides) != mkd.squares:
            raise ValueError(f"side: expected {mkd.squares} for this model, got {side!r}")
        self.upright, self.output, self.max_keypoints = upright, output, int(max_keypoints)
        parametrization = as_parametrization(mkd.parametrization)
        self.descriptor = Descriptor(
            parametrization, int(mkd.patch_size), mkd.effective_head(), squares=mkd.squares
        )
        if output == "bits" and self.descriptor.out_dims % 8:
            raise ValueError(
                "output: expected a multiple of 8 numbers for bits, got "
                f"{self.descriptor.out_dims}"
            )

    def extra_repr(self) -> str:
        """What detects, and how many."""
        return f"{self.detector!r}, sides={self.sides}"

    @torch.no_grad()
    def forward(self, images: Tensor, masks: Tensor | None = None) -> PaddedFeatures:
        """Detect and describe.

        Parameters
        ----------
        images
            (B, 1, H, W) or (B, H, W), gray: uint8, or floats in [0, 1] (checked on the CPU).
        masks
            Of the shape of the images, bool or uint8: keypoints are looked for where it is not
            zero; None: everywhere.
        """
        gray = _planes(images, "images")
        check_range(gray, "images")
        where = None if masks is None else _planes(masks, "masks")
        if where is not None and where.shape != gray.shape:
            shapes = f"{tuple(gray.shape)}, got {tuple(where.shape)}"
            raise ValueError(f"masks: expected the shape of the images {shapes}")
        found = self.detect(gray, where)
        descriptors = self.describe(gray, found.points)
        there = found.there()[..., None]
        return PaddedFeatures(
            found.points, found.scores, torch.where(there, descriptors, 0), found.counts
        )

    def detect(self, gray: Tensor, masks: Tensor | None = None) -> PaddedKeypoints:
        """Keypoints of images (B, H, W)."""
        pixels = gray
        if gray.dtype != torch.uint8:
            pixels = (gray.float() * 255 + 0.5).clamp(0, 255).to(torch.uint8)
        found: PaddedKeypoints = self.detector.detect_padded(pixels, masks)
        points = found.points * _upright(found.points) if self.upright else found.points
        n = self.max_keypoints
        return PaddedKeypoints(points[:, :n], found.scores[:, :n], found.counts.clamp(max=n))

    def describe(self, gray: Tensor, points: Tensor) -> Tensor:
        """Descriptors (B, N, D) of points (B, N, 4) of images (B, H, W)."""
        images = gray if gray.dtype == torch.uint8 else gray.float()
        patches = cut_points(images, points, self.descriptor.patch_size, self.sides)
        batch, n = points.shape[:2]
        found = self.descriptor(patches.flatten(0, 1)).view(batch, n, -1)
        if self.output == "int8":
            return (found.float() * INT8_SCALE).round().clamp(-127, 127).to(torch.int8)
        if self.output == "bits":
            powers = 2 ** torch.arange(7, -1, -1, device=found.device)
            return ((found > 0).unflatten(-1, (-1, 8)) * powers).sum(-1).byte()
        if self.output == "uint8":
            return (found.float() * UINT8_SCALE + UINT8_ZERO).round().clamp(0, 255).byte()
        return found

    def extract_array(
        self, gray: NDArray[Any], mask: NDArray[np.uint8] | None = None
    ) -> tuple[Keypoints, NDArray[Any]]:
        """Keypoints and descriptors of one image that is an array: uint8, uint16 or float32."""
        if gray.dtype == np.uint16:
            gray = gray.astype(np.float32) / 65535
        device = self.descriptor.sums.device
        image, *more = (
            torch.from_numpy(np.ascontiguousarray(each)).to(device)[None]
            for each in (gray, mask)
            if each is not None
        )
        points, scores, descriptors = (each.cpu().numpy() for each in self(image, *more).of(0))
        return Keypoints(points, scores), descriptors

    def extract(self, images: Iterable[Tensor]) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Points, scores and descriptors of images (H, W) or (1, H, W) of any sizes.

        Those of one size are described together, 16 at a time.

        >>> images = [torch.rand(60, 80), torch.rand(50, 50), torch.rand(60, 80)]
        >>> [len(points) for points, _, _ in Features(max_keypoints=9).extract(images)]
        [9, 9, 9]
        """
        each = [image[0] if image.ndim == 3 else image for image in images]
        buckets: dict[Any, list[int]] = {}
        for number, image in enumerate(each):
            buckets.setdefault((image.shape, image.dtype), []).append(number)
        done: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        for numbers in buckets.values():
            for start in range(0, len(numbers), BATCH):
                some = numbers[start : start + BATCH]
                found = self(torch.stack([each[number] for number in some]))
                done |= {number: found.of(k) for k, number in enumerate(some)}
        return [done[number] for number in range(len(each))]


def _planes(images: Tensor, name: str) -> Tensor:
    """Images as (B, H, W)."""
    shape = tuple(images.shape)
    if images.ndim == 4 and shape[1] == 1:
        images = images[:, 0]
    if images.ndim != 3 or not min(images.shape[1:]):
        raise ValueError(f"{name}: expected (B, 1, H, W) or (B, H, W), got {shape}")
    if images.dtype not in (torch.uint8, torch.bool) and not images.is_floating_point():
        raise ValueError(f"{name}: expected uint8 or floats, got {images.dtype}")
    return images


def _upright(points: Tensor) -> Tensor:
    """What takes the angle away."""
    return (torch.arange(4, device=points.device) < 3).to(points.dtype)

"""The learned detector as an ONNX file: keypoints of one level of the pyramid."""

from __future__ import annotations

import os

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from mkdesc._support.onnx_files import RANGES, check_onnx_dtype, write_onnx
from mkdesc.images.detectors.learned_reference import LEAST_BEND
from mkdesc.images.detectors.learned_torch import Scorer, mean_gradients, only_maxima, vertex
from mkdesc.images.detectors.learned_weights import Weights, load_weights

#: What these files have in them: who wrote them, and the names of the outputs.
OWN_KEYPOINTS_ONNX = rb"(?s)pytorch.*scores.*places.*angles"


class Level(nn.Module):
    """Of every pixel: its score if it is a keypoint, where exactly, and its angle."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.scorer = Scorer(weights).eval().requires_grad_(False)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scores (N, 1, H, W), places (N, 2, H, W) and angles (N, 1, H, W) of images."""
        gray = images[:, 0]
        gray = gray.float() / 255 if gray.dtype == torch.uint8 else gray
        scores = self.scorer(gray)
        wide = pad(scores, (1, 1, 1, 1), value=-torch.inf)
        x, bend_x = vertex(wide[:, 1:-1, :-2], scores, wide[:, 1:-1, 2:])
        y, bend_y = vertex(wide[:, :-2, 1:-1], scores, wide[:, 2:, 1:-1])
        bend = torch.minimum(bend_x, bend_y)
        peak = (only_maxima(scores) > -torch.inf) & (bend > LEAST_BEND)
        m = (self.scorer.margin,) * 4
        scores = pad(torch.where(peak, scores, -torch.inf), m, value=-torch.inf)
        row = torch.arange(gray.shape[1], device=gray.device)[:, None]
        column = torch.arange(gray.shape[2], device=gray.device)
        x = pad(torch.where(peak, x, 0), m) + column
        y = pad(torch.where(peak, y, 0), m) + row
        across, down = mean_gradients(gray)
        angles = torch.rad2deg(torch.atan2(down, across))
        angles = torch.where(angles < 0, angles + 360, angles)
        return scores[:, None], torch.stack([x, y], 1), angles[:, None]


def export_keypoints_onnx(
    path: str | os.PathLike[str],
    weights: str | os.PathLike[str] = "keypoints",
    dtype: str = "float32",
    *,
    overwrite: bool = False,
) -> None:
    """Write the learned detector as an ONNX file, for images of any size.

    Its one input has the name ``images``: (N, 1, H, W), gray. Its outputs are ``scores``
    (N, 1, H, W), minus infinity where there is no keypoint; ``places`` (N, 2, H, W), their x and
    y; and ``angles`` (N, 1, H, W), in degrees, clockwise. It is one level of the pyramid: pass
    images that are ever smaller, by 1 / sqrt 2, for larger keypoints.

    Parameters
    ----------
    path
        Where to.
    weights
        Name of bundled weights, or a file.
    dtype
        Of the images: ``"float32"``, from 0 to 1, or ``"uint8"``.
    overwrite
        Whether to replace a file that is no such detector.
    """
    write_onnx(
        Level(load_weights(os.fspath(weights))),
        torch.zeros((2, 1, 60, 80), dtype=check_onnx_dtype(dtype)),
        path,
        names=("images", ["scores", "places", "angles"]),
        dynamic={0: "batch", 2: "height", 3: "width"},
        note=f"{dtype} (N, 1, H, W), {RANGES[dtype]}",
        own=OWN_KEYPOINTS_ONNX,
        overwrite=overwrite,
    )

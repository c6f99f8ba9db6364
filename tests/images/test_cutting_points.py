"""Squares around points of several images at once, against compiled code, one by one."""

import numpy as np
import pytest
import torch

from mkdesc.images import cutting
from mkdesc.images.cutting_points_torch import cut_points

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("shape", [(97, 131), (3, 40)])
def test_the_same_patches_as_compiled_code(rng, shape, dtype, device):
    """Finer and far coarser than the images, turned, some beyond their borders."""
    images = rng.integers(0, 256, (2, *shape)).astype(dtype)
    x, y = (rng.uniform(-5, side + 5, (2, 30)) for side in shape[::-1])
    sigma = np.tile(np.geomspace(0.3, 30, 30), (2, 1))
    points = np.stack([x, y, sigma, rng.uniform(0, 360, (2, 30))], -1).astype(np.float32)
    sides = (12.0, 20.0, 33.0)
    where = (torch.from_numpy(images).to(device), torch.from_numpy(points).to(device))
    found = cut_points(*where, 24, sides).cpu().numpy()
    assert found.shape == (2, 30, 3, 24, 24)
    assert found.dtype == dtype
    for k in range(2):
        expected = cutting.cut_patches(images[k], points[k], 24, sides, interpolation="linear")
        away = np.abs(found[k].astype(float) - expected)
        # A value in the middle between two integers may be rounded to either.
        assert away.max() <= (1 if dtype == np.uint8 else 0.02)
        assert away.mean() < 1e-3


def test_nothing_to_cut():
    image = torch.zeros((2, 20, 30))
    assert cut_points(image, torch.zeros((2, 0, 4)), 8, [12.0]).shape == (2, 0, 1, 8, 8)
    assert not cut_points(image, torch.zeros((2, 3, 4)), 8, [12.0]).any()  # rows that are padded

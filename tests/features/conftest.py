"""Photographs between which the truth is known."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, map_coordinates


class Bent(NamedTuple):
    """Two photographs, and how far (H, W, 2) each pixel of the first moves to the second."""

    first: np.ndarray
    second: np.ndarray
    field: np.ndarray

    @property
    def places(self):
        y, x = np.mgrid[: self.first.shape[0], : self.first.shape[1]]
        return self.field + np.stack([x, y], axis=-1)

    @property
    def shown(self):
        """Where the second photograph shows what the first one shows."""
        (x, y), (height, width) = np.moveaxis(self.places, -1, 0), self.second.shape
        return (x > 0) & (x < width - 1) & (y > 0) & (y < height - 1)


def make_texture(seed, shape=(300, 400)):
    rng = np.random.default_rng(seed)
    layers = (gaussian_filter(rng.normal(size=shape), sigma) for sigma in (1.5, 3, 6, 12))
    total = sum(layer / layer.std() for layer in layers)
    return ((total - total.min()) / np.ptp(total) * 255).astype(np.uint8)


@pytest.fixture(scope="session")
def texture():
    """Makes blobs of many sizes."""
    return make_texture


@pytest.fixture(scope="session")
def bend():
    """A smooth displacement that no homography has."""

    def displacement(x, y):
        return np.stack([6 + 4 * np.sin(y / 50), 0.02 * x - 3 + 3 * np.cos(x / 60)], axis=-1)

    return displacement


@pytest.fixture(scope="session")
def bent(bend):
    """Bent, with gain, offset and noise."""
    second = make_texture(0)
    y, x = np.mgrid[:300, :400].astype(float)
    field = bend(x, y)
    at = [y + field[..., 1], x + field[..., 0]]
    seen = map_coordinates(second.astype(float), at, order=3, mode="mirror")
    noise = np.random.default_rng(1).normal(0, 2, seen.shape)
    return Bent((seen * 0.8 + 20 + noise).clip(0, 255).astype(np.uint8), second, field)

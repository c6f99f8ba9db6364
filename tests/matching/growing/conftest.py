"""Textures in closed form: what a photograph of one, moved in any way, must show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

#: Rendered of a texture where pixel (x, y) shows its place (u, v).
Render = Callable[..., np.ndarray]


@pytest.fixture(scope="session")
def texture() -> Render:
    """Gray levels (H, W), float64 from about 40 to 210, of 200 waves, 7 px long and longer."""
    rng = np.random.default_rng(3)
    lengths, ways = 7 * 2 ** rng.uniform(0, 3, 200), rng.uniform(0, 2 * np.pi, 200)
    k = 2 * np.pi / lengths * np.array([np.cos(ways), np.sin(ways)])
    phases, heights = rng.uniform(0, 2 * np.pi, 200), np.sqrt(lengths)
    heights *= 28 / np.sqrt((heights**2).sum() / 2)

    def render(shape, matrix=((1.0, 0), (0, 1)), shift=(0.0, 0)):
        """The pixel ``matrix @ (u, v) + shift`` shows (u, v)."""
        y, x = np.mgrid[: shape[0], : shape[1]].reshape(2, -1)
        u, v = np.linalg.solve(np.array(matrix), np.array([x - shift[0], y - shift[1]]))
        gray = np.zeros(len(u))
        for kx, ky, phase, height in zip(*k, phases, heights, strict=True):
            gray += height * np.cos(kx * u + ky * v + phase)
        return (125 + gray).reshape(shape)

    return render


@pytest.fixture(scope="session")
def as_photograph() -> Callable[[np.ndarray], np.ndarray]:
    """Rounded to uint8."""
    return lambda gray: np.clip(np.rint(gray), 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def inner_places() -> Callable[..., np.ndarray]:
    """Places (N, 2) whose partners, too, are far from the border."""

    def choose(n, shape, matrix, shift, margin=40):
        rng = np.random.default_rng(5)
        size = np.array(shape[::-1])
        xy = rng.uniform(margin, size - 1 - margin, (20 * n, 2))
        there = xy @ np.array(matrix).T + shift
        return xy[((there > margin) & (there < size - 1 - margin)).all(axis=1)][:n]

    return choose

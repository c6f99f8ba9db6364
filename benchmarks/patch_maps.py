"""What docs/patch-maps.md says of patch maps, in numbers.

python benchmarks/patch_maps.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import map_coordinates

from mkdesc import patch_map
from mkdesc.kernels import patch_grid
from mkdesc.visual.extended import CHANGES, LOOK, PIXEL

#: Pixels around the centre.
RING = [(31.5 + 16 * np.sin(t), 31.5 + 16 * np.cos(t)) for t in np.arange(12) * np.pi / 6 + 0.1]


def centre_step(spec, pixel, whitening=None):
    """The largest step between neighbours at the centre, as a share of the map's range."""
    m = patch_map(pixel, spec, whitening=whitening)
    centre = m[30:34, 30:34]
    return max(np.abs(np.diff(centre, axis=axis)).max() for axis in (0, 1)) / np.ptp(m)


def polar_peak(spec, q_theta, pixel=(70, 70), size=225):
    """Where a map on a fine grid is highest: angle and distance from the centre."""
    m = patch_map(pixel, spec, q_theta=q_theta, patch_size=size)
    grid = patch_grid(size)
    at = np.unravel_index(m.argmax(), m.shape)
    return grid.phi[at] - grid.phi[pixel], grid.rho[at] - grid.rho[pixel]


def half_widths(whitening):
    """Mean widths at half height, in pixels, along circle and radius, of maps of a ring."""
    found = []
    for pixel, m in zip(RING, patch_map(RING, "polar", whitening=whitening), strict=True):
        dy, dx = np.subtract(pixel, 31.5)
        phi = np.arctan2(dy, dx)
        t = np.linspace(-np.pi, np.pi, 1601)
        r = np.linspace(2, 40, 761)
        lines = [(16, phi + t, 16 * t), (r, phi, r)]
        for radius, angle, along in lines:
            places = [31.5 + radius * np.sin(angle), 31.5 + radius * np.cos(angle)]
            line = map_coordinates(m, places, order=1, mode="nearest")
            low = line < line.max() / 2
            peak = line.argmax()
            left = along[:peak][low[:peak]].max(initial=along[0])
            right = along[peak:][low[peak:]].min(initial=along[-1])
            found.append(right - left)
    return np.reshape(found, (-1, 2)).mean(axis=0)


def shift_losses(pixel: tuple[int, int]) -> dict[str, float]:
    """What three pixels to any side cost of the similarity."""
    row, column = pixel
    losses = {}
    for kernels in ("polar", "cartesian"):
        values = patch_map(pixel, kernels)
        sides = values[[row - 3, row + 3, row, row], [column, column, column - 3, column + 3]]
        losses[kernels] = float(1 - sides.min() / values[pixel])
    return losses


def main() -> None:
    moved, _ = polar_peak("polar", -np.pi / 8)
    print(
        f"gradient turned by 22.5 degrees: polar's peak moves by {np.rad2deg(moved):.1f} degrees"
    )
    losses = shift_losses((20, 20))
    print("three pixels aside:", *(f"{name} loses {lost:.0%}" for name, lost in losses.items()))
    maps = {
        whitening: patch_map(RING, "polar", whitening=whitening).reshape(len(RING), -1)
        for whitening in (None, "polar-pca", "polar-lw")
    }
    for whitening in ("polar-pca", "polar-lw"):
        both = zip(maps[None], maps[whitening], strict=True)
        alike = np.mean([np.corrcoef(raw, found)[0, 1] for raw, found in both])
        print(f"{whitening}: correlation {alike:.2f} with the raw map")
    for whitening in (None, "polar-lw"):
        circle, radius = half_widths(whitening)
        name = whitening or "polar, raw"
        print(f"{name}: {circle:.1f} px wide along the circle, {radius:.1f} along the radius")
    for kernels, whitening in (
        ("polar", None),
        ("polar+cartesian", None),
        ("polar", "polar-lw"),
        ("polar+cartesian", "polar-cartesian-lw"),
    ):
        steps = (
            f"{centre_step(kernels, at, whitening):.0%} for {at}" for at in ((30, 30), (20, 20))
        )
        print(f"{whitening or kernels + ', raw'}: step at the centre {', '.join(steps)}")
    for whitening in (None, "extended"):
        same = _at_pixel({}, whitening)
        kept = (
            f"{name} {_at_pixel(CHANGES[name], whitening) / same:.0%}"
            for name in ("gradient reversed", "dark", "dark line")
        )
        print(f"extended, {'whitened' if whitening else 'raw'}, keeps of its response:", *kept)


def _at_pixel(change: dict[str, Any], whitening: str | None) -> float:
    """The response of a pixel to one at its place in which something is different."""
    looks = {f"p_{name}": value for name, value in LOOK.items()}
    looks |= {f"q_{name}": value for name, value in (LOOK | change).items()}
    return float(patch_map(PIXEL, "extended", whitening=whitening, **looks)[PIXEL])


if __name__ == "__main__":
    main()

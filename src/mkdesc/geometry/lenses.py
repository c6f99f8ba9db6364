"""COLMAP's camera models: what their parameters are, and how their lenses distort.

A lens moves the ray (u, v) at depth 1 along its radius |(u, v)| to r (1 + k1 r^2 + k2 r^4 + ...),
where r is the radius, or for fisheye lenses the angle arctan |(u, v)| from the optical axis.
``FULL_OPENCV`` divides by another such polynomial; p1 and p2 add a tangential part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Newton steps that undo a distortion, the step of their derivatives, and how near they must come.
STEPS, DELTA, REACHED = 30, 1e-6, 1e-9

#: A ray's angle from the optical axis that is still undone for fisheye lenses, in radians.
WIDEST = 1.5

Floats = NDArray[np.float64]


class Lens(NamedTuple):
    """A camera model.

    Attributes
    ----------
    parameters
        Their names, in COLMAP's order.
    fisheye
        Whether polynomials are of the angle from the optical axis.
    """

    parameters: tuple[str, ...]
    fisheye: bool = False


_ONE_FOCAL, _TWO_FOCALS = ("f", "cx", "cy"), ("fx", "fy", "cx", "cy")

#: The models by their names in COLMAP's files.
LENSES = {
    "SIMPLE_PINHOLE": Lens(_ONE_FOCAL),
    "PINHOLE": Lens(_TWO_FOCALS),
    "SIMPLE_RADIAL": Lens((*_ONE_FOCAL, "k1")),
    "RADIAL": Lens((*_ONE_FOCAL, "k1", "k2")),
    "OPENCV": Lens((*_TWO_FOCALS, "k1", "k2", "p1", "p2")),
    "FULL_OPENCV": Lens((*_TWO_FOCALS, "k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6")),
    "SIMPLE_RADIAL_FISHEYE": Lens((*_ONE_FOCAL, "k1"), fisheye=True),
    "RADIAL_FISHEYE": Lens((*_ONE_FOCAL, "k1", "k2"), fisheye=True),
    "OPENCV_FISHEYE": Lens((*_TWO_FOCALS, "k1", "k2", "k3", "k4"), fisheye=True),
}


def distort(rays: Floats, lens: Lens, values: dict[str, float]) -> Floats:
    """Where a lens shows rays (N, 2), at depth 1.

    Examples
    --------
    >>> distort(np.array([[0.5, 0]]), LENSES["SIMPLE_RADIAL"], {"k1": 0.1})
    array([[0.5125, 0.    ]])
    """
    k1, k2, k3, k4, k5, k6, p1, p2 = (
        values.get(name, 0.0) for name in ("k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2")
    )
    u, v = rays.T
    r2 = u * u + v * v
    if lens.fisheye:
        radius = np.sqrt(r2)
        angle = np.arctan(radius)
        t2 = angle * angle
        scale = np.divide(angle, radius, out=np.ones_like(radius), where=radius > 1e-12)
        return rays * (scale * (1 + t2 * (k1 + t2 * (k2 + t2 * (k3 + t2 * k4)))))[:, None]
    radial = (1 + r2 * (k1 + r2 * (k2 + r2 * k3))) / (1 + r2 * (k4 + r2 * (k5 + r2 * k6)))
    return np.column_stack(
        [
            u * radial + 2 * p1 * u * v + p2 * (r2 + 2 * u * u),
            v * radial + 2 * p2 * u * v + p1 * (r2 + 2 * v * v),
        ]
    )


def undistort(seen: Floats, lens: Lens, values: dict[str, float]) -> Floats:
    """The rays (N, 2) that a lens shows at given places: Newton's method.

    NaN where no ray is shown: beyond the place where a polynomial turns back.

    Examples
    --------
    >>> undistort(np.array([[0.5125, 0]]), LENSES["SIMPLE_RADIAL"], {"k1": 0.1}).round(6)
    array([[0.5, 0. ]])
    """
    if not any(values.get(name, 0.0) for name in lens.parameters if name[0] in "kp") and (
        not lens.fisheye
    ):
        return seen
    rays = seen.copy()
    if lens.fisheye:
        angle = np.linalg.norm(seen, axis=1)
        turned = np.divide(
            np.tan(np.minimum(angle, WIDEST)), angle, out=np.ones_like(angle), where=angle > 1e-12
        )
        rays *= turned[:, None]
    with np.errstate(all="ignore"):
        for _ in range(STEPS):
            off = distort(rays, lens, values) - seen
            if not np.nanmax(np.abs(off), initial=0.0) > REACHED / 100:
                break
            # Columns of the Jacobian by central differences.
            columns = [
                (distort(rays + step, lens, values) - distort(rays - step, lens, values))
                / (2 * DELTA)
                for step in np.eye(2) * DELTA
            ]
            (a, c), (b, d) = columns[0].T, columns[1].T
            determinant = a * d - b * c
            rays = rays - np.column_stack(
                [
                    (d * off[:, 0] - b * off[:, 1]) / determinant,
                    (a * off[:, 1] - c * off[:, 0]) / determinant,
                ]
            )
        off = np.abs(distort(rays, lens, values) - seen).max(axis=1, initial=0.0)
        rays[~((off < REACHED) & _goes_outward(rays, lens, values))] = np.nan
    return rays


def _goes_outward(rays: Floats, lens: Lens, values: dict[str, float]) -> NDArray[np.bool_]:
    """Whether (N,) rays further out are shown further out: not where a polynomial turns back."""
    radius = np.linalg.norm(rays, axis=1)
    outward = rays / np.maximum(radius, 1e-12)[:, None]
    outward[radius < 1e-12] = [1.0, 0.0]
    ahead = distort(rays + DELTA * outward, lens, values)
    behind = distort(rays - DELTA * outward, lens, values)
    return np.asarray(((ahead - behind) * outward).sum(axis=1) > 0)

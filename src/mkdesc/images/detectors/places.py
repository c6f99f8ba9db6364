"""Which of many keypoints to keep: one a place, or spread evenly over the image."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import array_type
from mkdesc.images.detectors.keypoints import Keypoints, check_max_keypoints

#: Pixels within which two keypoints are of one place.
RADIUS = 2.0

#: :func:`spread_evenly` knows its radius as exactly as this.
EXACTLY = 1.02


@locked_cache
def compile_places() -> Callable[..., int]:
    """The compiled loop, from the cache if it is there."""
    floats = array_type("float64", 1)
    arguments = (floats, floats, floats, "int64", array_type("int64", 1, written=True))
    return compile_loop("mkdesc.images.detectors.places_numba:choose", arguments)


def one_per_place(
    keypoints: Keypoints, radius: ArrayLike = RADIUS, n: int | None = None
) -> Keypoints:
    """Keep the strongest keypoint of each place, and none that is within a radius of it.

    Keypoints are taken by falling score (:meth:`Keypoints.strongest`); each is kept unless one
    that was kept before is at most a radius away.

    Parameters
    ----------
    keypoints
        In any order.
    radius
        In pixels, >= 0: a number, or one for each keypoint (N,); of two keypoints the smaller
        radius counts.
    n
        How many to keep at most: the strongest; None: all.

    Returns
    -------
    Keypoints
        The strongest first.

    Examples
    --------
    >>> found = Keypoints([[5, 5, 2, 0], [6, 5, 2, 90], [7.5, 5, 2, 0]], [0.2, 0.3, 0.1])
    >>> one_per_place(found).points[:, 0].tolist()
    [6.0]
    >>> one_per_place(found, 1).points[:, 0].tolist()
    [6.0, 7.5]
    """
    return keypoints.take(choose_places(keypoints, radius, n))


def choose_places(
    keypoints: Keypoints, radius: ArrayLike = RADIUS, n: int | None = None
) -> NDArray[np.int64]:
    """The numbers of what :func:`one_per_place` keeps, in its order."""
    check_max_keypoints(n)
    radii = np.asarray(radius, np.float64)
    if radii.shape not in ((), (len(keypoints),)):
        raise ValueError(
            f"radius: expected a number or one for each of {len(keypoints)} keypoints, "
            f"got {radii.shape}"
        )
    if not (np.isfinite(radii) & (radii >= 0)).all():
        raise ValueError("radius: expected numbers >= 0")
    order = keypoints.strongest_first()
    return order[_choose(keypoints, order, radii, n)]


def spread_evenly(keypoints: Keypoints, n: int) -> Keypoints:
    """Keep ``n`` keypoints as far from each other as can be, strong ones rather than weak ones.

    They are one a place with the largest radius that leaves ``n`` ("adaptive non-maximal
    suppression"; Brown, Szeliski, Winder, 2005).

    Parameters
    ----------
    keypoints
        In any order.
    n
        How many to keep.

    Returns
    -------
    Keypoints
        The strongest first; all of them if there are no more than ``n``.

    Examples
    --------
    >>> row = Keypoints([[x, 5, 2, 0] for x in range(10)], np.arange(10))
    >>> spread_evenly(row, 2).points[:, 0].tolist()
    [9.0, 0.0]
    """
    return keypoints.take(choose_spread(keypoints, n))


def choose_spread(keypoints: Keypoints, n: int) -> NDArray[np.int64]:
    """The numbers of what :func:`spread_evenly` keeps, in its order."""
    check_max_keypoints(n)
    order = keypoints.strongest_first()
    if len(order) <= n:
        return order
    extent = float(np.ptp(keypoints.points[:, :2], axis=0).max())
    # Squares of half such a side around as many points fill twice the area they are in.
    radius = highest = max(4 * extent / np.sqrt(n), 1e-3)
    lowest = 0.0
    chosen = np.arange(n)
    while highest > EXACTLY * lowest and highest > 1e-3:
        kept = _choose(keypoints, order, np.asarray(radius), n)
        if len(kept) == n:
            lowest, chosen = radius, kept
        else:
            highest = radius
        radius = (lowest + highest) / 2
    return order[chosen]


def _choose(
    keypoints: Keypoints, order: NDArray[np.int64], radii: NDArray[np.float64], n: int | None
) -> NDArray[np.int64]:
    """Which of the keypoints, in this order, are kept: indices into the order, rising."""
    if len(order) == 0:
        return order
    x, y = np.ascontiguousarray(keypoints.points[order, :2].T)
    own = np.ascontiguousarray(np.broadcast_to(radii, order.shape)[order])
    kept = np.empty(len(order) if n is None else min(n, len(order)), np.int64)
    return kept[: compile_places()(x, y, own, len(kept), kept)]

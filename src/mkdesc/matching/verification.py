"""Keeping the matches that agree on one geometry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.images.reading import opencv

__all__ = ["GEOMETRIES", "Verified", "verify_matches"]

#: What matches can agree on, and how many must do so to mean anything: between photographs that
#: have nothing in common 5 to 7 agree on a homography and 13 to 18 on a fundamental matrix.
GEOMETRIES = {"homography": 10, "fundamental": 24}


class Verified(NamedTuple):
    """What matches agree on.

    Attributes
    ----------
    matrix
        (3, 3): the homography from the first image to the second, or the fundamental matrix
        (x2' F x1 = 0); None if there is none.
    inliers
        (M,) bool: which matches agree with it.
    """

    matrix: NDArray[np.float64] | None
    inliers: NDArray[np.bool_]


def verify_matches(
    a: ArrayLike,
    b: ArrayLike,
    geometry: str = "fundamental",
    threshold: float = 2.0,
    confidence: float = 0.9999,
    max_iterations: int = 10_000,
) -> Verified:
    """Which matches agree on a homography or a fundamental matrix, by OpenCV's MAGSAC++.

    Parameters
    ----------
    a, b
        Positions (M, 2) in the first and the second image, matched row by row.
    geometry
        ``"homography"``: a flat scene, or a camera that only turns. ``"fundamental"``: any scene
        that does not move.
    threshold
        How far, in pixels, an inlier may be off.
    confidence, max_iterations
        When to stop trying.

    Returns
    -------
    Verified
        No matrix and no inlier if too few matches agree to mean anything (:data:`GEOMETRIES`).

    Examples
    --------
    >>> here = np.random.default_rng(0).uniform(0, 500, (50, 2))
    >>> there = here * 0.5 + 20
    >>> there[:10] = here[:10]
    >>> found = verify_matches(here, there, "homography")
    >>> found.inliers.sum(), found.matrix.round(3).diagonal().tolist()
    (np.int64(40), [0.5, 0.5, 1.0])
    """
    if not isinstance(geometry, str) or geometry not in GEOMETRIES:
        raise ValueError(f"geometry: expected one of {', '.join(GEOMETRIES)}, got {geometry!r}")
    if not 0 < threshold < np.inf:
        raise ValueError(f"threshold: expected a finite number > 0, got {threshold!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence: expected a number > 0 and < 1, got {confidence!r}")
    whole = isinstance(max_iterations, (int, np.integer)) and not isinstance(max_iterations, bool)
    if not whole or not 1 <= max_iterations <= np.iinfo(np.int32).max:
        raise ValueError(f"max_iterations: expected an integer >= 1, got {max_iterations!r}")
    here, there = (_as_positions(name, xy) for name, xy in (("a", a), ("b", b)))
    if len(here) != len(there):
        raise ValueError(f"a and b: expected as many rows, got {len(here)} and {len(there)}")
    nothing = Verified(None, np.zeros(len(here), np.bool_))
    if len(here) < GEOMETRIES[geometry]:
        return nothing
    cv2 = opencv()
    try:
        if geometry == "homography":
            found = cv2.findHomography(
                here, there, cv2.USAC_MAGSAC, threshold, None, max_iterations, confidence
            )
        else:
            found = cv2.findFundamentalMat(
                here, there, cv2.USAC_MAGSAC, threshold, confidence, max_iterations
            )
    except cv2.error:  # what it throws when all points are one, say
        return nothing
    matrix, inliers = found
    if matrix is None or matrix.shape != (3, 3) or not np.isfinite(matrix).all():
        return nothing
    agree = inliers.ravel().astype(np.bool_)
    return Verified(matrix, agree) if agree.sum() >= GEOMETRIES[geometry] else nothing


def _as_positions(name: str, xy: ArrayLike) -> NDArray[np.float64]:
    found = np.asarray(xy)
    if found.dtype.kind not in "iuf":
        raise ValueError(f"{name}: expected positions as real numbers, got {found.dtype}")
    array = np.ascontiguousarray(found, np.float64)
    if array.shape == (0,):
        array = array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name}: expected positions (M, 2), got {array.shape}")
    good = np.isfinite(array).all(axis=1)
    if not good.all():
        raise ValueError(f"{name}[{int(good.argmin())}] has NaN or infinity")
    return array

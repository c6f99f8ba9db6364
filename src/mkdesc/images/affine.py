"""Keypoints with a shape: blobs made round by second moments, regions that stand out (MSER)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.cutting import cut_patches
from mkdesc.images.frames import frames_from_points
from mkdesc.images.reading import opencv

#: Turns of the iteration that makes blobs round, how far from round they may end (ratio of the
#: eigenvalues of second moments), and how slanted they may get on the way.
ROUNDS, ROUND, SLANTED = 6, 1.8, 6.0

#: Half the side of the square whose gradients say how slanted a blob is, in units of its sigma.
WINDOW = 3.0

#: What OpenCV's MSER is asked for; its own limits leave few regions.
_REGIONS = {"min_area": 30, "max_variation": 0.5}

#: Half the side of a region's square, in standard deviations of its pixels along either axis.
REACH = 8.0

#: Pixels of a patch whose gradients say how it lies; bins of a turn; how high, relative to the
#: highest, another peak must be to count too, and how many count.
SIZE, BINS, SECOND, MOST = 20, 36, 0.8, 2

Floats = NDArray[np.float64]


def region_frames(gray: NDArray[np.uint8], most: int | None = None) -> Floats:
    """Maximally stable extremal regions, as affine frames (N, 2, 3): ellipses made squares.

    A region's square covers :data:`REACH` standard deviations of its pixels' positions to either
    side, along both axes of its ellipse; its x axis lies along the prevailing gradient, as seen
    with the ellipse made round. A region with two such directions gives two frames.

    Parameters
    ----------
    gray
        (H, W) uint8.
    most
        How many regions at most: the largest; None: all.

    Examples
    --------
    >>> away = np.hypot(np.arange(160) - 80, 2 * (np.arange(120)[:, None] - 60))
    >>> disc = np.clip(300 - 5 * away, 20, 220).astype(np.uint8)  # twice as wide as high
    >>> region_frames(disc)[0, :, 2].round().tolist()
    [80.0, 60.0]
    """
    cv2 = opencv()
    if min(gray.shape) < 3:  # OpenCV takes no smaller ones
        return np.empty((0, 2, 3))
    regions, _ = cv2.MSER_create(**_REGIONS).detectRegions(gray)
    regions = sorted(regions, key=len, reverse=True)[:most]
    frames = np.array([_ellipse(region) for region in regions]).reshape(-1, 2, 3)
    # Regions nested in each other are often one and the same: the same frame once.
    frames = np.unique(frames.round(2), axis=0)
    spread = np.linalg.svd(frames[:, :, :2], compute_uv=False)
    flat = spread[:, 1] < REACH * 0.5  # thinner than a pixel
    return _directed(gray, frames[~flat])


def adapted_frames(gray: NDArray[Any], points: Floats, side: float) -> Floats:
    """Blobs with the affine shape that makes their surroundings look the same in all directions.

    Parameters
    ----------
    gray
        (H, W).
    points
        (N, 4): x, y, sigma, angle; the angle is found anew.
    side
        Side of the squares in units of sigma.

    Returns
    -------
    ndarray of shape (M, 2, 3)
        Affine frames; blobs that do not become round are left out, those with two prevailing
        directions are there twice.

    Notes
    -----
    A frame is stretched by the inverse root of the second moments of the gradients in it until
    these are those of something round (Lindeberg and Garding, 1997; Baumberg, 2000).
    """
    frames = frames_from_points(points * [1, 1, 1, 0], 2 * WINDOW)
    at = (2 * np.arange(1, SIZE - 1) + 1) / SIZE - 1
    weight = np.exp(-(at[:, None] ** 2 + at**2) / (2 * 0.5**2)).astype(np.float32)
    ratio = np.full(len(frames), np.inf)
    for step in range(ROUNDS + 1):
        patches = cut_patches(gray, frames, SIZE, interpolation="linear", n_threads=1)
        dx, dy = _slopes(patches)
        xx, xy, yy = (
            np.einsum("nij,nij,ij->n", g, h, weight) for g, h in ((dx, dx), (dx, dy), (dy, dy))
        )
        moments = np.stack([np.stack([xx, xy], -1), np.stack([xy, yy], -1)], 1).astype(np.float64)
        values, vectors = np.linalg.eigh(moments + 1e-9 * np.eye(2))
        ratio = values[:, 1] / values[:, 0]
        if step == ROUNDS:
            break
        # Its area stays; half of what is missing at a time, so that nothing overshoots.
        stretch = (values / np.sqrt(values.prod(axis=1, keepdims=True))) ** -0.25
        frames[:, :, :2] = frames[:, :, :2] @ (
            (vectors * stretch[:, None]) @ vectors.swapaxes(1, 2)
        )
    spread = np.linalg.svd(frames[:, :, :2], compute_uv=False)
    good = (ratio < ROUND) & (spread[:, 0] < SLANTED * spread[:, 1])
    found = frames[good]
    # Not turned: what the iteration has turned on its way is undone.
    left, values, _ = np.linalg.svd(found[:, :, :2])
    found[:, :, :2] = (left * values[:, None]) @ left.swapaxes(1, 2) * (side / (2 * WINDOW))
    return _directed(gray, found)


def _ellipse(region: NDArray[np.int32]) -> Floats:
    """The frame of a region that is symmetric (not turned): the root of its covariance."""
    centre = region.mean(axis=0)
    away = region - centre
    covariance = away.T @ away / len(region)
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return np.column_stack([REACH * root, centre])


def _directed(gray: NDArray[Any], frames: Floats) -> Floats:
    """Frames turned to their dominant directions; several directions: several frames."""
    if not len(frames):
        return frames
    near = frames.copy()
    near[:, :, :2] *= 0.6  # what is close to the region says how it lies
    patches = cut_patches(gray, near, SIZE, interpolation="linear", n_threads=1)
    which, angles = dominant_directions(patches)
    c, s = np.cos(angles), np.sin(angles)
    turned = frames[which]
    turned[:, :, :2] = turned[:, :, :2] @ np.stack([[c, -s], [s, c]]).transpose(2, 0, 1)
    return turned


def _slopes(patches: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Derivatives (N, W - 2, W - 2) along x and y, up to a factor."""
    values = np.asarray(patches, np.float32)
    dx = values[:, 1:-1, 2:] - values[:, 1:-1, :-2]
    return dx, values[:, 2:, 1:-1] - values[:, :-2, 1:-1]


def dominant_directions(patches: NDArray[Any]) -> tuple[NDArray[np.int64], Floats]:
    """Prevailing directions of the gradient in patches.

    Parameters
    ----------
    patches
        (N, W, W).

    Returns
    -------
    which, angles
        (M,): the patch, and the angle in radians, clockwise as seen; up to :data:`MOST` per
        patch, as SIFT does it: peaks of a smoothed histogram, refined by parabolas.

    Examples
    --------
    >>> ramp = np.tile(np.arange(16.0), (16, 1))
    >>> which, angles = dominant_directions(np.stack([ramp, ramp.T]))
    >>> which.tolist(), np.rad2deg(angles).round().tolist()
    ([0, 1], [0.0, 90.0])
    """
    values = np.asarray(patches, np.float32)
    count, size = values.shape[:2]
    dx, dy = _slopes(values)
    at = np.arange(1, size - 1) - (size - 1) / 2
    weight = np.exp(-(at[:, None] ** 2 + at**2) / (2 * (size / 4) ** 2)).astype(np.float32)
    strength = np.hypot(dx, dy) * weight
    angle = np.arctan2(dy, dx) * (BINS / (2 * np.pi))
    bins = np.rint(angle).astype(np.int64) % BINS + BINS * np.arange(count)[:, None, None]
    histogram = np.bincount(bins.ravel(), strength.ravel(), count * BINS).reshape(count, BINS)
    for _ in range(3):
        histogram = (
            0.25 * np.roll(histogram, 1, 1) + 0.5 * histogram + 0.25 * np.roll(histogram, -1, 1)
        )
    before, after = np.roll(histogram, 1, axis=1), np.roll(histogram, -1, axis=1)
    peak = (histogram > before) & (histogram >= after)
    peak &= histogram >= SECOND * histogram.max(axis=1, keepdims=True)
    # The highest first, and no more than MOST of them.
    order = np.argsort(-np.where(peak, histogram, -1), axis=1, kind="stable")[:, :MOST]
    which, rank = np.nonzero(np.take_along_axis(peak, order, axis=1))
    at_bin = order[which, rank]
    left, here, right = (x[which, at_bin] for x in (before, histogram, after))
    offset = 0.5 * (left - right) / np.minimum(left - 2 * here + right, -1e-12)
    angles = (at_bin + offset) * (2 * np.pi / BINS)
    return which, angles

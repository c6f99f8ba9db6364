"""Keeping the matches that agree on one geometry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_choice, check_number
from mkdesc.geometry.cameras import Camera
from mkdesc.geometry.estimate import DEFAULT_OPTIONS, Size, estimate_geometry
from mkdesc.geometry.estimators.base import Estimate
from mkdesc.geometry.options import EstimatorOptions
from mkdesc.geometry.positions import as_positions
from mkdesc.geometry.residuals import transfer_errors
from mkdesc.matching.chance import false_alarms, strip_share
from mkdesc.matching.mirrored import mirrored_homography
from mkdesc.matching.order import share_reversed
from mkdesc.matching.parallax import correlation_beside

#: What matches can agree on, and how many must do so to mean anything: between photographs that
#: have nothing in common 5 to 7 agree on a homography and 13 to 18 on a fundamental matrix. That
#: of essential matrices, which are fewer, is a guess in between.
GEOMETRIES = {"homography": 10, "fundamental": 24, "essential": 20, "shared-focal": 20}

#: What can be asked for: one of them, or whichever the matches speak for.
CHOICES = ("auto", *GEOMETRIES)

#: Matches that a homography leaves out by more than so many thresholds speak for depth.
OFF_PLANE = 5.0

#: log10 of how often chance may be taken for depth, and how many matches off the plane there
#: must be for each one on it: wrong matches are not as random as chance is. Of 20 pairs of flat
#: scenes 4 pass the first, with at most 0.06 for one; 14 of 15 of deep ones have 0.5 and more.
DEPTH_BY_CHANCE, DEPTH_SHARE = -6.0, 0.1

#: Share of the places off the plane that may change order with others on their epipolar lines;
#: and of the matches that agree on those lines, the share that the plane must have to be taken
#: instead: where it has less, order or not, nothing is flat.
DEPTH_REVERSED, PLANE_SHARE = 0.08, 0.45

#: Neighbours that are asked, and how much as they are a match must be off the plane (1: as they
#: are, 0: at random): 0.24 to 1 in 192 pairs of deep scenes; 0.08 and less where noise, blur or
#: compression lets matches slide along edges, as a rule, up to 0.56 where a motion blurs.
BESIDE, TOGETHER = 6, 0.2

#: Share of the matches of a fundamental matrix that an essential one must keep to be preferred.
POSED = 0.8

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def verify_matches(
    a: ArrayLike,
    b: ArrayLike,
    geometry: str = "fundamental",
    threshold: float = 2.0,
    *,
    cameras: Sequence[Camera | ArrayLike] | None = None,
    sizes: tuple[Size, Size] | None = None,
    options: EstimatorOptions = DEFAULT_OPTIONS,
) -> Estimate:
    """Which matches agree on one geometry.

    Parameters
    ----------
    a, b
        Positions (M, 2) in the first and the second image, matched row by row.
    geometry
        ``"homography"``: a flat scene, or a camera that only turns. ``"fundamental"``: any scene
        that does not move. ``"essential"``: the same, with cameras that are known; gives the
        pose of the second relative to the first. ``"shared-focal"``: the same with one focal
        length of both cameras that is not known. ``"auto"``: a homography, unless more matches
        than chance explains are off it and agree on an epipolar geometry: then an essential
        matrix if there are cameras, otherwise a fundamental one. Of a mirrored photograph it is
        the homography that mirrors.
    threshold
        Largest error of an inlier, in pixels.
    cameras
        Two cameras, or calibration matrices (3, 3). Lens distortion is undone first.
    sizes
        Height and width of both images; ``"shared-focal"`` needs them.
    options
        How to search, and with which library.

    Returns
    -------
    Estimate
        No matrix and no inlier if too few matches agree to mean anything (:data:`GEOMETRIES`).

    Examples
    --------
    >>> here = np.random.default_rng(0).uniform(0, 500, (50, 2))
    >>> there = here * 0.5 + 20
    >>> there[:10] = here[:10]
    >>> found = verify_matches(here, there, "homography")
    >>> found.inliers.sum(), (found.matrix / found.matrix[2, 2]).round(3).diagonal().tolist()
    (np.int64(40), [0.5, 0.5, 1.0])
    """
    check_geometry(geometry)
    check_number("threshold", threshold, above=0)
    here, there = as_positions("a", a), as_positions("b", b)

    def found(kind: str) -> Estimate:
        one = estimate_geometry(
            here, there, kind, threshold, cameras=cameras, sizes=sizes, options=options
        )
        enough = one.inliers.sum() >= GEOMETRIES[kind]
        return one if enough else Estimate(None, np.zeros(len(here), np.bool_))

    if geometry != "auto":
        return found(geometry)
    return choose_geometry(found("homography"), found, here, there, threshold, cameras is not None)


def choose_geometry(
    flat: Estimate,
    find: Callable[[str], Estimate],
    here: Floats,
    there: Floats,
    threshold: float,
    posed: bool,
) -> Estimate:
    """What ``geometry="auto"`` takes: the plane, unless matches off it agree on depth, in order.

    Where one photograph is mirrored, that is the plane of :mod:`mkdesc.matching.mirrored`.

    Parameters
    ----------
    flat
        The homography.
    find
        Gives the geometry of a kind.
    here, there
        Positions (M, 2) of all matches.
    threshold
        Largest error of an inlier, in pixels.
    posed
        Whether the cameras are known: an essential matrix that keeps most matches of the
        fundamental one is preferred to it.
    """
    deep = find("fundamental")
    if deep.matrix is None or not _has_depth(flat, deep, here, there, threshold):
        return flat
    mirror = mirrored_homography(here[deep.inliers], there[deep.inliers], threshold)
    if mirror is not None:
        return Estimate(mirror, transfer_errors(mirror, here, there) < threshold, "homography")
    if posed:
        pose = find("essential")
        if pose.inliers.sum() >= POSED * deep.inliers.sum():
            return pose
    return deep


def check_geometry(geometry: object) -> None:
    """Refuse what is no geometry that can be asked for."""
    check_choice("geometry", geometry, CHOICES)


def _has_depth(
    flat: Estimate, deep: Estimate, here: Floats, there: Floats, threshold: float
) -> bool:
    """Whether matches off the plane agree on depth: beyond chance, together, and in order."""
    if flat.matrix is None:
        return True
    off = transfer_errors(flat.matrix, here, there) > OFF_PLANE * threshold
    agree = int((off & deep.inliers).sum())
    if agree < DEPTH_SHARE * flat.inliers.sum():
        return False
    # Two matches off the plane make an epipolar geometry of a homography.
    width, height = np.ptp(there, axis=0) + 1
    strip = strip_share(threshold, (height, width))
    if false_alarms(agree, int(off.sum()), strip, 2) >= DEPTH_BY_CHANCE:
        return False
    a, b, apart = here[deep.inliers], there[deep.inliers], off[deep.inliers]
    if correlation_beside(flat.matrix, a, b, BESIDE, OFF_PLANE * threshold) < TOGETHER:
        return False
    if flat.inliers.sum() < PLANE_SHARE * deep.inliers.sum():
        return True
    assert deep.matrix is not None
    return share_reversed(deep.matrix, a, b, apart) < DEPTH_REVERSED

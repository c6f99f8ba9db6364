"""What matches between two photographs of a plane are worth, given the true homography."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.geometry.estimate import estimate_geometry

#: Pixels: a right match is at most so far off, an exact one less; right matches nearer to each
#: other in the first image are one; the side of the cells that coverage is counted in.
RIGHT, EXACT, DISTINCT, CELL = 3.0, 1.0, 2.0, 40.0

#: Pixels at which the accuracy of matches is told: the curve of D2-Net.
CURVE = tuple(range(1, 11))

#: A pair is solved if the corners are at most so many pixels off, on average.
SOLVED = 4.0

Floats = NDArray[np.float64]


class HomographyScores(NamedTuple):
    """How one method did on one pair.

    Attributes
    ----------
    matches, right, exact
        How many matches there are, and those within 3 and within 1 px of the truth.
    distinct, cells
        Right ones that are at least 2 px apart in the first image, and cells of 40 px of that
        image that hold one.
    accuracy
        Share of the matches within 1, 2, ... 10 px.
    repeatability
        Share of the keypoints that both images show which have a partner within 3 px.
    corner_error
        Mean distance, in pixels of the second image, between the corners of the first as the
        estimated and the true homography map them; infinite if there is no estimate.
    """

    matches: int
    right: int
    exact: int
    distinct: int
    cells: int
    accuracy: list[float]
    repeatability: float
    corner_error: float

    @property
    def solved(self) -> bool:
        """Whether the estimated homography is as good as the truth."""
        return self.corner_error <= SOLVED


def score_homography(
    points: tuple[Floats, Floats],
    keypoints: tuple[Floats, Floats],
    homography: Floats,
    shapes: tuple[tuple[int, int], tuple[int, int]],
    threshold: float = 3.0,
) -> HomographyScores:
    """Score the matches of a pair.

    Parameters
    ----------
    points
        (K, 2) and (K, 2): positions of the matches in either image.
    keypoints
        (N, 2) and (M, 2): positions of all keypoints, for their repeatability.
    homography
        (3, 3): the truth, from the first image to the second.
    shapes
        Height and width of either image.
    threshold
        Largest error of an inlier of the estimate, in pixels.

    Examples
    --------
    >>> x, y = np.meshgrid([10.0, 50, 90], [10.0, 50, 90])
    >>> xy = np.column_stack([x.ravel(), y.ravel()])
    >>> found = score_homography((xy, xy), (xy, xy), np.eye(3), ((100, 100), (100, 100)))
    >>> found.right, found.distinct, found.cells, found.repeatability, found.solved
    (9, 9, 9, 1.0, True)
    """
    here, there = points
    errors = np.linalg.norm(moved(here, homography) - there, axis=1)
    right = here[errors <= RIGHT]
    return HomographyScores(
        len(errors),
        len(right),
        int(np.count_nonzero(errors <= EXACT)),
        len(distinct_positions(right, DISTINCT)),
        len(np.unique(right // CELL, axis=0)),
        [float((errors <= limit).mean()) if len(errors) else 0.0 for limit in CURVE],
        repeatability(keypoints, homography, shapes),
        _corner_error(here, there, homography, shapes[0], threshold),
    )


def moved(xy: Floats, homography: Floats) -> Floats:
    """Positions (N, 2) as a homography maps them; NaN for what is at or beyond the horizon."""
    mapped = xy @ homography[:, :2].T + homography[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mapped[:, 2:] > 0, mapped[:, :2] / mapped[:, 2:], np.nan)


def distinct_positions(xy: Floats, radius: float) -> NDArray[np.int64]:
    """Rows (K,) of positions of which no two are nearer than the radius: the first of each place.

    Examples
    --------
    >>> distinct_positions(np.array([[0.0, 0], [1, 0], [2.5, 0]]), 2.0).tolist()
    [0, 2]
    """
    from scipy.spatial import cKDTree

    gone = np.zeros(len(xy), np.bool_)
    kept = []
    near = cKDTree(xy).query_ball_point(xy, np.nextafter(radius, 0)) if len(xy) else ()
    for row, others in enumerate(near):
        if not gone[row]:
            kept.append(row)
            gone[others] = True
    return np.array(kept, np.int64)


def repeatability(
    positions: tuple[Floats, Floats],
    homography: Floats,
    shapes: tuple[tuple[int, int], tuple[int, int]],
) -> float:
    """Share of the keypoints seen by both images that have a partner within 3 px, both ways."""
    from scipy.spatial import cKDTree

    shown, found = 0, 0
    ways = ((0, 1, homography), (1, 0, np.linalg.inv(homography)))
    for one, other, matrix in ways:
        mapped = moved(positions[one], np.asarray(matrix / matrix[2, 2], np.float64))
        height, width = shapes[other]
        with np.errstate(invalid="ignore"):
            within = (mapped >= 0) & (mapped <= np.array([width - 1, height - 1]))
        inside = np.flatnonzero(np.all(within, axis=1))
        shown += len(inside)
        if len(inside) and len(positions[other]):
            distances, _ = cKDTree(positions[other]).query(mapped[inside])
            found += int(np.count_nonzero(distances <= RIGHT))
    return found / shown if shown else 0.0


def _corner_error(
    here: Floats, there: Floats, homography: Floats, shape: tuple[int, int], threshold: float
) -> float:
    found = estimate_geometry(here, there, "homography", threshold).matrix
    if found is None:
        return float("inf")
    height, width = shape
    corners = np.array([[0.0, 0], [width - 1, 0], [0, height - 1], [width - 1, height - 1]])
    errors = np.linalg.norm(moved(corners, found) - moved(corners, homography), axis=1)
    return float(errors.mean()) if np.isfinite(errors).all() else float("inf")


def area_under_errors(errors: list[float], limits: tuple[float, ...]) -> list[float]:
    """Area under the curve of solved pairs over the error allowed, up to each limit, 0 to 1.

    As SuperGlue and those after it have it.

    Parameters
    ----------
    errors
        One for each pair; infinite where there is no estimate.
    limits
        Where the curve ends.

    Examples
    --------
    >>> area_under_errors([0.0, 0.0, np.inf, np.inf], (5.0,))
    [0.5]
    >>> area_under_errors([2.5], (5.0,))
    [0.75]
    """
    ordered = np.sort(np.asarray(errors, np.float64))
    share = np.arange(1, len(ordered) + 1) / max(len(ordered), 1)
    x, y = np.concatenate([[0.0], ordered]), np.concatenate([[0.0], share])
    areas = []
    for limit in limits:
        last = int(np.searchsorted(x, limit))
        within = np.append(x[:last], limit)
        height = np.append(y[:last], y[last - 1] if last else 0.0)
        areas.append(float(np.trapezoid(height, within) / limit))
    return areas

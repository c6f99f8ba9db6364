"""A field of displacements made of matches and their local maps, with holes between them.

Matches are the corners of triangles (Delaunay's). In a triangle whose corners predict each other,
a pixel has the mean of what the three local maps predict, weighted by its barycentric coordinates.
In others, where depth jumps, and outside of all, a pixel has what the nearest match predicts, if
it is in that match's window, or little beyond; there is no other extrapolation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_integer
from mkdesc.matching.growing.window import RADIUS

if TYPE_CHECKING:
    from scipy.spatial import Delaunay

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: What the prediction of a corner of a triangle may be off: pixels, and share of the distance.
TOLERANCE, TOLERANCE_SHARE = 2.0, 0.15
#: In a triangle, it is at most this, in pixels.
MAX_TOLERANCE = 4.0
#: The longest side of a triangle, as a share of the longer side of the photograph; or pixels.
REACH, MIN_REACH = 0.1, 32.0
#: Pixels from a match up to which its map is believed: its window, and some more.
SHOWN = RADIUS + 5.0
#: Matches that hang together count if there are so many, and this share of them are inliers.
MIN_TOGETHER, MIN_INLIERS = 6, 0.25
#: Pixels that are computed at a time: bounds the memory.
BLOCK = 1 << 18

#: The sides of a triangle, both ways.
_SIDES = ((0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2))


class Flow(NamedTuple):
    """Where the pixels of a photograph are in another.

    Attributes
    ----------
    field
        (H, W, 2) float32: pixel (x, y) is at ``(x, y) + field[y, x]`` in the other photograph; NaN
        where that is not known.
    confidence
        (H, W) float32, from 0 to 1: how well the gray values around correlate, and how well the
        matches around agree; 0 where nothing is known.
    """

    field: NDArray[np.float32]
    confidence: NDArray[np.float32]


class LocalMaps(NamedTuple):
    """Matches (M, 2) of two photographs, their maps (M, 2, 2) and correlations (M,)."""

    here: Floats
    there: Floats
    maps: Floats
    correlation: Floats

    def take(self, rows: Flags) -> LocalMaps:
        """Some of them, by a mask."""
        return LocalMaps(*(values[rows] for values in self))

    def predict(self, rows: NDArray[Any], at: Floats) -> Floats:
        """Where each of some matches expects a place (N, 2) of the first photograph."""
        off = at - self.here[rows]
        found: Floats = self.there[rows] + (self.maps[rows] @ off[:, :, None])[:, :, 0]
        return found


def hanging_together(matches: LocalMaps, inliers: Flags) -> Flags:
    """Which matches (M,) hang together with inliers: each with neighbours that it agrees with.

    Those of matches that were not grown are the inliers. What moves, or bends, with its
    surroundings counts, though it is no inlier of a geometry; what agrees with nothing around
    it does not.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    mesh = None if np.isnan(matches.correlation).any() else _mesh(matches.here)
    if mesh is None:
        return inliers
    ends = mesh.simplices[:, _SIDES[:3]].reshape(-1, 2)
    agree = (_off(matches, ends) < 1) & (_off(matches, ends[:, ::-1]) < 1)
    count = len(matches.here)
    graph = coo_array((np.ones(agree.sum()), ends[agree].T), (count, count))
    _, part = connected_components(graph, directed=False)
    size, good = np.bincount(part), np.bincount(part, inliers)
    kept = ((size >= MIN_TOGETHER) & (good >= MIN_INLIERS * size))[part]
    return np.asarray(kept) if kept.any() else inliers


def interpolate(
    matches: LocalMaps,
    shape: tuple[int, int],
    other: tuple[int, int],
    size: tuple[int, int] | None = None,
) -> Flow:
    """The field of matches that are all believed.

    Parameters
    ----------
    matches
        Of two photographs.
    shape, other
        Height and width of both.
    size
        Rows and columns of the field, which covers the first photograph; None: one for a pixel.

    Examples
    --------
    >>> here = np.array([[2.0, 2], [12, 2], [2, 12]])
    >>> still = np.repeat(np.eye(2)[None], 3, axis=0)
    >>> flow = interpolate(LocalMaps(here, here + 1, still, np.ones(3)), (90, 90), (90, 90))
    >>> flow.field[4, 4], flow.field[60, 4]
    (array([1., 1.], dtype=float32), array([nan, nan], dtype=float32))
    """
    from scipy.spatial import cKDTree

    if np.isnan(matches.correlation).any():
        raise ValueError("flow: needs local maps; expected matches that were grown (grow=True)")
    if size is not None and np.shape(size) != (2,):
        raise ValueError(f"shape: expected rows and columns, got {size!r}")
    rows, columns = shape if size is None else size
    for value in (rows, columns):
        check_integer("shape", value)
    field = np.full((rows * columns, 2), np.nan, np.float32)
    confidence = np.zeros(rows * columns, np.float32)
    tree = cKDTree(matches.here)
    mesh = _mesh(matches.here)
    reach = max(REACH * max(shape), MIN_REACH)
    trust = np.empty(0) if mesh is None else _trust(matches, mesh, reach)
    step = max(1, BLOCK // columns) * columns
    for first in range(0, rows * columns, step):
        block = slice(first, min(first + step, rows * columns))
        y, x = np.divmod(np.arange(block.start, block.stop), columns)
        at = np.column_stack(
            [(x + 0.5) * (shape[1] / columns) - 0.5, (y + 0.5) * (shape[0] / rows) - 0.5]
        )
        there, sure = np.full(at.shape, np.nan), np.zeros(len(at))
        if mesh is not None:
            _inside(matches, mesh, trust, at, there, sure)
        _around(matches, tree, at, there, sure)
        shown = ((there >= -0.5) & (there <= np.array(other[::-1]) - 0.5)).all(axis=1)
        there[~shown], sure[~shown] = np.nan, 0
        field[block], confidence[block] = there - at, sure
    return Flow(field.reshape(rows, columns, 2), confidence.reshape(rows, columns))


def _inside(
    matches: LocalMaps, mesh: Delaunay, trust: Floats, at: Floats, there: Floats, sure: Floats
) -> None:
    """Fill in what lies in triangles that are trusted."""
    triangle = mesh.find_simplex(at)
    inner = np.flatnonzero(triangle >= 0)
    inner = inner[trust[triangle[inner]] > 0]
    own, places = triangle[inner], at[inner]
    transform = mesh.transform[own]
    two = (transform[:, :2] @ (places - transform[:, 2])[:, :, None])[:, :, 0]
    weights = np.column_stack([two, 1 - two.sum(axis=1)])
    total, correlation = np.zeros(places.shape), np.zeros(len(places))
    for corner, weight in zip(mesh.simplices[own].T, weights.T, strict=True):
        total += weight[:, None] * matches.predict(corner, places)
        correlation += weight * matches.correlation[corner]
    there[inner], sure[inner] = total, correlation * trust[own]


def _around(matches: LocalMaps, tree: object, at: Floats, there: Floats, sure: Floats) -> None:
    """Fill in what is left and was shown by the window of a match: the nearest one's."""
    left = np.flatnonzero(np.isnan(there[:, 0]))
    far, nearest = tree.query(at[left], distance_upper_bound=SHOWN)  # type: ignore[attr-defined]
    shown = np.isfinite(far)
    left, nearest, far = left[shown], nearest[shown], far[shown]
    there[left] = matches.predict(nearest, at[left])
    sure[left] = matches.correlation[nearest] * (1 - far / (2 * SHOWN)) / 2


def _trust(matches: LocalMaps, mesh: Delaunay, reach: float) -> Floats:
    """How well the corners of triangles (T,) agree, from 0 to 1; 0 if one is too large."""
    trust = np.ones(len(mesh.simplices))
    for side in _SIDES:
        ends = mesh.simplices[:, side]
        off = _off(matches, ends, MAX_TOLERANCE)
        long = np.hypot(*(matches.here[ends[:, 0]] - matches.here[ends[:, 1]]).T) > reach
        trust = np.minimum(trust, np.where(long, 0, 1 - off))
    return trust.clip(0)


def _off(matches: LocalMaps, ends: NDArray[Any], most: float = np.inf) -> Floats:
    """How far the first of each pair (E, 2) expects the second from its place, in tolerances."""
    one, two = ends.T
    expected = matches.predict(one, matches.here[two])
    far = np.hypot(*(expected - matches.there[one]).T)
    within = np.minimum(TOLERANCE + TOLERANCE_SHARE * far, most)
    return np.asarray(np.hypot(*(expected - matches.there[two]).T) / within)


def _mesh(places: Floats) -> Delaunay | None:
    """The triangles of places (M, 2); None: there are none."""
    from scipy.spatial import Delaunay, QhullError

    try:
        return Delaunay(places) if len(places) >= 3 else None
    except QhullError:  # all on a line
        return None

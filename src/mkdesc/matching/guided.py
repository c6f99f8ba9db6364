"""Matching once more, where a geometry that is known says where to look.

A descriptor need not be the nearest of all: only of those that lie where the geometry allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_choice, check_number
from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import array_type
from mkdesc.geometry.positions import as_positions
from mkdesc.matching.distinct import APART
from mkdesc.matching.nearest import Matches, check_limits, check_pair, of_unit_size

Floats = NDArray[np.float64]


def match_guided(
    a: ArrayLike,
    b: ArrayLike,
    places_a: ArrayLike,
    places_b: ArrayLike,
    matrix: ArrayLike,
    geometry: str = "fundamental",
    *,
    within: float = 4.0,
    ratio: float | None = None,
    max_distance: float | None = None,
    apart: float = APART,
) -> Matches:
    """Mutual nearest neighbours among those that a geometry allows; exact.

    Parameters
    ----------
    a, b
        Descriptors (N, D) and (M, D), as for :func:`~mkdesc.match_descriptors`.
    places_a, places_b
        Where they are: (N, 2) and (M, 2), pixels.
    matrix
        (3, 3), of pixels, as :func:`~mkdesc.verify_matches` finds it.
    geometry
        ``"homography"`` or ``"fundamental"``.
    within
        Pixels that a match may be off: from where it should be, or from its line, in the image
        in which it is less.
    ratio
        Keep a pair only if its distance is less than this times that to the nearest of the
        allowed ones that lies more than ``apart`` pixels away from the nearest; None: no test.
    max_distance
        Keep a pair only if its distance is at most this; None: no limit.
    apart
        Pixels within which two are of one place.

    Returns
    -------
    Matches
        In the order of ``a``.

    Examples
    --------
    >>> a = np.eye(3, dtype=np.float32)
    >>> here = [[0, 0], [50, 50], [90, 90]]
    >>> match_guided(a, a[::-1], here, here, np.eye(3), "homography").pairs.tolist()
    [[0, 0], [1, 1], [2, 2]]
    """
    first, second = check_pair(a, b)
    check_limits(ratio, max_distance)
    check_choice("geometry", geometry, ("homography", "fundamental"))
    known = np.asarray(matrix, np.float64)
    if known.shape != (3, 3) or not np.isfinite(known).all():
        raise ValueError(f"matrix: expected finite numbers (3, 3), got {matrix!r}")
    check_number("within", within, least=0)
    check_number("apart", apart, least=0)
    at_a = as_positions("places_a", places_a, len(first))
    at_b = as_positions("places_b", places_b, len(second))
    if not len(first) or not len(second):
        return Matches(np.empty((0, 2), np.int64), np.empty(0, np.float32))
    flat = geometry == "homography"
    here = np.column_stack([at_a, _mapped(known, at_a, flat)])
    back: Floats = np.linalg.inv(known).astype(np.float64) if flat else known.T
    there = np.column_stack([at_b, _mapped(back, at_b, flat)])
    one, two, unit = of_unit_size(first, second)
    nearest, index_c = np.empty(len(one), np.int64), np.full(len(two), -1, np.int64)
    best, runner_up = np.empty((2, len(one)), np.float32)
    best_c = np.full(len(two), np.inf, np.float32)
    _compiled()(
        *(one, two, here, there, flat, float(within), float(apart)),
        *(nearest, best, runner_up, best_c, index_c),
    )
    keep = (nearest >= 0) & (index_c[nearest] == np.arange(len(one)))
    if ratio is not None:
        keep &= best < ratio**2 * runner_up
    distances = (unit * np.sqrt(best.astype(np.float64))).astype(np.float32)
    if max_distance is not None:
        keep &= distances <= max_distance
    rows = np.flatnonzero(keep)
    return Matches(np.column_stack([rows, nearest[rows]]), distances[rows])


def _mapped(matrix: Floats, xy: Floats, flat: bool) -> Floats:
    """Places (N, 3) as x, y and whether they are there; or lines (N, 3)."""
    mapped = xy @ matrix[:, :2].T + matrix[:, 2]
    if not flat:
        return np.asarray(mapped)
    # Most of what is matched is on the right side of the horizon.
    visible = mapped[:, 2] * np.sign(np.median(mapped[:, 2])) > 0
    depth = np.where(visible, mapped[:, 2], 1)
    return np.column_stack([mapped[:, :2] / depth[:, None], visible])


@locked_cache
def _compiled() -> Callable[..., None]:
    def written(dtype: str) -> Any:
        return array_type(dtype, 1, written=True)

    arguments = (
        array_type("float32", 2),
        array_type("float32", 2),
        array_type("float64", 2),
        array_type("float64", 2),
        "bool",
        "float64",
        "float64",
        written("int64"),
        written("float32"),
        written("float32"),
        written("float32"),
        written("int64"),
    )
    return compile_loop(
        "mkdesc.matching.guided_numba:best_allowed",
        arguments,
        fastmath={"nsz", "reassoc", "contract"},
    )

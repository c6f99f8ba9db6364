"""Whether what was matched occurs elsewhere in the same photograph, too: windows, bricks, tiles.

Identical things look alike up to noise, so the nearest descriptor says nothing about which of
them is the right one. They may still agree on one geometry: with the facade shifted by a window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.matching.coherence import PLACE, Size, distinct_places
from mkdesc.matching.frame_matches import FrameMatches, LocalFeatures

#: Descriptors are of identical things if they are nearer than this share of what two of them are
#: apart on average: 0 to 0.1 where things were drawn, up to 0.3 where that was seen from aside. At
#: most 0.15 of the places of photographs, windows of real facades included, have one so near.
ALIKE = 0.3

#: Elsewhere: further away than this share of half a frame's side, or of the diagonal.
ASIDE = 0.25

#: Places that are looked at, at most.
MOST = 100

Flags = NDArray[np.bool_]


def share_repeated(
    features: tuple[LocalFeatures, LocalFeatures],
    matches: FrameMatches,
    sizes: tuple[Size, Size],
    identical: float = ALIKE,
) -> float:
    """Of the places of matches, the share of those that occur elsewhere in either photograph.

    Parameters
    ----------
    features
        Of either photograph.
    matches
        Some of them, with rows of these.
    sizes
        Height and width of the photographs.
    identical
        How near, as a share of what two of them are apart on average, descriptors of identical
        things are.

    Examples
    --------
    >>> frames = np.zeros((8, 2, 3)) + np.eye(2, 3)
    >>> frames[:, 0, 2] = 20 * np.arange(8)
    >>> windows = LocalFeatures(frames, np.eye(8, 16)[[0, 1, 0, 1, 2, 3, 4, 5]], np.zeros(8))
    >>> rows = np.repeat(np.arange(8)[:, None], 2, axis=1)
    >>> matches = FrameMatches.of(windows, windows, rows, np.zeros(8, np.float32))
    >>> share_repeated((windows, windows), matches, ((100, 200), (100, 200)))
    0.5
    """
    places = distinct_places(*matches.positions, sizes)[:MOST]
    repeated = np.zeros(len(places), np.bool_)
    for one, column, frames, size in zip(
        features, (0, 1), (matches.a, matches.b), sizes, strict=True
    ):
        found = frames[places]
        half = np.sqrt(np.abs(np.linalg.det(found[:, :, :2])))
        near = np.maximum(ASIDE * half, PLACE * np.hypot(*size))
        away = np.linalg.norm(one.frames[None, :, :, 2] - found[:, None, :, 2], axis=2)
        alike = _identical(one.numbers(), matches.pairs[places, column], identical)
        repeated |= (alike & (away > near[:, None])).any(axis=1)
    return float(repeated.mean()) if len(places) else 0.0


def _identical(descriptors: NDArray[Any], rows: NDArray[np.int64], identical: float) -> Flags:
    """Which of all descriptors (N, D) are as those of some rows (K,): (K, N)."""
    every = descriptors.astype(np.float32)
    every -= every.mean(axis=0)
    squares = (every * every).sum(axis=1)
    apart = squares[rows, None] + squares - 2 * every[rows] @ every.T
    return np.asarray(apart <= identical**2 * 2 * squares.mean())

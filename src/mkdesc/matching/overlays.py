"""What lies over both photographs, at the same pixels: a logo, a date, a frame.

It is in both files, but no camera saw it: it says nothing about what they show. Its matches do not
move at all, while few others move by a pixel or two (what a camera sees moves by more and by
less), and they cover a small part of what there is to be matched. The photographs of a camera
that stands still do not move either, but all over. (COLMAP has such a test for watermarks, for
the borders of images alone.) What else is matched between places of such matches is of the same
thing: noise moves some of it, and it may look like itself elsewhere.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from mkdesc.matching.coherence import Size
from mkdesc.matching.frame_matches import FrameMatches, LocalFeatures
from mkdesc.matching.near import distance_to_nearest

#: Pixels by which what lies over photographs may move, and up to which others may not: there must
#: be so many times as many of the former. In photographs of one scene there are 0.3 to 0.8 times
#: as many, under a logo that one can see through 3 times and more.
STILL, MOVING, TIMES = 1.0, 3.0, 2.0

#: Matches that must stand still at least.
FEWEST = 10

#: Of the cells that have keypoints, the share that they cover at most: 0.34 in a frame, 0.57 in
#: photographs of a camera that stands still, the second one compressed until little is left
#: (ubc 1-6). A cell is as wide as this share of the diagonal.
COVERED, CELL = 0.4, 0.05

#: What else is of the same thing: what moves by so few pixels, and what lies as near to matches
#: that stand still, in both photographs, as this share of the diagonal.
SLIGHTLY, NEAR = 5.0, 0.02

Flags = NDArray[np.bool_]


def overlaid(
    features: tuple[LocalFeatures, LocalFeatures],
    matches: FrameMatches,
    sizes: tuple[Size, Size],
) -> Flags:
    """Which matches (M,) are of what lies over both photographs.

    Parameters
    ----------
    features
        All that was found in either photograph.
    matches
        Of these.
    sizes
        Height and width of the photographs. If they differ, what lies over both is at the same
        distance from the same corner.

    Examples
    --------
    >>> frames = np.zeros((40, 2, 3)) + np.eye(2, 3)
    >>> frames[:, :, 2] = np.random.default_rng(0).uniform(0, 100, (40, 2))
    >>> seen = LocalFeatures(frames, np.zeros((40, 8)), np.zeros(40, np.uint8))
    >>> rows = np.repeat(np.arange(12)[:, None], 2, axis=1)
    >>> matches = FrameMatches.of(seen, seen, rows, np.zeros(12, np.float32))
    >>> overlaid((seen, seen), matches, ((100, 100), (100, 100))).sum()
    np.int64(12)
    """
    here, there = matches.positions
    (height, width), (other_height, other_width) = sizes
    corners = list(itertools.product({0, other_width - width}, {0, other_height - height}))
    moved = [np.abs(there - here - corner).max(axis=1) for corner in corners]
    best = max(range(len(corners)), key=lambda k: int((moved[k] < STILL).sum()))
    least, corner = moved[best], np.array(corners[best])
    still = least < STILL
    few = still.sum() < FEWEST or still.sum() < TIMES * ((least < MOVING) & ~still).sum()
    both = np.minimum(sizes[0], sizes[1])  # what both photographs have of each other's pixels
    covered = (
        _share_covered(one.frames[:, :, 2] - start, xy[still] - start, both)
        for one, xy, start in zip(
            features,
            (here, there),
            (np.maximum(-corner, 0), np.maximum(corner, 0)),
            strict=True,
        )
    )
    if few or max(covered) >= COVERED:
        return np.zeros(len(here), np.bool_)
    near = [
        distance_to_nearest(xy[still], xy) < NEAR * np.hypot(*size)
        for xy, size in zip((here, there), sizes, strict=True)
    ]
    return (least < SLIGHTLY) | (near[0] & near[1])


def _share_covered(
    every: NDArray[np.float64], some: NDArray[np.float64], size: NDArray[np.int64]
) -> float:
    """Of the cells in which there are positions, the share of those with some of them."""
    inside = ((every >= 0) & (every < size[::-1])).all(axis=1)
    cell = CELL * float(np.hypot(*size))
    cells, covered = (
        {tuple(at) for at in np.floor(xy / cell).tolist()} for xy in (every[inside], some)
    )
    return len(covered) / max(len(cells), 1)

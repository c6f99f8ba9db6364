"""Whether what moves off a plane tells of depth.

An epipolar geometry of a plane and a few other matches leaves these much freedom: two that are
off the plane determine it, and printed things shift along rows and columns. So the digits of
another number plate, the bars of another chart or pictures that were hung elsewhere agree on
depth that is not there. But what was printed many times occurs elsewhere, too, and what was moved
as a whole keeps its distances. What has depth is seen once, and is tilted or curved: neighbours
are off the plane by nearly as much, but not by the same. And where a photograph is blurred, what
is left of it is large, and is found anywhere within a part of its size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mkdesc.matching.coherence import Size
from mkdesc.matching.frame_matches import FrameMatches, LocalFeatures
from mkdesc.matching.lookalikes import share_repeated
from mkdesc.matching.parallax import parallax_of, share_differing

#: Matches off the plane occur elsewhere if something there is nearer than this share of what two
#: descriptors are apart on average; and the share of them from which they say nothing of depth. In
#: 192 pairs of deep scenes 0.35 at most do; 0.42 to 1 where printed things differ.
ALIKE, REPEATED = 0.45, 0.4

#: Neighbours that are asked, and how much they may differ, as a share of how far they are off the
#: plane, and be off it by the same. Where fewer than this share of those that are off by nearly
#: as much (within half of it) differ by more, pieces were moved: 0.48 and more in 192 pairs of
#: deep scenes, none where pictures changed places on a wall.
NEIGHBOURS, THE_SAME, DIFFER = 12, 0.03, 0.25

#: Pixels off the plane from which it is compared with half the side of what is described, and the
#: share of that (median) that matches must be off: 0.65 and more are in 194 pairs of deep scenes,
#: 0.2 to 0.42 where one photograph is blurred.
FAR_OFF, SIZES_OFF = 10.0, 0.5

Floats = NDArray[np.float64]


def tells_of_depth(
    plane: Floats,
    off: FrameMatches,
    features: tuple[LocalFeatures, LocalFeatures],
    sizes: tuple[Size, Size],
) -> bool:
    """Whether matches off a plane are of things that have depth: not printed, moved or blurred.

    Parameters
    ----------
    plane
        (3, 3): the homography that they are off.
    off
        Matches that are off it, and agree on an epipolar geometry.
    features
        Of either photograph, with the rows of the matches.
    sizes
        Height and width of the photographs.
    """
    away = np.linalg.norm(parallax_of(plane, *off.positions), axis=1)
    far = away > FAR_OFF
    half = np.sqrt(np.abs(np.linalg.det(off.b[far, :, :2])))
    if far.any() and np.median(away[far] / half) < SIZES_OFF:
        return False
    if share_repeated(features, off, sizes, ALIKE) >= REPEATED:
        return False
    return share_differing(plane, *off.positions, NEIGHBOURS, THE_SAME) >= DIFFER

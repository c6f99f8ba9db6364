"""Whether matches that agree on a geometry also move together.

A count of matches that agree says little where they are not independent: many share a place, a
row of windows, a texture. An epipolar geometry leaves each match a whole line to be on. What
wrong matches do not do is move as their neighbours do. A match of two frames is an affine map; it
predicts where the neighbours of the match go, and they predict where it goes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.matching.affinities import SHAPE, affinities
from mkdesc.matching.frame_matches import FrameMatches
from mkdesc.matching.near import first_of_each, nearest

#: Positions that are nearer, as a share of the diagonal of their image, are one place.
PLACE = 0.01

#: Far places are as far as this from each other.
FAR = 0.05

#: Neighbours of a match that are asked, in either image.
NEIGHBOURS = 8

#: How far a neighbour may be from where it is predicted, as a share of its distance.
TOLERANCE = 0.5

#: Share of the neighbours that must move alike for a match to be coherent. Of right matches of
#: photographs 0.5 to 1 do, on average; of wrong ones that agree on an epipolar geometry 0.1 to
#: 0.3.
MAJORITY = 0.5

#: Deviation of coherent places from a line, as a share of the diagonal, at least.
SPREAD = 0.005

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Size = tuple[int, int]


class Coherence(NamedTuple):
    """How matches move with each other.

    Attributes
    ----------
    support
        (M,): the share of a match's neighbours that move as it does.
    places
        Number of places, each counted once in both images.
    coherent
        Number of those that most of their neighbours support; 0 if they are on one line.
    repeated
        Of the neighbours that do not move alike, the share of those that look alike: they are
        shown as large and turned as much. A few per cent where matches are wrong by chance,
        and more where a structure repeats itself.
    """

    support: Floats
    places: int
    coherent: int
    repeated: float

    @property
    def share(self) -> float:
        """Of all matches, those that most of their neighbours support."""
        return float((self.support >= MAJORITY).mean()) if len(self.support) else 0.0


def coherence(matches: FrameMatches, sizes: tuple[Size, Size]) -> Coherence:
    """How matches that agree on a geometry move with their neighbours.

    Parameters
    ----------
    matches
        Those that agree.
    sizes
        Height and width of the two images.

    Examples
    --------
    >>> x, y = np.meshgrid([10.0, 30, 50, 70], [10.0, 30, 50])
    >>> frames = np.zeros((12, 2, 3)) + np.eye(2, 3)
    >>> frames[:, :, 2] = np.column_stack([x.ravel(), y.ravel()])
    >>> rows = np.repeat(np.arange(12)[:, None], 2, axis=1)
    >>> matches = FrameMatches(frames, frames, np.zeros(12, np.float32), rows)
    >>> coherence(matches, ((60, 80), (60, 80))).coherent
    12
    >>> swapped = matches._replace(b=frames[[3, 9, 1, 11, 0, 7, 4, 10, 6, 2, 8, 5]])
    >>> coherence(swapped, ((60, 80), (60, 80))).coherent
    0
    """
    here, there = (np.ascontiguousarray(xy) for xy in matches.positions)
    places = distinct_places(here, there, sizes)
    if len(places) < 3:
        return Coherence(np.zeros(len(here)), len(places), 0, 0.0)
    radii = [PLACE * float(np.hypot(*size)) for size in sizes]
    count = min(NEIGHBOURS + 1, len(places))
    near = [nearest(xy[places], xy, count) for xy in (here, there)]
    known = (near[1][:, :, None] == near[0][:, None, :]).any(axis=2)
    other = places[np.concatenate(near, axis=1)]
    one = np.arange(len(here))[:, None]
    step_a, step_b = here[other] - here[one], there[other] - there[one]
    same = (_length(step_a) < radii[0]) & (_length(step_b) < radii[1])
    asked = ~same & ~np.concatenate([np.zeros_like(known), known], axis=1)
    maps = affinities(matches.a, matches.b)[:, :, :2]
    back = np.linalg.inv(maps)
    error = np.full(other.shape, np.inf)
    for predicting in (one, other):
        for step, result, linear in ((step_a, step_b, maps), (step_b, step_a, back)):
            off = _length((linear[predicting] @ step[..., None])[..., 0] - result)
            error = np.minimum(error, off / np.maximum(_length(result), 1e-9))
    alike = asked & (error < TOLERANCE)
    support = alike.sum(axis=1) / np.maximum(asked.sum(axis=1), 1)
    shape = np.linalg.norm(back[one] @ maps[other] - np.eye(2), axis=(2, 3)) < SHAPE
    apart = (asked & ~alike)[places]
    good = places[support[places] >= MAJORITY]
    return Coherence(
        support,
        len(places),
        len(good) if _spread((here[good], there[good]), sizes) >= SPREAD else 0,
        float(shape[places][apart].mean()) if apart.any() else 0.0,
    )


def far_coherence(matches: FrameMatches, sizes: tuple[Size, Size]) -> Coherence:
    """The same for places that are far from each other, of which no two are of one small thing.

    Parameters
    ----------
    matches, sizes
        As for :func:`coherence`.
    """
    return coherence(matches.take(distinct_places(*matches.positions, sizes, FAR)), sizes)


def distinct_places(
    here: Floats, there: Floats, sizes: tuple[Size, Size], apart: float = PLACE
) -> NDArray[np.int64]:
    """The first matches (K,) of their places in both images: one to one.

    Parameters
    ----------
    here, there
        (M, 2): positions in either image.
    sizes
        Of the images.
    apart
        How far places are from each other, as a share of the diagonal.
    """
    radii = (apart * float(np.hypot(*size)) for size in sizes)
    return first_of_each(*zip((here, there), radii, strict=True))


def in_front(matrix: Floats, here: Floats, there: Floats) -> Flags:
    """Which matches (M,) two cameras can both have in front of them.

    The oriented epipolar constraint (Chum, Werner, Matas, 2004): on its line, a match is on the
    side of the epipole on which all others are.

    Parameters
    ----------
    matrix
        (3, 3): fundamental, of pixels.
    here, there
        Positions (M, 2) in either image.
    """
    epipole = np.linalg.svd(matrix)[0][:, 2]
    ones = np.ones((len(here), 1))
    lines = np.hstack([here, ones]) @ matrix.T
    side = (np.cross(epipole, np.hstack([there, ones])) * lines).sum(axis=1) > 0
    return side if side.sum() * 2 >= len(side) else ~side


def _length(vectors: Floats) -> Floats:
    return np.sqrt((vectors * vectors).sum(axis=-1))


def spread(matches: FrameMatches, sizes: tuple[Size, Size]) -> float:
    """How far the places of matches deviate from any line, as a share of the diagonal.

    The smaller one of either image.
    """
    here, there = matches.positions
    places = distinct_places(here, there, sizes)
    return _spread((here[places], there[places]), sizes)


def _spread(both: tuple[Floats, Floats], sizes: tuple[Size, Size]) -> float:
    return min(_width(xy) / float(np.hypot(*size)) for xy, size in zip(both, sizes, strict=True))


def _width(xy: Floats) -> float:
    """The smaller standard deviation of positions (N, 2), over all directions."""
    if len(xy) < 3:
        return 0.0
    return float(np.sqrt(max(np.linalg.eigvalsh(np.cov(xy.T))[0], 0.0)))

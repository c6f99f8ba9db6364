"""What patches that match, and patches that do not, usually score under a descriptor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import checked_sides
from mkdesc.descriptor import MKD
from mkdesc.images.cutting import cut_patches
from mkdesc.images.demo import photograph
from mkdesc.images.detectors.registry import make_detector
from mkdesc.images.frames import SIDE, inside, to_frames
from mkdesc.images.jitter import Photometric, change_image, jitter_frames

#: Keypoints of the photograph, at most, and how much a view of one differs from it.
KEYPOINTS, LEVEL = 300, "hard"
#: The share of scores that a spread covers, in percent.
COVERED = 90


class Spread(NamedTuple):
    """The median of scores, and between which two of them nine tenths lie."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


class Typical(NamedTuple):
    """What matching patches score, and what others do."""

    matches: Spread
    others: Spread


def typical_scores(mkd: MKD) -> Typical:
    """The similarities of patches of the package's photograph under a descriptor.

    Matching ones are cut around the same keypoint, from the photograph and from a copy that was
    changed in light, blur and noise, in squares that are off as HPatches' "hard" ones are; others
    are cut around keypoints whose squares do not meet.

    Examples
    --------
    >>> found = typical_scores(MKD("polar"))
    >>> found.matches.median > found.others.high
    True
    """
    photo, rng = photograph(), np.random.default_rng(0)
    sides = checked_sides(SIDE if mkd.side is None else mkd.side)
    frames = to_frames(make_detector("sift").detect(photo).strongest(), sides[0])
    frames = frames[inside(frames, photo.shape)][:KEYPOINTS]
    other_frames = jitter_frames(frames, LEVEL, rng)
    changed = change_image(photo, Photometric(), rng)
    size = int(mkd.patch_size)
    plain = MKD(**mkd.get_params(deep=False)).set_params(
        backend="numpy", device=None, output="float32"
    )  # nothing to compile for so few
    here = plain.transform(cut_patches(photo, frames, size, sides))
    there = plain.transform(cut_patches(changed, other_frames, size, sides))
    scores = here @ there.T
    disjoint = _disjoint(frames)
    return Typical(_spread(np.diagonal(scores)), _spread(scores[disjoint]))


def _disjoint(frames: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which pairs of frames (N, 3, 3) do not meet: circles around them have nothing in common."""
    centres = frames[:, :2, 2]
    reach = np.sqrt(2) * np.linalg.norm(frames[:, :2, 0], axis=1)
    far = np.linalg.norm(centres[:, None] - centres, axis=-1)
    disjoint: NDArray[np.bool_] = far > reach[:, None] + reach
    return disjoint


def _spread(scores: NDArray[np.floating]) -> Spread:
    rest = (100 - COVERED) / 2
    low, median, high = np.percentile(scores, [rest, 50, 100 - rest]).tolist()
    return Spread(median, low, high)

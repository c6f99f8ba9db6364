"""Whether a homography that comes with a sequence is right: what the pixels say.

The first image is warped onto the second. The better the homography, the more the two correlate,
and ECC (Evangelidis and Psarakis, 2008; OpenCV's ``findTransformECC``) climbs from the given
homography to the nearest one at which they correlate most. It knows nothing of keypoints, nor of
what was found with them.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from wide_pairs import Pair, mapped

from mkdesc.images.views import seen_through

#: Steps of ECC, the gain at which it stops, and pixels of the blur that it begins with.
STEPS, GAIN, BLUR = 200, 1e-7, 5


class Checked(NamedTuple):
    """Correlations by the given homography, by ours, by the given one as the pixels refine it;
    and how far the refined one is from the other two, in pixels (mean of the corners)."""

    given: float
    ours: float
    refined: float
    from_given: float
    from_ours: float


def check(pair: Pair, ours: np.ndarray) -> Checked:
    refined = _refined(pair)
    given, own, best = (_correlation(pair, h) for h in (pair.truth, ours, refined))
    return Checked(given, own, best, apart(pair, refined, pair.truth), apart(pair, refined, ours))


def apart(pair: Pair, one: np.ndarray, other: np.ndarray) -> float:
    off = mapped(pair.places, one) - mapped(pair.places, other)
    return float(np.linalg.norm(off, axis=1).mean())


def _refined(pair: Pair) -> np.ndarray:
    back = np.linalg.inv(pair.truth)
    start = (back / back[2, 2]).astype(np.float32)
    stop = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, STEPS, GAIN)
    _, found = cv2.findTransformECC(pair.b, pair.a, start, cv2.MOTION_HOMOGRAPHY, stop, None, BLUR)
    return np.linalg.inv(found.astype(float))


def _correlation(pair: Pair, matrix: np.ndarray) -> float:
    shape = pair.b.shape
    middle = mapped(np.array([[shape[1] / 2, shape[0] / 2]]), np.linalg.inv(matrix))[0]
    seen = seen_through(pair.a, matrix, shape, middle).image
    both = cv2.warpPerspective(np.full_like(pair.a, 255), matrix, shape[::-1]) == 255
    return float(np.corrcoef(seen[both], pair.b[both])[0, 1])

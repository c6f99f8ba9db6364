"""The window of a fit: what is sampled around a place, and how fits are kept within bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Samples of the window to either side of the place, and its Gaussian's share of that.
RADIUS, SPREAD = 7, 0.6
#: Samples along a side; compiled loops have rows of one more, which weighs nothing.
SIDE, ROW = 2 * RADIUS + 1, 2 * RADIUS + 2

#: Variance of gray levels that a window must have: less is noise.
MIN_VARIANCE = 4.0
#: How much the diagonal of the normal equations is raised, as a share of it.
DAMPING = 1e-3
#: A step moves the place by one sample at most; and changes areas by this factor at most.
LONGEST_STEP, MAX_SWELLING = 1.0, 4.0
#: By what a step must raise the correlation to be kept, and how many that do not end a fit.
MIN_GAIN, MAX_IDLE = 1e-4, 2
#: Samples by which the next step would move a place, if there is to be a fit: more is not the top.
MAX_UNREST = 0.5
#: Determinants of local maps that are fitted are between this and its inverse.
MIN_DETERMINANT = 1e-4
#: Samples are at most the root of this times as far apart as pixels of their level. A bit more
#: than 2: between keypoints they are often the root of 2, and no rounding should decide.
MAX_SPARSE = 2.001
#: Numbers of local maps are at most this; what is as good as nothing.
LARGEST, TINY = 1e4, 1e-9


def window_weights() -> NDArray[np.float64]:
    """Weights (SIDE, SIDE) of the samples: a Gaussian; they add up to one."""
    offset = np.arange(-RADIUS, RADIUS + 1) / (SPREAD * RADIUS)
    weights = np.exp(-0.5 * (offset[:, None] ** 2 + offset**2))
    return np.asarray(weights / weights.sum())

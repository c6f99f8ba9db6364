"""How likely chance alone would make matches agree: the number of false alarms.

Under the hypothesis that matches are random, each falls within the tolerance of a given geometry
with some probability p, independent of all others. That a geometry through s of n matches has k
or more that agree happens, over all choices of the s and of the k, at most

    NFA = (n - s) C(n, k) C(k, s) p^(k - s)

times on average (Moisan and Stival, A probabilistic criterion to detect rigid point matches,
2004). Far below one, chance is no explanation.
"""

from __future__ import annotations

import math

#: Matches that determine a geometry.
SAMPLES = {"homography": 4, "fundamental": 7, "essential": 5}


def false_alarms(agree: int, matches: int, probability: float, sample: int) -> float:
    """log10 of how often chance alone gives as many matches that agree, or more.

    Parameters
    ----------
    agree
        Matches within the tolerance of the geometry.
    matches
        All of them.
    probability
        That a random match is within the tolerance.
    sample
        Matches that the geometry takes to be determined.

    Examples
    --------
    >>> round(false_alarms(20, 100, 1e-4, 4), 1)
    -37.6
    >>> false_alarms(4, 100, 1e-4, 4) > 0
    True
    """
    if agree <= sample:
        return math.inf
    choices = _log_choose(matches, agree) + _log_choose(agree, sample)
    tests = math.log10(max(matches - sample, 1))
    return tests + choices + (agree - sample) * math.log10(min(max(probability, 1e-300), 1.0))


def strip_share(threshold: float, *sizes: tuple[float, float]) -> float:
    """That a random match is within the threshold of its epipolar line, in one of the images.

    Parameters
    ----------
    threshold
        Pixels.
    sizes
        Height and width of the images; the line may be a diagonal.

    Examples
    --------
    >>> strip_share(2.0, (300, 400))
    0.016666666666666666
    """
    return min(sum(2 * threshold * math.hypot(h, w) / (h * w) for h, w in sizes), 1.0)


def disc_share(threshold: float, *sizes: tuple[float, float]) -> float:
    """That a random match is within the threshold of its place, in one of the images.

    >>> round(disc_share(2.0, (300, 400)), 6)
    0.000105
    """
    return min(sum(math.pi * threshold**2 / (h * w) for h, w in sizes), 1.0)


def _log_choose(n: int, k: int) -> float:
    return (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) / math.log(10)

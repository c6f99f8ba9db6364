"""What features are made with unless told otherwise."""

from __future__ import annotations

from typing import Any

from mkdesc._support.check import checked_sides
from mkdesc.descriptor import MKD
from mkdesc.images.detectors.registry import Detector

#: Side of a patch in units of sigma, where no model says its own. SIFT looks at 12.
SIDE = 20.0


def sides_for(detector: Detector, mkd: MKD) -> tuple[float, ...]:
    """Sides of the squares to describe, in units of sigma, unless told otherwise.

    Parameters
    ----------
    detector
        If its sizes mean something of their own, it decides the side of the first square.
    mkd
        Otherwise its own sides do, :data:`SIDE` if it has none; and always their ratios.
    """
    sides = checked_sides(SIDE if mkd.side is None else mkd.side)
    if detector.side is None:
        return sides
    return tuple(detector.side * (side / sides[0]) for side in sides)


def can_be_on_device(detector: Any, max_keypoints: int | None) -> bool:
    """Whether a detector finds so many keypoints on a device without waiting for it.

    >>> from mkdesc.images import make_detector
    >>> can_be_on_device(make_detector("learned", max_keypoints=9), 9)
    True
    >>> can_be_on_device(make_detector("dog", max_keypoints=9), 9)
    False
    """
    if max_keypoints is None or not hasattr(detector, "detect_padded"):
        return False
    most = detector.max_keypoints
    return most is not None and most >= max_keypoints and bool(detector.fits_device)

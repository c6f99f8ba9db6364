"""Detecting keypoints with OpenCV: the strongest ones, always in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mkdesc.images.gray import as_gray_uint8
from mkdesc.images.reading import opencv

if TYPE_CHECKING:
    import cv2

__all__ = ["DETECTORS", "check_max_keypoints", "detect_keypoints", "make_detector"]

#: Names and what makes such a detector in OpenCV; some builds lack some of them.
DETECTORS = {
    "sift": "SIFT_create",
    "orb": "ORB_create",
    "akaze": "AKAZE_create",
    "kaze": "KAZE_create",
    "brisk": "BRISK_create",
    "fast": "FastFeatureDetector_create",
    "gftt": "GFTTDetector_create",
    "mser": "MSER_create",
}


def make_detector(name: str) -> cv2.Feature2D:
    """An OpenCV detector by name, with OpenCV's own settings; only ORB does not stop at 500.

    OpenCV's SIFT places its keypoints a quarter of a pixel to the lower right of where they are;
    ``cv2.SIFT_create(enable_precise_upscale=True)`` does not, and can be passed as a detector.
    The plain one is the default because it is what scripts, and comparisons, are made with.

    Examples
    --------
    >>> make_detector("sift").descriptorSize()
    128
    """
    cv2 = opencv()
    factory = getattr(cv2, DETECTORS.get(name, ""), None)
    if factory is None:
        known = ", ".join(key for key, made in DETECTORS.items() if hasattr(cv2, made))
        if name in DETECTORS:
            raise ValueError(
                f"detector: this OpenCV ({cv2.__version__}) has no {name} "
                f"(cv2.{DETECTORS[name]}); it has {known}"
            )
        raise ValueError(f"detector: expected one of {known} or an OpenCV detector, got {name!r}")
    return factory(nfeatures=100_000) if name == "orb" else factory()


def check_max_keypoints(number: object) -> None:
    """Refuse what is no number of keypoints; None means all of them."""
    if number is not None and (not isinstance(number, (int, np.integer)) or number < 1):
        raise ValueError(f"max_keypoints: expected an integer >= 1 or None, got {number!r}")


def detect_keypoints(
    image: ArrayLike,
    max_keypoints: int | None = None,
    detector: str | cv2.Feature2D = "sift",
    mask: ArrayLike | None = None,
    *,
    rgb: bool = False,
) -> list[cv2.KeyPoint]:
    """Detect keypoints in an image.

    Parameters
    ----------
    image
        Gray (H, W) or colour (H, W, 3 or 4); uint8, uint16, or floats in [0, 1].
    max_keypoints
        How many to keep at most, the strongest by response; None: all of them.
    detector
        A name out of :data:`DETECTORS`, or an OpenCV detector (anything with ``detect``).
    mask
        uint8 (H, W): keypoints are looked for where it is not zero.
    rgb
        Whether red is the first of the colours; OpenCV's own order has blue first.

    Returns
    -------
    list of cv2.KeyPoint
        By falling response; equally strong ones by place, size and angle, so that the order is
        always the same. Empty if there are none.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (80, 80), np.uint8)
    >>> found = detect_keypoints(image, max_keypoints=5)
    >>> len(found), found[0].response >= found[-1].response
    (5, True)
    >>> detect_keypoints(np.zeros((80, 80), np.uint8))
    []
    """
    check_max_keypoints(max_keypoints)
    if isinstance(detector, str):
        detector = make_detector(detector)
    elif not hasattr(detector, "detect"):
        raise ValueError(f"detector: expected a name or an OpenCV detector, got {detector!r}")
    gray = as_gray_uint8(image, rgb)
    where = None if mask is None else np.ascontiguousarray(mask, np.uint8)
    if where is not None and where.shape != gray.shape:
        raise ValueError(f"mask: expected the image's shape {gray.shape}, got {where.shape}")
    found = list(detector.detect(gray, where))
    if max_keypoints is not None and len(found) > max_keypoints:  # sorting thousands takes long
        strength = np.array([k.response for k in found])
        enough = np.partition(strength, -max_keypoints)[-max_keypoints]
        found = [found[i] for i in np.flatnonzero(strength >= enough)]
    found.sort(key=lambda k: (-k.response, k.pt, k.size, k.angle, k.octave))
    return found[:max_keypoints]

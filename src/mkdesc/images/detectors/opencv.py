"""OpenCV's detectors, by name or as objects of one's own."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.reading import opencv

if TYPE_CHECKING:
    import cv2


#: A quarter of OpenCV's contrast: what looks weak may be all there is.
BLOBS: dict[str, Any] = {"contrast": 0.01}

#: Pixels on a side below which an image has no keypoints: some of OpenCV's detectors fail on it.
SMALLEST = 3

#: The OpenCV object that each thread used last, and what it was made by.
_local = threading.local()


@dataclass(frozen=True)
class _ByName:
    """A detector that OpenCV makes. OpenCV's objects are one thread's each, and do not pickle."""

    max_keypoints: int | None = None
    upright: bool = False
    n_threads: int | None = None

    FACTORY: ClassVar[str]
    side: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        name = type(self).__name__.lower()
        cv2 = opencv(f"the detector {name}")
        if not hasattr(cv2, self.FACTORY):
            raise ValueError(
                f"detector: this OpenCV ({cv2.__version__}) has no {name} (cv2.{self.FACTORY})"
            )

    def options(self) -> dict[str, Any]:
        """Arguments of OpenCV's factory."""
        return {}

    def detect(self, gray: NDArray[np.uint8], mask: NDArray[np.uint8] | None = None) -> Keypoints:
        """As every :class:`~mkdesc.images.Detector`."""
        if min(gray.shape) < SMALLEST:
            return Keypoints.from_opencv(())
        if getattr(_local, "made_by", None) != self:
            _local.detector = getattr(opencv(), self.FACTORY)(**self.options())
            _local.made_by = self
        return Keypoints.from_opencv(_local.detector.detect(gray, mask))


@dataclass(frozen=True)
class Sift(_ByName):
    """SIFT's blobs.

    Attributes
    ----------
    contrast, edge, sigma
        OpenCV's ``contrastThreshold``, ``edgeThreshold`` and ``sigma``.
    precise
        Whether keypoints are where they should be. Those of a plain ``cv2.SIFT_create()`` are a
        quarter of a pixel to the lower right of it.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (80, 80), np.uint8)
    >>> Sift().detect(image).strongest(5)
    Keypoints(5)
    """

    contrast: float = 0.04
    edge: float = 10.0
    sigma: float = 1.6
    precise: bool = True

    FACTORY = "SIFT_create"
    SENSITIVE = BLOBS

    def options(self) -> dict[str, Any]:
        """Arguments of OpenCV's factory."""
        return {
            "contrastThreshold": self.contrast,
            "edgeThreshold": self.edge,
            "sigma": self.sigma,
            "enable_precise_upscale": self.precise,
        }


class Orb(_ByName):
    """ORB's corners; their size is that of ORB's own patch."""

    FACTORY = "ORB_create"
    side = 2.0

    def options(self) -> dict[str, Any]:
        """Arguments of OpenCV's factory: all keypoints, not 500."""
        return {"nfeatures": 100_000}


class Akaze(_ByName):
    """AKAZE's blobs."""

    FACTORY = "AKAZE_create"


class Kaze(_ByName):
    """KAZE's blobs."""

    FACTORY = "KAZE_create"


class Brisk(_ByName):
    """BRISK's corners."""

    FACTORY = "BRISK_create"


class Fast(_ByName):
    """FAST's corners, all of one size and upright."""

    FACTORY = "FastFeatureDetector_create"
    side = 10.0


class Gftt(_ByName):
    """Shi and Tomasi's corners, "good features to track"; all of one size and upright."""

    FACTORY = "GFTTDetector_create"


class Mser(_ByName):
    """Maximally stable extremal regions, as upright discs."""

    FACTORY = "MSER_create"


@dataclass(frozen=True)
class OpenCVObject:
    """An OpenCV detector with one's own settings: ``cv2.SIFT_create(contrastThreshold=0.02)``."""

    detector: cv2.Feature2D
    side: ClassVar[None] = None

    def detect(self, gray: NDArray[np.uint8], mask: NDArray[np.uint8] | None = None) -> Keypoints:
        """As every :class:`~mkdesc.images.Detector`."""
        return Keypoints.from_opencv(self.detector.detect(gray, mask))

"""OpenCV's descriptors, one keypoint in the middle of each patch."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.threads import available_threads
from mkdesc.images.reading import opencv

#: Side of SIFT's square in units of OpenCV's KeyPoint.size, which is 2 sigma: 12 sigma.
SIFT_SIDE = 6.0
#: Pixels by which a patch is continued (its border repeated) where a descriptor needs them.
PADDING = 16
#: Patches per unit of work.
BLOCK = 256

Patches = NDArray[np.uint8]
Vectors = NDArray[np.float32]


def _vgg(cv2: Any, size: int) -> tuple[Any, float]:
    return cv2.xfeatures2d.VGG_create(use_scale_orientation=True, scale_factor=1.0), size


def _daisy(cv2: Any, size: int) -> tuple[Any, float]:
    # The outer ring's own radius reaches the border of the patch, as in SIFT's grid.
    make = cv2.xfeatures2d.DAISY_create
    return make(radius=0.375 * size, norm=cv2.xfeatures2d.DAISY_NRM_SIFT), size


def _boostdesc(cv2: Any, size: int) -> tuple[Any, float]:
    return cv2.xfeatures2d.BoostDesc_create(use_scale_orientation=True, scale_factor=1.0), size


def _teblid(cv2: Any, size: int) -> tuple[Any, float]:
    return cv2.xfeatures2d.TEBLID_create(1.0, cv2.xfeatures2d.TEBLID_SIZE_256_BITS), size


def _beblid(cv2: Any, size: int) -> tuple[Any, float]:
    return cv2.xfeatures2d.BEBLID_create(1.0, cv2.xfeatures2d.BEBLID_SIZE_512_BITS), size


def _latch(cv2: Any, size: int) -> tuple[Any, float]:
    return cv2.xfeatures2d.LATCH_create(bytes=64, rotationInvariance=False), size


#: What opencv-contrib has beyond OpenCV: functions that make the object for patches of a size and
#: say the size of the keypoint for which the object looks at the whole patch.
CONTRIB: dict[str, Callable[[Any, int], tuple[Any, float]]] = {
    "opencv-vgg": _vgg,
    "opencv-daisy": _daisy,
    "opencv-boostdesc": _boostdesc,
    "opencv-teblid": _teblid,
    "opencv-beblid": _beblid,
    "opencv-latch": _latch,
}


def contrib() -> Any:
    """The cv2 module of opencv-contrib, or an ImportError that says how to get it."""
    cv2 = opencv()
    if not hasattr(cv2, "xfeatures2d") or not hasattr(cv2.xfeatures2d, "VGG_create"):
        raise ImportError(
            f"this descriptor needs opencv-contrib-python; the OpenCV {cv2.__version__} that is "
            "installed is built without it. Two OpenCV builds cannot share an environment: make "
            "one with opencv-contrib-python-headless instead of opencv-python-headless"
        )
    return cv2


def _each(
    patches: Patches, make: Callable[[Any, int], tuple[Any, float]], cv2: Any, padding: int
) -> NDArray[Any]:
    """Descriptors of patches (N, W, W), in threads: OpenCV lets go of the interpreter."""
    size = patches.shape[-1]
    centre = padding + (size - 1) / 2

    def block(start: int) -> NDArray[Any]:
        extractor, keypoint_size = make(cv2, size)  # the objects are not made for sharing
        keypoint = cv2.KeyPoint(centre, centre, keypoint_size, 0)
        rows = []
        for index, patch in enumerate(patches[start : start + BLOCK], start):
            if padding:
                patch = np.pad(patch, padding, mode="edge")
            kept, row = extractor.compute(np.ascontiguousarray(patch), [keypoint])
            if row is None or len(kept) != 1:
                raise ValueError(
                    f"patches[{index}]: {type(extractor).__name__} gives no descriptor for "
                    f"patches of {size} px"
                )
            rows.append(row)
        return np.concatenate(rows)

    if not len(patches):
        # What the empty result looks like: that of one patch without its row.
        return _each(np.zeros((1, size, size), np.uint8), make, cv2, padding)[:0]
    with ThreadPoolExecutor(available_threads()) as pool:
        return np.concatenate(list(pool.map(block, range(0, len(patches), BLOCK))))


def describe_sift(patches: Patches) -> Vectors:
    """OpenCV's SIFT of patches (N, W, W): (N, 128), float32, integers from 0 to 255.

    The keypoint is upright and its square of 12 sigma is the patch.

    Examples
    --------
    >>> describe_sift(np.zeros((2, 64, 64), np.uint8)).shape
    (2, 128)
    """

    def make(cv2: Any, size: int) -> tuple[Any, float]:
        return cv2.SIFT_create(), size / SIFT_SIDE

    found = _each(patches, make, opencv(), 0)
    return np.asarray(found, np.float32)


def root(vectors: Vectors) -> Vectors:
    """RootSIFT of SIFT (N, D): square roots after normalisation to sum 1.

    References
    ----------
    R. Arandjelovic, A. Zisserman. Three things everyone should know to improve object retrieval.
    CVPR 2012.

    Examples
    --------
    >>> root(np.array([[9.0, 16.0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    total = np.maximum(vectors.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    rooted: Vectors = np.sqrt(vectors / total)
    return rooted


def describe_contrib(name: str, patches: Patches) -> Vectors:
    """A descriptor of opencv-contrib, as float32; binary ones as bits.

    Parameters
    ----------
    name
        One of :data:`CONTRIB`.
    patches
        (N, W, W).
    """
    found = _each(patches, CONTRIB[name], contrib(), PADDING)
    if found.dtype == np.uint8:
        found = np.unpackbits(found, axis=1)
    return np.asarray(found, np.float32)

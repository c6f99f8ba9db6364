"""Reading images with OpenCV, and saying clearly what is wrong with those that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.header import read_header

__all__ = ["MAX_PIXELS", "one_opencv_thread_each", "opencv", "read_gray"]

#: Images of more pixels than this are refused, unless told otherwise: a small file can unfold
#: to more than the memory holds.
MAX_PIXELS = 250_000_000
#: And those of more than this for each byte of the file, beyond the first few: no photograph is
#: as empty as that, and no PNG file can be.
PIXELS_PER_BYTE, FEW_PIXELS = 10_000, 4_000_000


def opencv() -> Any:
    """The cv2 module, or an ImportError that says how to get it."""
    try:
        import cv2
    except ImportError:
        raise ImportError(
            "photographs need OpenCV, any build of it that gives the module cv2; if you have "
            "none: pip install 'mkdesc[images]'"
        ) from None
    return cv2


@contextmanager
def one_opencv_thread_each() -> Iterator[None]:
    """Keep OpenCV to the thread that asks: whoever calls has as many as there are cores.

    >>> with one_opencv_thread_each():
    ...     opencv().getNumThreads()
    1
    """
    cv2 = opencv()
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)


def read_gray(
    path: str | Path, max_pixels: int = MAX_PIXELS, *, as_stored: bool = False
) -> NDArray[np.uint8]:
    """Read an image file as gray (H, W) uint8.

    The file is read by Python and only decoded by OpenCV, so that any path works everywhere.

    Parameters
    ----------
    path
        Of the file.
    max_pixels
        Larger images are refused before they are decoded.
    as_stored
        Whether to leave the image as the file stores it and not turn it as its EXIF data say.
        COLMAP and hloc leave it.
    """
    cv2 = opencv()
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path}: a folder, expected a photograph")
    data = Path(path).read_bytes()
    header = read_header(data)
    pixels = header.width * header.height
    if pixels > max_pixels:
        raise ValueError(
            f"{path}: {header.width} x {header.height} px, expected at most {max_pixels:,} pixels "
            "(max_pixels raises the limit)"
        )
    if not data or not header.whole:
        problem = "truncated or damaged, not a whole image" if data else "empty, not an image"
        raise ValueError(f"{path}: {problem}")
    if pixels > FEW_PIXELS + PIXELS_PER_BYTE * len(data):
        raise ValueError(
            f"{path}: {header.width} x {header.height} px in {len(data)} bytes: damaged, or empty"
        )
    flags = cv2.IMREAD_GRAYSCALE | (cv2.IMREAD_IGNORE_ORIENTATION if as_stored else 0)
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error:
        image = None
    if image is None:
        raise ValueError(f"{path}: not an image that OpenCV can read")
    gray: NDArray[np.uint8] = image
    return gray

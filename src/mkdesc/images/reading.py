"""Reading images with OpenCV, and saying clearly what is wrong with those that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["opencv", "read_gray"]


def opencv() -> Any:
    """The cv2 module, or an ImportError that says how to get it."""
    try:
        import cv2
    except ImportError:
        raise ImportError("reading images needs OpenCV: pip install 'mkdesc[images]'") from None
    return cv2


def read_gray(path: str | Path) -> NDArray[np.uint8]:
    """Read an image file as gray (H, W) uint8.

    The file is read by Python and only decoded by OpenCV, so that any path works everywhere.
    """
    cv2 = opencv()
    data = np.frombuffer(Path(path).read_bytes(), np.uint8)
    try:
        image = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE) if data.size else None
    except cv2.error:
        image = None
    if image is None:
        raise ValueError(f"{path}: not an image that OpenCV can read")
    gray: NDArray[np.uint8] = image
    return gray

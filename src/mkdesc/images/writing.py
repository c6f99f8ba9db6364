"""Writing images with OpenCV."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.reading import opencv

__all__ = ["encode_image"]


def encode_image(extension: str, image: NDArray[np.uint8]) -> bytes:
    """The bytes of an image file, for a format named by its extension.

    The bytes are written by Python and not by OpenCV, so that any path works everywhere.

    Parameters
    ----------
    extension
        With the dot: ``".png"``, ``".bmp"``, ...
    image
        Shape (H, W) or (H, W, 3), uint8.

    Examples
    --------
    >>> encode_image(".png", np.zeros((4, 4), np.uint8))[1:4]
    b'PNG'
    """
    done, data = opencv().imencode(extension, np.ascontiguousarray(image))
    if not done:
        raise ValueError(f"image: cannot be written as {extension}, shape {image.shape}")
    encoded: bytes = data.tobytes()
    return encoded

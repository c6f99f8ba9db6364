"""Writing images with OpenCV."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.reading import opencv

#: What tells a picture that this package drew from any photograph.
OWN_PICTURE = b"Software\0mkdesc"
#: Endings of such pictures.
PICTURES = (".png", ".jpg", ".jpeg")


def encode_image(extension: str, image: NDArray[np.uint8], quality: int = 95) -> bytes:
    """The bytes of an image file, for a format named by its extension.

    The bytes are written by Python and not by OpenCV, so that any path works everywhere.

    Parameters
    ----------
    extension
        With the dot: ``".png"``, ``".bmp"``, ...
    image
        Shape (H, W) or (H, W, 3), uint8.
    quality
        Of JPEG files, up to 100.

    Examples
    --------
    >>> encode_image(".png", np.zeros((4, 4), np.uint8))[1:4]
    b'PNG'
    """
    cv2 = opencv()
    settings = [cv2.IMWRITE_JPEG_QUALITY, quality] if extension in (".jpg", ".jpeg") else []
    done, data = cv2.imencode(extension, np.ascontiguousarray(image), settings)
    if not done:
        raise ValueError(f"image: cannot be written as {extension}, shape {image.shape}")
    encoded: bytes = data.tobytes()
    return encoded


def encode_picture(extension: str, image: NDArray[np.uint8]) -> bytes:
    """The bytes of a PNG or JPEG file that says who drew it, and so can be drawn again.

    Parameters
    ----------
    extension, image
        As for :func:`encode_image`.

    Examples
    --------
    >>> OWN_PICTURE in encode_picture(".jpg", np.zeros((4, 4), np.uint8))
    True
    """
    return marked(encode_image(extension, image))


def marked(data: bytes) -> bytes:
    """A PNG or JPEG file with the mark in it: after the first chunk, as text, or as a comment."""
    if data.startswith(b"\x89PNG"):
        after = 33  # the header's chunk is always as long
        body = b"tEXt" + OWN_PICTURE
        chunk = struct.pack(">I", len(OWN_PICTURE)) + body + struct.pack(">I", zlib.crc32(body))
    else:
        (length,) = struct.unpack_from(">H", data, 4)
        after = 4 + length
        chunk = b"\xff\xfe" + struct.pack(">H", 2 + len(OWN_PICTURE)) + OWN_PICTURE
    return data[:after] + chunk + data[after:]

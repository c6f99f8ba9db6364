"""Writing images with Pillow."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.PngImagePlugin import PngInfo

#: What tells a picture that this package drew from any photograph: a text in a PNG file, a
#: comment in a JPEG file.
OWN_PICTURE = b"Software\0mkdesc"
#: Endings of such pictures.
PICTURES = (".png", ".jpg", ".jpeg")

_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".bmp": "BMP"}


def encode_image(
    extension: str, image: NDArray[np.uint8], quality: int = 95, **options: Any
) -> bytes:
    """The bytes of an image file, for a format named by its extension.

    Parameters
    ----------
    extension
        ``".png"``, ``".jpg"``, ``".jpeg"`` or ``".bmp"``.
    image
        Shape (H, W) or (H, W, 3) with blue first, uint8.
    quality
        Of JPEG files, up to 100.
    options
        Of Pillow for this format.

    Examples
    --------
    >>> encode_image(".png", np.zeros((4, 4), np.uint8))[1:4]
    b'PNG'
    """
    from PIL import Image

    if extension not in _FORMATS:
        raise ValueError(f"extension: expected one of {', '.join(_FORMATS)}, got {extension!r}")
    red_first = image if image.ndim == 2 else image[..., ::-1]
    file = BytesIO()
    options = {"quality": quality, "compress_level": 1, **options}
    Image.fromarray(np.ascontiguousarray(red_first)).save(file, _FORMATS[extension], **options)
    return file.getvalue()


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
    return encode_image(extension, image, comment=OWN_PICTURE, pnginfo=own_png())


def own_png() -> PngInfo:
    """The text that Pillow writes into a PNG file of this package."""
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    key, text = OWN_PICTURE.decode().split("\0")
    info.add_text(key, text)
    return info

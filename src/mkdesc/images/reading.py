"""Reading images, and saying clearly what is wrong with those that cannot be read.

OpenCV decodes them; where it is not installed, Pillow does.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.arrays import hint_at_few_bits
from mkdesc.images.header import read_header

#: Images of more pixels than this are refused, unless told otherwise: a small file can unfold
#: to more than the memory holds.
MAX_PIXELS = 250_000_000
#: And those of more than this for each byte of the file, beyond the first few: no photograph is
#: as empty as that, and no PNG file can be.
PIXELS_PER_BYTE, FEW_PIXELS = 10_000, 4_000_000


def opencv(what: str = "this") -> Any:
    """The cv2 module, or an ImportError that says what needs it and how to get it."""
    try:
        import cv2
    except ImportError:
        raise ImportError(
            f"{what} needs OpenCV, any build of it that gives the module cv2; if you have none: "
            "pip install 'mkdesc[images]'"
        ) from None
    return cv2


def has_opencv() -> bool:
    """Whether OpenCV is installed."""
    try:
        opencv()
    except ImportError:
        return False
    return True


@contextmanager
def one_opencv_thread_each() -> Iterator[None]:
    """Run OpenCV in the calling thread alone: the caller has a thread for every core.

    >>> with one_opencv_thread_each():
    ...     opencv().getNumThreads()
    1
    """
    if not has_opencv():
        yield
        return
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

    The file is read by Python and only decoded by OpenCV or Pillow: any path works everywhere.

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
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path}: a folder, expected a photograph")
    if Path(path).is_char_device() or Path(path).is_block_device():  # without an end
        raise ValueError(f"{path}: is a device, expected a photograph")
    data = Path(path).read_bytes()
    header = read_header(data)
    pixels = header.width * header.height
    if pixels > max_pixels:
        raise ValueError(
            f"{path}: {header.width} x {header.height} px, expected at most {max_pixels:,} pixels "
            "(raise the limit with max_pixels)"
        )
    if not data or not header.whole:
        problem = "truncated or damaged, not a whole image" if data else "empty, not an image"
        raise ValueError(f"{path}: {problem}")
    if pixels > FEW_PIXELS + PIXELS_PER_BYTE * len(data):
        raise ValueError(
            f"{path}: {header.width} x {header.height} px in {len(data)} bytes: damaged, or empty"
        )
    decode, name = (_by_opencv, "OpenCV") if has_opencv() else (_by_pillow, "Pillow")
    image = decode(data, as_stored)
    if image is None:
        raise ValueError(f"{path}: not an image that {name} can read")
    return image


def _by_opencv(data: bytes, as_stored: bool) -> NDArray[np.uint8] | None:
    """What OpenCV makes of a file; None: nothing."""
    cv2 = opencv()
    flags = cv2.IMREAD_GRAYSCALE | (cv2.IMREAD_IGNORE_ORIENTATION if as_stored else 0)
    pixels = np.frombuffer(data, np.uint8)
    try:
        image: NDArray[np.uint8] | None = cv2.imdecode(pixels, flags)
        if image is not None and image.max() < 16:  # what is left of 12 bits of 16
            hint_at_few_bits(cv2.imdecode(pixels, flags | cv2.IMREAD_ANYDEPTH))
    except cv2.error:
        return None
    return image


def _by_pillow(data: bytes, as_stored: bool) -> NDArray[np.uint8] | None:
    """What Pillow makes of a file; None: nothing."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise ImportError(
            "photographs need OpenCV or Pillow: pip install 'mkdesc[images]'"
        ) from None
    try:
        # How large it is has been looked at already.
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data)) as opened:
            turned = opened if as_stored else ImageOps.exif_transpose(opened)
            if not turned.mode.startswith("I"):
                if turned.mode in ("P", "PA", "RGBA", "LA"):  # colours under transparent ones, too
                    turned = turned.convert("RGBA").convert("RGB")
                return np.asarray(turned.convert("L"))
            deep = np.asarray(turned).astype(np.int64)  # 16 bits, which Pillow cuts off at 255
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
        return None
    hint_at_few_bits(deep)
    return np.asarray(deep >> 8, np.uint8)


def in_colour(gray: NDArray[np.uint8], file: Path | None) -> NDArray[np.uint8]:
    """The photograph of a file, blue first; the gray one if OpenCV does not read the same.

    >>> in_colour(np.zeros((2, 3), np.uint8), None).shape
    (2, 3)
    """
    if file is None or not file.is_file():
        return gray
    cv2 = opencv()
    pixels = np.frombuffer(file.read_bytes(), np.uint8)
    found: NDArray[np.uint8] | None = cv2.imdecode(pixels, cv2.IMREAD_COLOR)
    return gray if found is None or found.shape[:2] != gray.shape else found


def reduced(image: NDArray[np.uint8], max_size: int | None) -> NDArray[np.uint8]:
    """An image (H, W) that is no longer than this on either side; None: as it is.

    >>> reduced(np.zeros((40, 80), np.uint8), 20).shape
    (10, 20)
    """
    longest = max(image.shape)
    if max_size is None or longest <= max_size:
        return image
    height, width = (max(1, round(n * max_size / longest)) for n in image.shape)
    if has_opencv():
        cv2 = opencv()
        smaller: NDArray[np.uint8] = cv2.resize(
            image, (width, height), interpolation=cv2.INTER_AREA
        )
        return smaller
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BOX))

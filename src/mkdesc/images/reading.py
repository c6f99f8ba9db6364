"""Reading images with Pillow, and saying clearly what is wrong with those that cannot be read."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.arrays import hint_at_few_bits
from mkdesc.images.gray import as_gray_uint8

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

#: Images of more pixels than this are refused, unless told otherwise: a small file can unfold
#: to more than the memory holds.
MAX_PIXELS = 250_000_000
#: And those of more than this for each byte of the file, beyond the first few: no photograph is
#: as empty as that.
PIXELS_PER_BYTE, FEW_PIXELS = 200, 20_000_000

#: How files of a format begin, and Pillow's module and class for it. (``Image.open`` would try
#: many more, start programs for some, and has a limit of pixels of its own.)
_FORMATS = {
    rb"\xff\xd8\xff": "JpegImagePlugin.JpegImageFile",
    rb"\x89PNG\r\n\x1a\n": "PngImagePlugin.PngImageFile",
    rb"BM": "BmpImagePlugin.BmpImageFile",
    rb"P[1-6]\s": "PpmImagePlugin.PpmImageFile",
    rb"RIFF....WEBP": "WebPImagePlugin.WebPImageFile",
    rb"II[*+]\0|MM\0[*+]": "TiffImagePlugin.TiffImageFile",
    rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51": "Jpeg2KImagePlugin.Jpeg2KImageFile",
}
_MAGIC_BYTES = 12

#: Where Pillow says what is wrong with a file, besides raising.
_LOGGER = logging.getLogger("PIL")
#: Keeps Pillow from warning of tags that nothing here depends on.
_NO_NOTES = ("ignore", None, Warning, re.compile(r"PIL\."), 0)


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


@contextmanager
def one_opencv_thread_each() -> Iterator[None]:
    """Run OpenCV, if it is loaded, in the calling thread alone: every core has a thread already.

    >>> cv2 = opencv()
    >>> with one_opencv_thread_each():
    ...     cv2.getNumThreads()
    1
    """
    cv2 = sys.modules.get("cv2")
    if cv2 is None:
        yield
        return
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)


class NotAnImage(ValueError):
    """A file does not begin as an image does."""


def open_image(file: BinaryIO) -> ImageFile:
    """An image of Pillow's, of which only the header has been read.

    Parameters
    ----------
    file
        At its beginning. Whatever Pillow raises comes through: it depends on the damage.

    Examples
    --------
    >>> open_image(BytesIO(b"P5 640 480 255 ...")).size
    (640, 480)
    """
    if warnings.filters[:1] != [_NO_NOTES]:  # catch_warnings is not made for threads
        warnings.filterwarnings("ignore", module=_NO_NOTES[3].pattern)
        if not _LOGGER.handlers:
            _LOGGER.addHandler(logging.NullHandler())  # otherwise errors would be printed
    start = file.read(_MAGIC_BYTES)
    file.seek(0)
    for magic, name in _FORMATS.items():
        if re.match(magic, start, re.DOTALL):
            module, _, kind = name.partition(".")
            image: ImageFile = getattr(import_module(f"PIL.{module}"), kind)(file)
            return image
    raise NotAnImage("not an image of a known format (JPEG, PNG, BMP, PNM, WebP, TIFF, JPEG 2000)")


def image_size(path: str | Path) -> tuple[int, int]:
    """Width and height of an image file, as stored; only its header is read.

    Examples
    --------
    >>> from mkdesc.images import demo
    >>> image_size(Path(demo.__file__).with_name("photographs") / "portrait.jpg")
    (512, 600)
    """
    with Path(path).open("rb") as file, _naming(path):
        return open_image(file).size


def read_gray(
    path: str | Path, max_pixels: int = MAX_PIXELS, *, as_stored: bool = False
) -> NDArray[np.uint8]:
    """Read an image file as gray (H, W) uint8.

    Of 16 bits the upper 8 are taken; floats must be from 0 to 1. Transparency is ignored.

    Parameters
    ----------
    path
        Of the file.
    max_pixels
        Larger images are refused before they are decoded.
    as_stored
        Whether to leave the image as the file stores it and not turn it as its EXIF data say.
        COLMAP and hloc leave it. (TIFF files are turned in any case.)
    """
    image = _read(Path(path), max_pixels, as_stored, "L")
    if not image.mode.startswith("I"):
        with _naming(path, "cannot be made gray: "):
            if image.mode == "F":
                return as_gray_uint8(np.asarray(image))
            return np.array(image.convert("L"))
    deep = np.asarray(image)
    if deep.min() < 0 or deep.max() > 0xFFFF:
        raise ValueError(f"{path}: has values of more than 16 bits")
    hint_at_few_bits(deep)
    return (deep >> 8).astype(np.uint8)


def in_colour(gray: NDArray[np.uint8], file: Path | None) -> NDArray[np.uint8]:
    """The photograph of a file, blue first; the gray one if there is no such file any more.

    >>> in_colour(np.zeros((2, 3), np.uint8), None).shape
    (2, 3)
    """
    if file is None:
        return gray
    try:
        image = _read(file, gray.size, False, "RGB")
        if image.size[::-1] != gray.shape or image.mode[0] in "IF":
            return gray
        return np.array(image.convert("RGB"))[..., ::-1]
    except (OSError, ValueError):
        return gray


def _read(path: Path, max_pixels: int, as_stored: bool, mode: str) -> ImageFile:
    """A decoded image of Pillow's; of a JPEG file the luminance alone, if the mode is "L"."""
    from PIL.ImageOps import exif_transpose

    if path.is_dir():
        raise IsADirectoryError(f"{path}: a folder, expected a photograph")
    if path.exists() and not path.is_file():  # without an end
        raise ValueError(f"{path}: is a device or a pipe, expected a photograph")
    data = path.read_bytes()
    if not data:
        raise ValueError(f"{path}: empty, not an image")
    with _naming(path):
        image = open_image(BytesIO(data))
    width, height = image.size
    if width * height > max_pixels:
        raise ValueError(
            f"{path}: {width} x {height} px, expected at most {max_pixels:,} pixels "
            "(raise the limit with max_pixels)"
        )
    if width * height > FEW_PIXELS + PIXELS_PER_BYTE * len(data):
        raise ValueError(f"{path}: {width} x {height} px in {len(data)} bytes: damaged, or empty")
    with _naming(path):
        image.draft(mode, None)
        image.load()
        if not as_stored:
            exif_transpose(image, in_place=True)
        image.info.pop("transparency", None)  # what lies below counts
    return image


@contextmanager
def _naming(path: str | Path, problem: str = "truncated or damaged: ") -> Iterator[None]:
    """Turn what a decoder raises for a damaged file, which can be anything, into one message."""
    try:
        yield
    except MemoryError:
        raise
    except NotAnImage as error:
        raise ValueError(f"{path}: {error}") from None
    except Exception as error:
        raise ValueError(f"{path}: {problem}{error}") from error

"""Photographs with all that their files hold: colour, transparency, 16 bits.

Pillow reads 16 bits of gray alone; of colours it keeps the upper 8. Files of these are therefore
decoded twice: once as they are, and once as if the bytes of each number were the other way round.
"""

from __future__ import annotations

import struct
import sys
import warnings
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.writing import OWN_PICTURE

#: Types of PNG files by the number of channels: gray, gray and alpha, colour, colour and alpha.
_PNG_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
#: How Pillow names the order of the bytes of 16 bits, and the other order.
_OTHER_ORDER = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}
#: Pillow's names of the formats that are read.
_FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
#: Bytes of a colour profile, at most.
_MAX_PROFILE = 1 << 24


class Pixels(NamedTuple):
    """A photograph as its file has it.

    Attributes
    ----------
    values
        (H, W), (H, W, 2), (H, W, 3) or (H, W, 4): gray or colour, blue first, the last of two or
        four channels being opacity; uint8, uint16, or float32.
    profile
        The ICC profile of its colours; None: there is none.
    """

    values: NDArray[Any]
    profile: bytes | None = None


def read_pixels(path: str | Path) -> Pixels:
    """Read a photograph, turned as its EXIF data say.

    Parameters
    ----------
    path
        Of a file that :func:`~mkdesc.images.read_gray` has read: it says what is wrong with those
        that cannot be read, or are too large.
    """
    data = Path(path).read_bytes()
    try:
        with warnings.catch_warnings(action="ignore"):
            return _decoded(data)
    except MemoryError:
        raise
    except Exception as error:  # a decoder may raise anything
        raise ValueError(f"{path}: cannot be read in colour: {error}") from error


def _decoded(data: bytes) -> Pixels:
    from PIL import Image

    image = Image.open(BytesIO(data), formats=_FORMATS)
    profile = image.info.get("icc_profile") or None
    if profile is not None and len(profile) > _MAX_PROFILE:
        profile = None
    raw = _raw_mode(image)
    if raw == "LA;16B":  # decoded as four bytes
        image._mode = "RGBA"
        _decode_as(image, lambda _: "RGBA")
        return Pixels(_turned(image).view(">u2").astype(np.uint16), profile)
    if ";16" in raw and not image.mode.startswith("I"):
        low = Image.open(BytesIO(data), formats=_FORMATS)
        _decode_as(low, _other_order)
        upper, lower = (_turned(one) for one in (image, low))
        return Pixels(_blue_first(upper.astype(np.uint16) << 8 | lower), profile)
    turned = _turned(image) if image.mode.startswith(("I", "F")) else _turned(image, True)
    if turned.dtype.kind in "iu" and turned.dtype != np.uint8:
        if turned.min() < 0 or turned.max() > 0xFFFF:
            raise ValueError("has values of more than 16 bits")
        turned = turned.astype(np.uint16)
    return Pixels(_blue_first(turned), profile if image.mode not in ("CMYK", "LAB") else None)


def _decode_as(image: Any, arguments: Callable[[Any], Any]) -> None:
    """Let an image of Pillow's be decoded with other arguments."""
    make = getattr(type(image.tile[0]), "_make", tuple)  # Pillow 11 gave the four names
    image.tile = [make((*tile[:3], arguments(tile[3]))) for tile in image.tile]


def _raw_mode(image: Any) -> str:
    """How the bytes of a file are to be read, in Pillow's words."""
    args = image.tile[0][3] if image.tile else ""
    return str(args if isinstance(args, str) else args[0] if args else "")


def _other_order(args: Any) -> Any:
    """The arguments of a decoder, for numbers whose bytes are the other way round."""
    raw = args if isinstance(args, str) else args[0]
    other = raw[:-1] + _OTHER_ORDER[raw[-1]]
    return other if isinstance(args, str) else (other, *args[1:])


def _turned(image: Any, plain: bool = False) -> NDArray[Any]:
    """The pixels of an image of Pillow's, turned; ``plain``: made gray or colour of 8 bits."""
    from PIL.ImageOps import exif_transpose

    turned = exif_transpose(image)
    if plain and turned.mode not in ("L", "LA", "RGB", "RGBA"):
        clear = turned.mode in ("PA", "La", "RGBa") or "transparency" in turned.info
        mode = "L" if turned.mode == "1" else "RGBA" if clear else "RGB"
        turned = turned.convert(mode)
    elif plain and "transparency" in turned.info:
        turned = turned.convert("RGBA")
    return np.asarray(turned)


def _blue_first(values: NDArray[Any]) -> NDArray[Any]:
    """Colours (H, W, 3 or 4) in the other order; what has none stays."""
    if values.ndim == 2 or values.shape[2] < 3:
        return values
    return np.ascontiguousarray(values[..., [2, 1, 0, 3][: values.shape[2]]])


def as_bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Values of any depth with 8 bits: of 16 the upper ones; floats are from 0 to 1.

    >>> as_bytes(np.array([[0.0, 0.5, 1.0]])).tolist()
    [[0, 128, 255]]
    """
    if values.dtype.kind == "f":
        return np.asarray(np.rint(values.clip(0, 1) * 255), np.uint8)
    return values if values.dtype == np.uint8 else (values >> 8).astype(np.uint8)


def as_rgb(values: NDArray[Any]) -> NDArray[np.uint8]:
    """A photograph as 8 bits of colour (H, W, 3), red first, without its transparency.

    >>> as_rgb(np.array([[[1, 2, 3, 255]]], np.uint8)).tolist()
    [[[3, 2, 1]]]
    """
    small = as_bytes(values)
    if small.ndim == 2:
        small = small[..., None]
    gray = small.shape[2] < 3
    return np.ascontiguousarray(small[..., [0, 0, 0] if gray else [2, 1, 0]])


def encode_png(image: NDArray[Any], profile: bytes | None = None) -> bytes:
    r"""The bytes of a PNG file of 8 or 16 bits that says who made it.

    Parameters
    ----------
    image
        (H, W) or (H, W, 1 to 4) uint8 or uint16: as :class:`Pixels` has them.
    profile
        ICC profile.

    Examples
    --------
    >>> encode_png(np.zeros((2, 2, 2), np.uint16))[:4]
    b'\x89PNG'
    """
    height, width = image.shape[:2]
    values = _blue_first(image).reshape(height, width, -1)
    depth, kind = 8 * values.itemsize, _PNG_TYPES[values.shape[2]]
    rows = np.ascontiguousarray(values, values.dtype.newbyteorder(">")).view(np.uint8)
    rows = rows.reshape(height, -1)
    filtered = np.full((height, rows.shape[1] + 1), 2, np.uint8)  # less the row above
    filtered[:, 1:] = np.diff(rows, axis=0, prepend=np.uint8(0))
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)),
        (b"tEXt", OWN_PICTURE),
        *([(b"iCCP", b"profile\0\0" + zlib.compress(profile))] if profile else []),
        (b"IDAT", zlib.compress(filtered.tobytes(), 4)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )

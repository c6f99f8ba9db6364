"""Photographs: seven formats, and colour of 16 bits."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from targets.target import Target, encoded, png_sums

__all__ = ["IMAGES"]


def _images(name: str, files: dict[str, Callable[[], bytes]], **more: Any) -> Target:
    """A target of files of one format, in variants."""

    def prepare(folder: Path) -> None:
        for file, make in files.items():
            (folder / file).write_bytes(make())

    def read(folder: Path) -> None:
        from mkdesc.images.exif import focal_length
        from mkdesc.images.reading import in_colour, read_gray

        for file in files:
            focal_length((folder / file).read_bytes(), 80)
            in_colour(read_gray(folder / file), folder / file)

    return Target(name, prepare, list(files), read, **more)


def _in_colour() -> Target:
    """Files whose colours, opacity and 16 bits are read."""
    files = {
        **{f"deep{n}.png": partial(_deep_png, n) for n in (1, 2, 3, 4)},
        "palette.png": _palette_png,
        "deep.tif": _deep_tiff,
        "colour.jpg": lambda: _with_exif(encoded(".jpg", True)),
    }

    def prepare(folder: Path) -> None:
        for file, make in files.items():
            (folder / file).write_bytes(make())

    def read(folder: Path) -> None:
        from mkdesc.images.pixels import read_pixels
        from mkdesc.images.reading import read_gray

        for file in files:
            read_gray(folder / file)
            read_pixels(folder / file)

    return Target("pixels", prepare, list(files), read, damage=png_sums)


def _deep_png(channels: int) -> bytes:
    from mkdesc.images.pixels import encode_png

    values = np.random.default_rng(0).integers(0, 65536, (60, 80, channels), np.uint16)
    return encode_png(values, b"profile")


def _palette_png() -> bytes:
    from PIL import Image

    file = BytesIO()
    values = np.random.default_rng(0).integers(0, 16, (60, 80), np.uint8)
    image = Image.fromarray(values).convert("P")
    image.save(file, "PNG", transparency=3)
    return file.getvalue()


def _deep_tiff() -> bytes:
    import cv2

    values = np.random.default_rng(0).integers(0, 65536, (60, 80, 3), np.uint16)
    return bytes(cv2.imencode(".tif", values)[1].tobytes())


def _with_exif(jpeg: bytes) -> bytes:
    """A JPEG file with a focal length and an orientation."""
    inner = struct.pack("<HHHIHHI", 1, 0xA405, 3, 1, 28, 0, 0)
    outer = struct.pack("<HHHIIHHIII", 2, 0x112, 3, 1, 6, 0x8769, 4, 1, 38, 0)
    block = b"Exif\0\0II*\0\x08\0\0\0" + outer + inner
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + jpeg[2:]


#: All of them.
IMAGES = (
    _images(
        "png",
        {
            "gray.png": lambda: encoded(".png"),
            "colour.png": lambda: encoded(".png", True),
            "bits.png": lambda: encoded(".png", False, 18, 1),  # IMWRITE_PNG_BILEVEL
        },
        damage=png_sums,
    ),
    _images(
        "jpeg",
        {
            "gray.jpg": lambda: encoded(".jpg"),
            "colour.jpg": lambda: _with_exif(encoded(".jpg", True)),
            "scans.jpg": lambda: encoded(".jpg", True, 2, 1),  # IMWRITE_JPEG_PROGRESSIVE
            "restarts.jpg": lambda: encoded(".jpg", True, 4, 2),  # IMWRITE_JPEG_RST_INTERVAL
        },
    ),
    _images(
        "bmp",
        {"gray.bmp": lambda: encoded(".bmp"), "colour.bmp": lambda: encoded(".bmp", True)},
    ),
    _images(
        "pnm",
        {
            "gray.pgm": lambda: encoded(".pgm"),
            "colour.ppm": lambda: encoded(".ppm", True),
            "text.pgm": lambda: encoded(".pgm", False, 32, 0),  # IMWRITE_PXM_BINARY
        },
    ),
    _images(
        "webp",
        {
            "lossy.webp": lambda: encoded(".webp", True, 64, 50),  # IMWRITE_WEBP_QUALITY
            "lossless.webp": lambda: encoded(".webp", True, 64, 101),
        },
    ),
    _images(
        "tiff",
        {
            "lzw.tif": lambda: encoded(".tif", True),
            "plain.tif": lambda: encoded(".tif", False, 259, 1),  # IMWRITE_TIFF_COMPRESSION
            "deflate.tif": lambda: encoded(".tif", False, 259, 8),
        },
    ),
    _images("jpeg2000", {"colour.jp2": lambda: encoded(".jp2", True)}),
    _in_colour(),
)

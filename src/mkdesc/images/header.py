"""What an image file says of itself before it is decoded: its size, and whether it is whole.

A file of a few kilobytes can unfold to gigabytes of pixels, and OpenCV fills up what is missing
at the end of a truncated file; both are better known beforehand. Formats that are not known here
say nothing and are left to OpenCV.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = ["Header", "read_header"]

#: A TIFF's types of whole numbers.
_TIFF_NUMBERS = {1: "B", 3: "H", 4: "I"}


#: Bytes of one value of its types.
_TIFF_BYTES = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}


class Header(NamedTuple):
    """Width and height in pixels as stored, 0 if unknown; whether the end of the file is there."""

    width: int = 0
    height: int = 0
    whole: bool = True


def read_header(data: bytes) -> Header:
    """The header of an image file.

    Examples
    --------
    >>> read_header(b"P5 640 480 255 ...")
    Header(width=640, height=480, whole=True)
    """
    try:
        for magic, read in _READERS.items():
            if data.startswith(magic):
                return read(data)
    except (struct.error, IndexError, ValueError):  # it ends in the middle of the header
        return Header(whole=False)
    return Header()


def _png(data: bytes) -> Header:
    width, height = struct.unpack_from(">II", data, 16)
    position = 8
    while position < len(data):  # chunks of length, name, content and checksum
        length, name = struct.unpack_from(">I4s", data, position)
        position += 12 + length
        if position > len(data):
            break
        if name == b"IEND":
            return Header(width, height)
    return Header(width, height, whole=False)


def _jpeg(data: bytes) -> Header:
    width = height = 0
    position = 2
    while True:
        if data[position] != 0xFF:
            raise ValueError("no marker where one must be")
        marker = data[position + 1]
        if marker == 0xFF:  # markers may be padded
            position += 1
            continue
        if marker == 0xDA:  # the scan begins: what looks like an end marker from here on is one
            return Header(width, height, data.find(b"\xff\xd9", position) > 0)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, position + 5)
        (length,) = struct.unpack_from(">H", data, position + 2)
        position += 2 + length


def _bmp(data: bytes) -> Header:
    (start,) = struct.unpack_from("<I", data, 10)
    width, height = struct.unpack_from("<ii", data, 18)
    return Header(abs(width), abs(height), len(data) > start)


def _pnm(data: bytes) -> Header:
    words: list[bytes] = []
    for line in data[:4096].split(b"\n"):
        words += line.split(b"#")[0].split()
        if len(words) >= 3:
            return Header(int(words[1]), int(words[2]))
    raise ValueError("no size")


def _webp(data: bytes) -> Header:
    whole = len(data) >= 8 + struct.unpack_from("<I", data, 4)[0]
    kind, length = struct.unpack_from("<4sI", data, 12)
    whole = whole and 20 + length <= len(data)
    if kind == b"VP8X":
        sizes = data[24:27] + b"\0" + data[27:30] + b"\0"
        width, height = struct.unpack("<II", sizes)
        return Header(width + 1, height + 1, whole)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return Header((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, whole)
    width, height = struct.unpack_from("<HH", data, 26)
    return Header(width & 0x3FFF, height & 0x3FFF, whole)


def _tiff(data: bytes) -> Header:
    order = "<" if data.startswith(b"II") else ">"
    (start,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, start)
    found = {}
    for i in range(count):
        tag, kind, size = struct.unpack_from(f"{order}HHI", data, start + 2 + 12 * i)
        if size * _TIFF_BYTES.get(kind, 1) > len(data):
            return Header(whole=False)
        if tag in (256, 257) and kind in _TIFF_NUMBERS:
            value = struct.unpack_from(order + _TIFF_NUMBERS[kind], data, start + 10 + 12 * i)
            found[tag] = int(value[0])
    return Header(found.get(256, 0), found.get(257, 0))


_READERS = {
    b"\x89PNG\r\n\x1a\n": _png,
    b"\xff\xd8\xff": _jpeg,
    b"BM": _bmp,
    b"RIFF": _webp,
    b"II*\0": _tiff,
    b"MM\0*": _tiff,
    **{b"P%d" % i: _pnm for i in range(1, 7)},
}

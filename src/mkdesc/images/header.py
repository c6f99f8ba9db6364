"""What an image file says of itself before it is decoded: its size, and whether it is whole.

A file of a few kilobytes can unfold to gigabytes of pixels, and OpenCV fills up what is missing
at the end of a truncated file; both are better known beforehand. Lengths and offsets in a file are
compared with its own length. Formats that are not known here say nothing and are left to OpenCV.

Of what a JPEG file has compressed only the frame is looked at: its end, markers that may not be
there, restarts out of turn. Bits that were flipped between them are not found.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

#: A TIFF's types of whole numbers.
_TIFF_NUMBERS = {1: "B", 3: "H", 4: "I", 16: "Q"}
#: Bytes of one value of its types.
_TIFF_BYTES = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
#: Its tags of width and height, and of where its strips or tiles are and how long.
_TIFF_SIDES, _TIFF_PIECES = (256, 257), ((273, 279), (324, 325))

#: What is no data of a JPEG's scan; and markers that may stand between and after scans.
_MARKER = re.compile(rb"\xff([^\x00\xff])")  # fifteen times as fast as with \xff+
_BETWEEN = {0xC4, 0xDA, 0xDB, 0xDC, 0xDD, 0xFE, *range(0xE0, 0xF0)}


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
    Header(width=640, height=480, whole=False)
    """
    try:
        for magic, read in _READERS.items():
            if data.startswith(magic):
                return read(data)
    except (struct.error, IndexError, OverflowError, ValueError):  # it ends in the header
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
    width = height = interval = 0
    position = 2
    while True:
        if data[position] != 0xFF:
            raise ValueError("no marker where one must be")
        marker = data[position + 1]
        if marker == 0xFF:  # markers may be padded
            position += 1
            continue
        if marker == 0xD9:
            return Header(width, height)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, position + 5)
        (length,) = struct.unpack_from(">H", data, position + 2)
        if marker == 0xDD:
            (interval,) = struct.unpack_from(">H", data, position + 4)
        position += 2 + length
        if marker == 0xDA:
            position = _end_of_scan(data, position, interval)
            if position < 0:
                return Header(width, height, whole=False)


def _end_of_scan(data: bytes, position: int, interval: int) -> int:
    """Where the marker after the data of a scan is; -1 if there is none that may be there."""
    restarts = 0
    for found in _MARKER.finditer(data, position):
        marker = found[1][0]
        if interval and marker == 0xD0 + restarts % 8:
            restarts += 1
        elif marker in _BETWEEN or marker == 0xD9:
            return found.start()
        else:
            break
    return -1


def _bmp(data: bytes) -> Header:
    start, size = struct.unpack_from("<II", data, 10)
    if size == 12:  # of the first version
        width, height, _, bits, packing = *struct.unpack_from("<HHHH", data, 18), 0
    else:
        width, height, _, bits, packing = struct.unpack_from("<iiHHI", data, 18)
    width, height = abs(width), abs(height)
    plain = packing in (0, 3)  # neither run lengths nor another format inside
    needed = (width * bits + 31) // 32 * 4 * height if plain else 1
    return Header(width, height, len(data) >= start + needed)


def _pnm(data: bytes) -> Header:
    words: list[bytes] = []
    kind = data[1] - ord("0")
    for line in data[:4096].split(b"\n"):
        words += line.split(b"#")[0].split()
        if len(words) >= 4 or (len(words) >= 3 and kind in (1, 4)):
            break
    width, height = int(words[1]), int(words[2])
    if width < 1 or height < 1:
        raise ValueError("no size")
    values = width * height * (3 if kind in (3, 6) else 1)
    if kind in (2, 3):  # numbers with blanks between
        needed = 2 * values - 1
    elif kind == 4:
        needed = (width + 7) // 8 * height
    else:
        needed = values * (2 if kind > 4 and int(words[3]) > 255 else 1)
    return Header(width, height, len(data) >= needed + 7)


def _webp(data: bytes) -> Header:
    (length,) = struct.unpack_from("<I", data, 4)
    position, whole = 12, len(data) >= 8 + length
    while whole and position + 8 <= 8 + length:  # chunks of name, length and content
        position += 8 + struct.unpack_from("<I", data, position + 4)[0]
        whole = position <= len(data)
        position += position % 2
    kind = data[12:16]
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
    big = data[2:4] in (b"+\0", b"\0+")  # 64-bit offsets
    offset, number, step = ("Q", "Q", 20) if big else ("I", "H", 12)
    (start,) = struct.unpack_from(order + offset, data, 8 if big else 4)
    (count,) = struct.unpack_from(order + number, data, start)
    first = start + struct.calcsize(number)
    found: dict[int, tuple[int, ...]] = {}
    for at in range(first, first + step * count, step):
        tag, kind, size = struct.unpack_from(f"{order}HH{offset}", data, at)
        length = size * _TIFF_BYTES.get(kind, 1)
        if length > len(data):
            return Header(whole=False)
        if kind in _TIFF_NUMBERS:
            where = at + step - struct.calcsize(offset)
            if length > struct.calcsize(offset):
                (where,) = struct.unpack_from(order + offset, data, where)
            found[tag] = struct.unpack_from(f"{order}{size}{_TIFF_NUMBERS[kind]}", data, where)
    whole = all(
        begin + length <= len(data)
        for offsets, lengths in _TIFF_PIECES
        for begin, length in zip(found.get(offsets, ()), found.get(lengths, ()), strict=False)
    )
    width, height = (found.get(tag, (0,))[0] for tag in _TIFF_SIDES)
    return Header(width, height, whole)


_READERS = {
    b"\x89PNG\r\n\x1a\n": _png,
    b"\xff\xd8\xff": _jpeg,
    b"BM": _bmp,
    b"RIFF": _webp,
    b"II*\0": _tiff,
    b"MM\0*": _tiff,
    b"II+\0": _tiff,
    b"MM\0+": _tiff,
    **{b"P%d" % i: _pnm for i in range(1, 7)},
}

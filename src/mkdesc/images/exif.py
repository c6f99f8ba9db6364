"""What the EXIF data of a photograph say of its camera."""

from __future__ import annotations

import struct

#: Width of the film that "in 35 mm" means, in millimetres.
_FILM = 36.0
_EXIF_FOLDER, _FOCAL_IN_35MM = 0x8769, 0xA405


def focal_length(data: bytes, longer: int) -> float | None:
    """The focal length in pixels that a JPEG file states, if it does.

    Parameters
    ----------
    data
        Of the file.
    longer
        Pixels of the longer side of the photograph.

    Returns
    -------
    float or None
        From the focal length in terms of 35 mm film; None if there is none.
    """
    try:
        block = _exif_block(data)
        found = None if block is None else _tag(block, _FOCAL_IN_35MM)
    except (struct.error, IndexError):  # it ends in the middle
        return None
    return found * longer / _FILM if found else None


def _exif_block(data: bytes) -> bytes | None:
    """The TIFF inside a JPEG that holds the EXIF data."""
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    position = 2
    while data[position] == 0xFF and data[position + 1] != 0xDA:
        (length,) = struct.unpack_from(">H", data, position + 2)
        if data[position + 1] == 0xE1 and data[position + 4 : position + 10] == b"Exif\0\0":
            return data[position + 10 : position + 2 + length]
        position += 2 + length
    return None


def _tag(block: bytes, wanted: int) -> int | None:
    """A short number out of the folder of EXIF tags."""
    order = "<" if block.startswith(b"II") else ">"
    (start,) = struct.unpack_from(f"{order}I", block, 4)
    inner = _entries(block, order, start).get(_EXIF_FOLDER)
    if inner is None:
        return None
    (offset,) = struct.unpack(f"{order}I", inner)
    value = _entries(block, order, offset).get(wanted)
    return None if value is None else int(struct.unpack_from(f"{order}H", value)[0])


def _entries(block: bytes, order: str, start: int) -> dict[int, bytes]:
    """Tags of a folder and the four bytes of their values."""
    (count,) = struct.unpack_from(f"{order}H", block, start)
    found = {}
    for i in range(count):
        at = start + 2 + 12 * i
        (tag,) = struct.unpack_from(f"{order}H", block, at)
        found[tag] = block[at + 8 : at + 12]
    return found

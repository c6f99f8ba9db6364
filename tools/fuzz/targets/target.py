"""What a target is, and what several need: pictures, and ways to damage what checksums protect."""

from __future__ import annotations

import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Change",
    "Target",
    "as_it_is",
    "encoded",
    "in_archive",
    "png_sums",
    "rng",
    "settings",
    "without_notes",
]

Change = Callable[[bytes], bytes]


def as_it_is(name: str, data: bytes, change: Change) -> bytes:
    """Damage the bytes of the file."""
    return change(data)


@dataclass(frozen=True)
class Target:
    """A reader.

    Attributes
    ----------
    name
        What it reads.
    prepare
        Makes good files in a folder.
    victims
        Names of those that may be damaged.
    read
        Reads them.
    damage
        Called with a name, bytes and what changes bytes: for what checksums protect.
    named
        Whether errors must name the file.
    share
        How many cases it gets, relative to others; slow ones get fewer.
    """

    name: str
    prepare: Callable[[Path], object]
    victims: Sequence[str]
    read: Callable[[Path], object]
    damage: Callable[[str, bytes, Change], bytes] = as_it_is
    named: bool = True
    share: float = 1.0


def rng() -> np.random.Generator:
    """The same numbers each time."""
    return np.random.default_rng(0)


@cache
def _picture(height: int = 60, width: int = 80) -> NDArray[np.uint8]:
    """Something with edges, so that it has keypoints."""
    import cv2

    noise = cv2.GaussianBlur(rng().random((height, width)), (0, 0), 2)
    scaled: NDArray[np.uint8] = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX).astype(
        np.uint8
    )
    return scaled


def encoded(suffix: str, colour: bool = False, *options: int) -> bytes:
    """A small image in the format of a suffix, with options of ``cv2.imencode``."""
    import cv2

    picture = _picture()
    image = (
        np.dstack([picture, picture.T.reshape(picture.shape), 255 - picture])
        if colour
        else picture
    )
    data: bytes = cv2.imencode(suffix, image, list(options))[1].tobytes()
    return data


def png_sums(name: str, data: bytes, change: Change) -> bytes:
    """A damaged PNG file, every second one with the checksums that it claims to have."""
    changed = change(data)
    if zlib.crc32(changed) % 2:
        return changed
    fixed, position = bytearray(changed), 8
    while position + 12 <= len(fixed):
        (length,) = struct.unpack_from(">I", fixed, position)
        end = position + 8 + length
        if end + 4 > len(fixed):
            break
        struct.pack_into(">I", fixed, end, zlib.crc32(fixed[position + 4 : end]))
        position = end + 4
    return bytes(fixed)


def in_archive(name: str, data: bytes, change: Change) -> bytes:
    """A damaged archive: every second one has true checksums around damaged arrays."""
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        members = {member: old.read(member) for member in old.namelist()}
        inner = {member: change(content) for member, content in members.items()}
        if zlib.crc32(b"".join(inner.values())) % 2:
            return change(data)
        for member, content in inner.items():
            new.writestr(member, content)
    return out.getvalue()


@cache
def settings() -> Any:
    """How features of small pictures are made."""
    from mkdesc.features.settings import Settings

    return Settings(max_keypoints=20, model="paper-64", as_stored=True)


@contextmanager
def without_notes() -> Iterator[None]:
    """Without the notes that what was damaged is made again; any other warning is an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*made again")
        yield

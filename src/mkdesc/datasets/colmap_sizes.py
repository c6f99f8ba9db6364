"""Whether COLMAP's binary files have all that they announce.

COLMAP believes the numbers of cameras, images and points in its files, and goes on reading where
a file has ended: for minutes, or until there is no memory left. Here they are counted first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path


class _Bytes:
    """The bytes of a file, gone through from the beginning; struct.error beyond the end."""

    def __init__(self, data: bytes, parameters: Mapping[int, int]) -> None:
        self.data = data
        self.parameters = parameters
        self.at = 0

    def take(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(f"<{layout}", self.data, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return found

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise struct.error


def _camera(file: _Bytes) -> None:
    _, model, _, _ = file.take("IiQQ")
    file.skip(8 * file.parameters.get(model, len(file.data)))


def _image(file: _Bytes) -> None:
    file.skip(64)  # number, pose, number of the camera
    end = file.data.find(b"\0", file.at)
    if end < 0:
        raise struct.error
    file.at = end + 1
    (points,) = file.take("Q")
    file.skip(24 * points)


def _point(file: _Bytes) -> None:
    file.skip(43)  # number, position, colour, error
    (length,) = file.take("Q")
    file.skip(8 * length)


def _rig(file: _Bytes) -> None:
    _, sensors = file.take("II")
    for sensor in range(sensors):
        file.skip(8)  # kind and number
        if sensor:  # the first is where the others' poses are from
            (has_pose,) = file.take("B")
            file.skip(56 * bool(has_pose))


def _frame(file: _Bytes) -> None:
    file.skip(64)  # its number, that of its rig, pose
    (count,) = file.take("I")
    file.skip(16 * count)


_KINDS: dict[str, Callable[[_Bytes], None]] = {
    "cameras.bin": _camera,
    "images.bin": _image,
    "points3D.bin": _point,
    "rigs.bin": _rig,
    "frames.bin": _frame,
}


def check_sizes(folder: Path, parameters: Mapping[int, int]) -> None:
    """Refuse binary files of a model that end before, or after, what they announce.

    Parameters
    ----------
    folder
        Of the model; files that are not there are passed over.
    parameters
        How many numbers a camera has, by COLMAP's numbers of the camera models.
    """
    for name, skip in _KINDS.items():
        path = folder / name
        if not path.is_file():
            continue
        file = _Bytes(path.read_bytes(), parameters)
        try:
            (count,) = file.take("Q")
            if count > len(file.data):
                raise struct.error
            for _ in range(count):
                skip(file)
        except struct.error:
            raise ValueError(f"{path}: damaged, or not a file of COLMAP") from None
        if file.at < len(file.data):
            left = len(file.data) - file.at
            raise ValueError(f"{path}: damaged, {left} bytes more than it announces")

"""Focal lengths out of EXIF data written by hand, as the standard has it."""

import struct

import cv2
import numpy as np
import pytest

from mkdesc.images.exif import focal_length


def jpeg(order, focal):
    """A JPEG whose EXIF data tell a focal length in terms of 35 mm film."""
    mark = b"II" if order == "<" else b"MM"
    inner = struct.pack(f"{order}HHHIHHI", 1, 0xA405, 3, 1, focal, 0, 0)
    outer = struct.pack(f"{order}HHHIII", 1, 0x8769, 4, 1, 26, 0)
    block = mark + struct.pack(f"{order}HI", 42, 8) + outer + inner
    data = cv2.imencode(".jpg", np.zeros((8, 8), np.uint8))[1].tobytes()
    segment = b"Exif\0\0" + block
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + data[2:]


@pytest.mark.parametrize("order", ["<", ">"])
def test_thirty_six_millimetres_are_the_longer_side(order):
    assert focal_length(jpeg(order, 36), 1000) == 1000
    assert focal_length(jpeg(order, 24), 1200) == pytest.approx(800)


def test_files_that_do_not_say():
    plain = cv2.imencode(".jpg", np.zeros((8, 8), np.uint8))[1].tobytes()
    whole = jpeg("<", 36)
    for data in (plain, jpeg("<", 0), b"", b"\xff\xd8\xff", b"\x89PNG", whole[:30]):
        assert focal_length(data, 1000) is None

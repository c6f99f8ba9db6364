"""Files of poses that are damaged are refused by name."""

import cv2
import numpy as np
import pytest

from mkdesc.datasets.poses import read_pose_pairs

IDENTITY = "1 0 0 0 1 0 0 0 1"
POSE = "1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"a.png b.png 0 x {IDENTITY} {IDENTITY} {POSE}".encode(), r"pairs\.txt, line 1: "),
        (f"a.png b.png 0 nan {IDENTITY} {IDENTITY} {POSE}".encode(), r"pairs\.txt, line 1: "),
        (b"\xff\xfe a.png", r"pairs\.txt: not text in UTF-8"),
        (f"{5000 * 'x'} b {IDENTITY} {IDENTITY} {IDENTITY} 1 0 0".encode(), r"^.{,500}no such"),
    ],
)
def test_lists_that_are_none_are_named(tmp_path, content, message):
    (tmp_path / "pairs.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_pose_pairs(tmp_path / "pairs.txt")


NO_CAMERA, NO_ROTATION = r"expected (an invertible matrix|a number)", r"expected a rotation"


@pytest.mark.parametrize(
    ("matrix", "rotation", "message"),
    [
        ("1 0 0 0 1 0 0 0 0", IDENTITY, NO_CAMERA),
        ("1 0 0 0 0 0 0 0 1", IDENTITY, NO_CAMERA),
        ("1 0 0 0 1e300 0 0 0 1", IDENTITY, NO_CAMERA),
        (IDENTITY, "1 0 0 0 1 0 0 0 -1", NO_ROTATION),
        (IDENTITY, "2 0 0 0 2 0 0 0 2", NO_ROTATION),
        (IDENTITY, "1 0 0 0 1e300 0 0 0 1", NO_ROTATION),
    ],
)
def test_numbers_that_are_no_pose_are_named(tmp_path, matrix, rotation, message):
    (tmp_path / "images").mkdir()
    for name in "ab":
        cv2.imwrite(str(tmp_path / f"images/{name}.png"), np.zeros((24, 32), np.uint8))
    (tmp_path / "pairs.txt").write_text(f"a.png b.png {IDENTITY} {matrix} {rotation} 1 0 0")
    with pytest.raises(ValueError, match=rf"pairs\.txt, line 1: {message}"):
        read_pose_pairs(tmp_path / "pairs.txt")
    (tmp_path / "cameras").mkdir()
    for name in "ab":
        text = f"{matrix} 0 0 0 {rotation} 0 0 0 32 24"
        (tmp_path / f"cameras/{name}.png.camera").write_text(text)
    with pytest.raises(ValueError, match=rf"a\.png\.camera: {message}"):
        read_pose_pairs(tmp_path)


@pytest.mark.parametrize(
    ("size", "image", "message"),
    [
        ("0 240", None, r"a\.png\.camera: expected a width and a height"),
        ("320 240", b"nothing", r"images/a\.png: "),
    ],
)
def test_cameras_that_cannot_be_are_named(tmp_path, size, image, message):
    for part in ("images", "cameras"):
        (tmp_path / part).mkdir()
    for name in ("a.png", "b.png"):
        cv2.imwrite(str(tmp_path / "images" / name), np.zeros((24, 32), np.uint8))
        text = f"{IDENTITY} 0 0 0 {IDENTITY} 0 0 0 {size}"
        (tmp_path / "cameras" / f"{name}.camera").write_text(text)
    if image is not None:
        (tmp_path / "images/a.png").write_bytes(image)
    with pytest.raises(ValueError, match=message):
        read_pose_pairs(tmp_path)


def test_pairs_of_imc_that_are_none_are_named(tmp_path):
    for part in ("calibration", "images", "new-vis-pairs"):
        (tmp_path / part).mkdir()
    no_text = np.array([[ord("a"), ord("-"), 0x110000]], np.uint32).view("U3")
    for listed in (np.array(["a-b-c"]), np.arange(3), np.array("a"), no_text):
        np.save(tmp_path / "new-vis-pairs/keys-th-0.1.npy", listed)
        with pytest.raises(ValueError, match=r"keys-th-0\.1\.npy: not a list of pairs"):
            read_pose_pairs(tmp_path)


def test_the_message_of_a_nested_header_is_short(tmp_path):
    for part in ("calibration", "images", "new-vis-pairs"):
        (tmp_path / part).mkdir()
    header = (b'{"a":' * 1600)[:8000]
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (tmp_path / "new-vis-pairs/keys-th-0.1.npy").write_bytes(content)
    with pytest.raises(ValueError, match="not a list of pairs") as refused:
        read_pose_pairs(tmp_path)
    assert len(str(refused.value)) < 500

"""Reading photographs: Pillow gives what OpenCV does."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from mkdesc.images.gray import as_gray
from mkdesc.images.reading import _by_opencv, _by_pillow, read_gray


@pytest.fixture(scope="module")
def colours():
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3)).astype(np.float32)
    smooth = cv2.GaussianBlur(noise, (0, 0), 3)
    return cv2.normalize(smooth, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)


def save(path, colours, **how):
    Image.fromarray(colours).save(path, **how)
    return path.read_bytes()


def assert_same(data, within, as_stored=False):
    mine, theirs = (decode(data, as_stored) for decode in (_by_pillow, _by_opencv))
    assert mine is not None
    assert theirs is not None
    assert mine.shape == theirs.shape
    assert mine.dtype == theirs.dtype == np.uint8
    assert np.abs(mine.astype(int) - theirs).max() <= within


@pytest.mark.parametrize(("suffix", "within"), [(".png", 1), (".bmp", 1), (".tif", 1)])
def test_colours(colours, tmp_path, suffix, within):
    assert_same(save(tmp_path / f"a{suffix}", colours), within)


def test_gray_and_jpeg(colours, tmp_path):
    assert_same(save(tmp_path / "a.png", colours[..., 0].copy()), 0)
    # OpenCV takes the luminance that the file has, Pillow that of the colours, which are rounded.
    assert_same(save(tmp_path / "a.jpg", colours, quality=95), 3)
    assert_same(save(tmp_path / "gray.jpg", colours[..., 0].copy(), quality=95), 1)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientations(colours, tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = save(tmp_path / "a.jpg", colours, exif=exif, quality=95)
    assert_same(data, 3)
    assert_same(data, 3, as_stored=True)
    turned = _by_pillow(data, as_stored=False)
    assert (turned.shape == (80, 60)) == (orientation >= 5)


def test_what_is_no_image():
    assert _by_pillow(b"nothing of the kind", False) is None


@pytest.mark.parametrize("rgb", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_gray_of_colours_is_opencvs(colours, rgb, dtype):
    scale = {np.uint8: 1, np.uint16: 257, np.float32: 1 / 255}[dtype]
    picture = (colours.astype(np.float64) * scale).astype(dtype)
    expected = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY if rgb else cv2.COLOR_BGR2GRAY)
    found = as_gray(picture, rgb)
    assert found.dtype == expected.dtype
    level = 1e-5 if dtype == np.float32 else 1
    assert np.abs(found.astype(float) - expected).max() <= level


def test_devices_are_not_read():
    """They have no end."""
    if not Path("/dev/zero").is_char_device():
        pytest.skip("has no such device")
    with pytest.raises(ValueError, match=r"^/dev/zero: is a device, expected a photograph"):
        read_gray("/dev/zero")

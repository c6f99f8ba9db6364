"""Photographs with all that their files hold, beside OpenCV."""

from io import BytesIO

import cv2
import numpy as np
import pytest
from PIL import Image

from mkdesc.images.pixels import as_bytes, as_rgb, encode_png, read_pixels


def noise(channels, dtype, shape=(17, 23)):
    high = np.iinfo(dtype).max + 1
    found = np.random.default_rng(0).integers(0, high, (*shape, channels), dtype=dtype)
    return found[..., 0] if channels == 1 else found


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize(
    ("ending", "options"),
    [
        (".png", []),
        *((".tif", [cv2.IMWRITE_TIFF_COMPRESSION, kind]) for kind in (1, 5, 8)),  # none, LZW, zip
    ],
)
def test_files_of_opencv_are_read_to_the_last_bit(tmp_path, channels, dtype, ending, options):
    image = noise(channels, dtype)
    file = tmp_path / f"a{ending}"
    assert cv2.imwrite(str(file), image, options)
    found = read_pixels(file)
    assert found.values.dtype == dtype
    assert np.array_equal(found.values, image)
    assert found.profile is None


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_what_is_written_is_read_again(tmp_path, channels, dtype):
    image = noise(channels, dtype)
    file = tmp_path / "a.png"
    file.write_bytes(encode_png(image, b"a profile"))
    found = read_pixels(file)
    assert found.values.dtype == dtype
    assert np.array_equal(found.values, image)
    assert found.profile == b"a profile"


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_opencv_reads_what_is_written(channels, dtype):
    image = noise(channels, dtype)
    data = np.frombuffer(encode_png(image), np.uint8)
    assert np.array_equal(cv2.imdecode(data, cv2.IMREAD_UNCHANGED), image)


def test_pillow_reads_gray_with_opacity():
    image = noise(2, np.uint8)
    assert np.array_equal(np.asarray(Image.open(BytesIO(encode_png(image)))), image)


def test_palettes_are_made_colours_and_their_transparency_opacity(tmp_path):
    colours = Image.fromarray(noise(3, np.uint8)).quantize(16)
    colours.save(tmp_path / "opaque.png")
    colours.save(tmp_path / "clear.png", transparency=3)
    opaque, clear = (read_pixels(tmp_path / f"{name}.png").values for name in ("opaque", "clear"))
    rgb = np.asarray(colours.convert("RGB"))
    assert np.array_equal(opaque[..., ::-1], rgb)
    assert np.array_equal(clear[..., 3] == 0, np.asarray(colours) == 3)
    assert np.array_equal(clear[..., 2::-1], rgb)


def test_photographs_are_turned_as_their_exif_data_say(tmp_path):
    image = Image.fromarray(noise(3, np.uint8))
    exif = Image.Exif()
    exif[274] = 6  # a quarter turn clockwise
    image.save(tmp_path / "a.png", exif=exif)
    expected = np.rot90(np.asarray(image), -1)
    assert np.array_equal(read_pixels(tmp_path / "a.png").values[..., ::-1], expected)


def test_bitmaps_and_printers_colours_are_read(tmp_path):
    Image.fromarray(noise(1, np.uint8) > 127).save(tmp_path / "a.png")
    assert np.unique(read_pixels(tmp_path / "a.png").values).tolist() == [0, 255]
    Image.new("CMYK", (9, 8), (0, 255, 255, 0)).save(tmp_path / "a.jpg")
    assert read_pixels(tmp_path / "a.jpg").values[0, 0].argmax() == 2  # red


@pytest.mark.parametrize("data", [b"", b"nothing", b"\x89PNG\r\n\x1a\n broken"])
def test_what_is_no_image_is_named(tmp_path, data):
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.png: cannot be read in colour: "):
        read_pixels(tmp_path / "a.png")


def test_truncated_files_are_refused(tmp_path):
    whole = encode_png(noise(3, np.uint16, (99, 99)))
    (tmp_path / "a.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"a\.png: cannot be read in colour: "):
        read_pixels(tmp_path / "a.png")


def test_depths_become_bytes():
    assert as_bytes(np.array([[0, 255, 256, 65535]], np.uint16)).tolist() == [[0, 0, 1, 255]]
    assert as_bytes(np.array([[-1.0, 0.5, 2]])).tolist() == [[0, 128, 255]]
    for channels in (1, 2, 3, 4):
        assert as_rgb(noise(channels, np.uint16)).shape == (17, 23, 3)

"""Reading photographs: the pixels are OpenCV's; what is damaged or far too large is refused."""

import os
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from mkdesc.images.gray import as_gray
from mkdesc.images.reading import image_size, in_colour, read_gray

FORMATS = [".png", ".jpg", ".bmp", ".ppm", ".webp", ".tif", ".jp2"]


@pytest.fixture(scope="module")
def colours():
    """Red first."""
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3)).astype(np.float32)
    smooth = cv2.GaussianBlur(noise, (0, 0), 3)
    return cv2.normalize(smooth, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)


def encoded(suffix, image, *options):
    return cv2.imencode(suffix, image, options)[1].tobytes()


def save(path, image, **how):
    Image.fromarray(image).save(path, **how)
    return path


def assert_same(file, within):
    mine, theirs = read_gray(file), cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
    assert mine.shape == theirs.shape
    assert mine.dtype == np.uint8
    assert mine.flags.writeable
    assert np.abs(mine.astype(int) - theirs).max() <= within


@pytest.mark.parametrize("suffix", FORMATS)
def test_colours_are_mixed_as_opencv_does(colours, tmp_path, suffix):
    file = tmp_path / f"a{suffix}"
    file.write_bytes(encoded(suffix, colours))
    assert_same(file, 1)
    gray = read_gray(file)
    np.testing.assert_array_equal(in_colour(gray, file), cv2.imread(str(file)))


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".pgm", ".tif", ".jp2", ".jpg"])
def test_gray_images_are_as_they_are(colours, tmp_path, suffix):
    file = tmp_path / f"a{suffix}"
    file.write_bytes(encoded(suffix, colours[..., 0].copy()))
    assert_same(file, 0)


def test_the_luminance_of_a_jpeg_is_the_one_in_the_file(colours, tmp_path):
    """Not that of its colours, which were rounded."""
    for quality in (60, 95):
        assert_same(save(tmp_path / "a.jpg", colours, quality=quality), 0)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_of_sixteen_bits_the_upper_eight_are_taken(colours, tmp_path, suffix):
    file = tmp_path / f"a{suffix}"
    deep = colours[..., 0].astype(np.uint16) * 257 - 100 * (colours[..., 0] > 0)
    file.write_bytes(encoded(suffix, deep.astype(np.uint16)))
    np.testing.assert_array_equal(read_gray(file), deep >> 8)
    assert in_colour(read_gray(file), file).ndim == 2


def test_floats_are_from_zero_to_one(colours, tmp_path):
    file = tmp_path / "a.tif"
    gray = colours[..., 0].astype(np.float32)
    file.write_bytes(encoded(".tif", gray / 255))
    np.testing.assert_array_equal(read_gray(file), colours[..., 0])
    file.write_bytes(encoded(".tif", gray))
    with pytest.raises(ValueError, match=r"a\.tif: .*floats must be from 0 to 1"):
        read_gray(file)


def test_colours_below_transparent_pixels_count(colours, tmp_path):
    opaque = read_gray(save(tmp_path / "opaque.png", colours))
    clear = np.dstack([colours, np.zeros(colours.shape[:2], np.uint8)])
    np.testing.assert_array_equal(read_gray(save(tmp_path / "clear.png", clear)), opaque)
    palette = Image.fromarray(colours).quantize(64)
    palette.save(tmp_path / "palette.png", transparency=bytes(64))
    expected = as_gray(np.asarray(palette.convert("RGB")), rgb=True)
    found = read_gray(tmp_path / "palette.png").astype(int)
    assert np.abs(found - expected).max() <= 1


def test_inks(colours, tmp_path):
    Image.fromarray(colours).convert("CMYK").save(tmp_path / "a.jpg", quality=95)
    assert_same(tmp_path / "a.jpg", 3)


#: What EXIF's numbers ask for, by numpy: from the picture as stored to the one as seen.
SEEN = {
    1: lambda stored: stored,
    2: np.fliplr,
    3: lambda stored: np.rot90(stored, 2),
    4: np.flipud,
    5: np.transpose,
    6: lambda stored: np.rot90(stored, -1),
    7: lambda stored: np.rot90(stored, 2).T,
    8: np.rot90,
}


@pytest.mark.parametrize("number", SEEN)
@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_photographs_are_turned_as_their_exif_data_say(tmp_path, number, suffix):
    # Smooth, so that JPEG changes little, and like none of its mirror images.
    stored = np.add.outer(4 * np.arange(40), 1.5 * np.arange(56)).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = number
    file = save(tmp_path / f"turned{suffix}", stored, exif=exif, quality=95)
    seen = SEEN[number](stored).astype(int)
    np.testing.assert_allclose(read_gray(file), seen, atol=4)
    assert in_colour(read_gray(file), file).ndim == 3
    np.testing.assert_allclose(read_gray(file, as_stored=True), stored.astype(int), atol=4)
    assert image_size(file) == (56, 40)


def test_tags_that_are_damaged_are_no_matter_and_nothing_is_printed(colours, tmp_path, capfd):
    """Here warnings are errors."""
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "made by nobody in particular"
    data = save(tmp_path / "a.jpg", colours, exif=exif).read_bytes()
    tag = data.index(bytes([1, 0x0F]))
    for place, value in ((tag + 4, 0x7F), (tag + 8, 0x7F), (tag + 2, 0x63)):
        changed = bytearray(data)
        changed[place] = value
        (tmp_path / "b.jpg").write_bytes(changed)
        assert read_gray(tmp_path / "b.jpg").size == 60 * 80
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("share", [0.01, 0.1, 0.6, 0.95])
def test_truncated_files_are_refused(tmp_path, colours, suffix, share):
    data = encoded(suffix, colours)
    file = tmp_path / f"cut{suffix}"
    file.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ValueError, match=r"^[^\n]*cut\.\w+: (truncated|empty)[^\n]*$"):
        read_gray(file)


def test_only_the_header_is_needed_for_the_size(tmp_path, colours):
    file = tmp_path / "cut.jpg"
    file.write_bytes(encoded(".jpg", colours)[:700])
    assert image_size(file) == (80, 60)
    file.write_bytes(b"hello")
    with pytest.raises(ValueError, match=r"cut\.jpg: not an image of a known format"):
        image_size(file)


def test_empty_and_foreign_files(tmp_path):
    foreign = (b"", b"hello", b"\x89PNG", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    for content in foreign:
        (tmp_path / "x.png").write_bytes(content)
        with pytest.raises(ValueError, match=r"x\.png: .*not an image"):
            read_gray(tmp_path / "x.png")


def test_large_images_are_refused_before_they_are_decoded(tmp_path, colours):
    file = tmp_path / "bomb.png"
    good = encoded(".png", colours)
    image = Image.new("1", (15_000, 15_000))
    image.save(file, optimize=True)
    assert file.stat().st_size < 100_000  # it is whole, and would take a gigabyte in a detector
    with pytest.raises(ValueError, match=r"bomb\.png: 15000 x 15000 px in \d+ bytes: damaged"):
        read_gray(file)
    image = Image.new("L", (17_000, 17_000))
    image.save(file)
    with pytest.raises(ValueError, match=r"17000 x 17000 px, expected at most 250,000,000"):
        read_gray(file)
    file.write_bytes(good)
    assert read_gray(file, max_pixels=60 * 80).shape == (60, 80)
    with pytest.raises(ValueError, match="raise the limit with max_pixels"):
        read_gray(file, max_pixels=60 * 80 - 1)


#: A short file of each format that claims to be large, within the limit of pixels.
def claims(suffix, data):
    side, changed = 15_000, bytearray(data)
    if suffix == ".jpg":
        at = data.index(b"\xff\xc0") + 5
        changed[at : at + 4] = side.to_bytes(2, "big") * 2
    elif suffix == ".bmp":
        changed[18:26] = side.to_bytes(4, "little") * 2
    elif suffix == ".ppm":
        changed = data.replace(b"80 60", b"15000 15000")
    elif suffix == ".webp":  # lossless: width and height less one, 14 bits each
        rest = int.from_bytes(data[21:25], "little") >> 28 << 28
        changed[21:25] = (rest | (side - 1) | (side - 1) << 14).to_bytes(4, "little")
    else:
        for tag in (256, 257):
            entry = data.index(tag.to_bytes(2, "little"), int.from_bytes(data[4:8], "little"))
            changed[entry + 8 : entry + 10] = side.to_bytes(2, "little")
    return bytes(changed)


@pytest.mark.parametrize("suffix", [".jpg", ".bmp", ".ppm", ".webp", ".tif"])
def test_small_files_do_not_unfold_to_much(tmp_path, colours, suffix):
    file = tmp_path / f"claims{suffix}"
    file.write_bytes(claims(suffix, encoded(suffix, colours, cv2.IMWRITE_WEBP_QUALITY, 101)))
    with pytest.raises(ValueError, match=r"claims\.\w+: .*damaged"):
        read_gray(file)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".jpg", ".tif", ".pgm"])
def test_large_empty_images_can_be_read(tmp_path, suffix):
    """A black image of this side, as small as a file of it can be."""
    file = tmp_path / f"black{suffix}"
    file.write_bytes(encoded(suffix, np.zeros((4000, 4000), np.uint8)))
    assert not read_gray(file).any()


def test_pieces_larger_than_the_file_are_refused(tmp_path, colours):
    """A decoder would make room for all of what a few bytes promise."""
    data = encoded(".png", colours)
    text = (0xFFFFFFFF).to_bytes(4, "big") + b"tEXt" + b"hello"
    (tmp_path / "large.png").write_bytes(data[:33] + text + data[33:])
    webp = bytearray(encoded(".webp", colours))
    webp[16:20] = (0xFFFFFFF0).to_bytes(4, "little")
    (tmp_path / "large.webp").write_bytes(webp)
    for suffix in (".png", ".webp"):
        with pytest.raises(ValueError, match=rf"large{suffix}: truncated"):
            read_gray(tmp_path / f"large{suffix}")


def test_strips_beyond_the_end_of_a_tiff_are_refused(tmp_path, colours):
    data = encoded(".tif", colours, cv2.IMWRITE_TIFF_COMPRESSION, 1)
    entry = data.index((273).to_bytes(2, "little"), int.from_bytes(data[4:8], "little"))
    changed = bytearray(data)
    changed[entry + 8 : entry + 12] = (len(data) + 1).to_bytes(4, "little")
    (tmp_path / "beyond.tif").write_bytes(changed)
    with pytest.raises(ValueError, match=r"beyond\.tif: truncated"):
        read_gray(tmp_path / "beyond.tif")


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


def test_devices_and_pipes_are_not_read(tmp_path):
    """They have no end, or none for now."""
    if not Path("/dev/zero").is_char_device():
        pytest.skip("has no such device")
    os.mkfifo(tmp_path / "pipe.png")
    for path in ("/dev/zero", tmp_path / "pipe.png"):
        with pytest.raises(ValueError, match=f"^{path}: is a device or a pipe, expected a photo"):
            read_gray(path)

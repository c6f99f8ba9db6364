"""Sizes from headers against what the encoder was given; truncation where it matters."""

import cv2
import numpy as np
import pytest

from mkdesc.images.header import read_header
from mkdesc.images.reading import read_gray


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 256, (37, 53, 3), np.uint8)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".ppm", ".webp", ".tif"])
def test_every_format_tells_its_size(image, suffix):
    data = cv2.imencode(suffix, image)[1].tobytes()
    assert read_header(data) == (53, 37, True)


def test_lossless_webp(image):
    data = cv2.imencode(".webp", image, [cv2.IMWRITE_WEBP_QUALITY, 101])[1].tobytes()
    assert read_header(data) == (53, 37, True)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".ppm", ".webp", ".tif"])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.6, 0.95])
def test_truncated_files_are_refused(tmp_path, image, suffix, share):
    data = cv2.imencode(suffix, image)[1].tobytes()
    file = tmp_path / f"cut{suffix}"
    file.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ValueError, match=r"cut\.\w+: (truncated|not an image)"):
        read_gray(file)


def test_an_embedded_thumbnail_does_not_count_as_the_end(image):
    data = cv2.imencode(".jpg", image)[1].tobytes()
    thumbnail = cv2.imencode(".jpg", image[:8, :8])[1].tobytes()
    segment = b"\xff\xe1" + (2 + len(thumbnail)).to_bytes(2, "big") + thumbnail
    assert read_header(data[:2] + segment + data[2:]) == (53, 37, True)
    assert not read_header(data[:2] + segment + data[2:-20]).whole


def test_bombs_are_refused_before_they_are_decoded(tmp_path, image):
    file = tmp_path / "bomb.png"
    data = bytearray(cv2.imencode(".png", image)[1].tobytes())
    data[16:24] = (60_000).to_bytes(4, "big") * 2
    file.write_bytes(data)
    with pytest.raises(ValueError, match=r"60000 x 60000 px, expected at most 250,000,000"):
        read_gray(file)
    good = tmp_path / "good.png"
    good.write_bytes(cv2.imencode(".png", image)[1].tobytes())
    assert read_gray(good, max_pixels=37 * 53).shape == (37, 53)
    with pytest.raises(ValueError, match="max_pixels raises the limit"):
        read_gray(good, max_pixels=37 * 53 - 1)


def test_empty_and_foreign_files(tmp_path):
    for content, message in ((b"", "empty"), (b"hello", "not an image"), (b"\x89PNG", "not an")):
        (tmp_path / "x.png").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_gray(tmp_path / "x.png")


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
def test_photographs_are_turned_as_their_exif_data_say(tmp_path, number):
    from PIL import Image

    # Smooth, so that JPEG changes little, and like none of its mirror images.
    stored = np.add.outer(4 * np.arange(40), 1.5 * np.arange(56)).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = number
    Image.fromarray(stored).save(tmp_path / "turned.jpg", exif=exif, quality=95)
    seen = SEEN[number](stored).astype(int)
    np.testing.assert_allclose(read_gray(tmp_path / "turned.jpg"), seen, atol=4)
    as_stored = read_gray(tmp_path / "turned.jpg", as_stored=True)
    np.testing.assert_allclose(as_stored, stored.astype(int), atol=4)


def test_pieces_larger_than_the_file_are_refused(tmp_path, image):
    """A decoder would make room for all of what a few bytes promise."""
    data = cv2.imencode(".png", image)[1].tobytes()
    text = (0xFFFFFFFF).to_bytes(4, "big") + b"tEXt" + b"hello"
    file = tmp_path / "large.png"
    file.write_bytes(data[:33] + text + data[33:])
    with pytest.raises(ValueError, match=r"large\.png: truncated"):
        read_gray(file)
    webp = bytearray(cv2.imencode(".webp", image)[1].tobytes())
    webp[16:20] = (0xFFFFFFF0).to_bytes(4, "little")
    assert not read_header(bytes(webp)).whole


def test_offsets_beyond_a_tiff_are_refused(image):
    data = bytearray(cv2.imencode(".tif", image)[1].tobytes())
    start = int.from_bytes(data[4:8], "little")
    for entry in range(int.from_bytes(data[start : start + 2], "little")):
        at = start + 2 + 12 * entry
        if int.from_bytes(data[at : at + 2], "little") == 279:  # bytes of a strip
            data[at + 4 : at + 8] = (0x7FFFFFFF).to_bytes(4, "little")  # how many strips
    assert not read_header(bytes(data)).whole

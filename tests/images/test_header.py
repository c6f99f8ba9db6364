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
    with pytest.raises(ValueError, match="raise the limit with max_pixels"):
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


#: A short file of each format that claims to be large, within the limit of pixels.
def claims(suffix, data):
    side, changed = 15_000, bytearray(data)
    if suffix == ".jpg":
        at = data.index(b"\xff\xc0") + 5
        changed[at : at + 4] = side.to_bytes(2, "big") * 2
    elif suffix == ".bmp":
        changed[18:26] = side.to_bytes(4, "little") * 2
    elif suffix == ".ppm":
        changed = data.replace(b"53 37", b"15000 15000")
    elif suffix == ".webp":  # lossless: width and height less one, 14 bits each
        rest = int.from_bytes(data[21:25], "little") >> 28 << 28
        changed[21:25] = (rest | (side - 1) | (side - 1) << 14).to_bytes(4, "little")
    else:
        for tag in (256, 257):
            entry = data.index(tag.to_bytes(2, "little"), int.from_bytes(data[4:8], "little"))
            changed[entry + 8 : entry + 10] = side.to_bytes(2, "little")
    return bytes(changed)


@pytest.mark.parametrize("suffix", [".jpg", ".bmp", ".ppm", ".webp", ".tif"])
def test_small_files_do_not_unfold_to_much(tmp_path, image, suffix):
    """Refused before OpenCV makes room for a gigabyte."""
    data = cv2.imencode(suffix, image, [cv2.IMWRITE_WEBP_QUALITY, 101])[1].tobytes()
    file = tmp_path / f"claims{suffix}"
    file.write_bytes(claims(suffix, data))
    assert read_header(file.read_bytes())[:2] == (15_000, 15_000)
    with pytest.raises(ValueError, match=r"claims\.\w+: .*damaged"):
        read_gray(file)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".jpg", ".tif", ".pgm"])
def test_large_empty_images_can_be_read(tmp_path, suffix):
    """A black image of the same side, as small as a file of it can be."""
    file = tmp_path / f"black{suffix}"
    file.write_bytes(cv2.imencode(suffix, np.zeros((4000, 4000), np.uint8))[1].tobytes())
    assert not read_gray(file).any()


def test_jpeg_data_that_cannot_be_is_refused(tmp_path, image):
    """OpenCV makes something gray of each of these, without an error."""
    picture = cv2.resize(image, (300, 200))
    plain = cv2.imencode(".jpg", picture)[1].tobytes()
    restarts = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_RST_INTERVAL, 3])[1].tobytes()
    scans = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])[1].tobytes()
    middle = len(plain) // 2
    second = restarts.index(b"\xff\xd1")
    for name, data in {
        "marker": plain[:middle] + b"\xff\x02" + plain[middle + 2 :],
        "restart": plain[:middle] + b"\xff\xd0" + plain[middle + 2 :],
        "missing": restarts[:second] + restarts[restarts.index(b"\xff\xd2") :],
    }.items():
        assert cv2.imdecode(np.frombuffer(data, np.uint8), 0) is not None
        (tmp_path / f"{name}.jpg").write_bytes(data)
        with pytest.raises(ValueError, match=rf"{name}\.jpg: truncated or damaged"):
            read_gray(tmp_path / f"{name}.jpg")
    for data in (plain, restarts, scans, plain + b"what cameras put after the end"):
        assert read_header(data) == (300, 200, True)


def test_strips_beyond_the_end_of_a_tiff_are_refused(image):
    data = cv2.imencode(".tif", image)[1].tobytes()
    start = int.from_bytes(data[4:8], "little")
    entry = data.index((273).to_bytes(2, "little"), start)  # where strips are
    changed = bytearray(data)
    changed[entry + 8 : entry + 12] = (len(data) + 1).to_bytes(4, "little")
    assert read_header(data).whole
    assert not read_header(bytes(changed)).whole


def test_real_photographs_are_whole(shared):
    for file in sorted((shared / "data").rglob("*.*")):
        if file.suffix in (".jpg", ".png", ".ppm", ".bmp", ".pgm"):
            assert read_header(file.read_bytes()).whole, file

"""Sizes from headers against what the encoder was given; truncation where it matters."""

import cv2
import numpy as np
import pytest

from mkdesc.images.header import read_header
from mkdesc.images.reading import find_images, read_gray


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


def test_orientation_can_be_left_alone(tmp_path, image):
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    Image.fromarray(image).save(tmp_path / "turned.jpg", exif=exif)
    assert read_gray(tmp_path / "turned.jpg").shape == (53, 37)
    assert read_gray(tmp_path / "turned.jpg", as_stored=True).shape == (37, 53)


def test_images_are_found_by_unique_names(tmp_path):
    for name in ("b/x.jpg", "a.PNG", "c/x.jpg", "c/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert list(find_images([tmp_path])) == ["a.PNG", "b/x.jpg", "c/x.jpg"]
    assert list(find_images([tmp_path / "a.PNG", tmp_path / "b"])) == ["a.PNG", "x.jpg"]
    with pytest.raises(
        ValueError, match=r"b/x\.jpg and .*c/x\.jpg: two images of the name x\.jpg"
    ):
        find_images([tmp_path / "b", tmp_path / "c" / "x.jpg"])
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match=r"none: no images \(\.jpg"):
        find_images([tmp_path / "none"])
    with pytest.raises(FileNotFoundError, match="gone does not exist"):
        find_images([tmp_path / "gone"])

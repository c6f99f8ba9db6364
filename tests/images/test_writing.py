"""Files that others read as what was written."""

import cv2
import numpy as np
import pytest

from mkdesc.images.writing import OWN_PICTURE, encode_image, encode_picture


@pytest.mark.parametrize("suffix", [".png", ".bmp"])
def test_opencv_reads_the_same(rng, suffix):
    for shape in ((20, 31), (20, 31, 3)):
        image = rng.integers(0, 256, shape, np.uint8)
        data = np.frombuffer(encode_image(suffix, image), np.uint8)
        np.testing.assert_array_equal(cv2.imdecode(data, cv2.IMREAD_UNCHANGED), image)


def test_jpeg_files_are_of_a_quality(rng):
    image = cv2.GaussianBlur(rng.integers(0, 256, (90, 120, 3), np.uint8), (0, 0), 4)
    files = [encode_image(".jpg", image, quality) for quality in (40, 95)]
    assert 2 * len(files[0]) < len(files[1])
    read = cv2.imdecode(np.frombuffer(files[1], np.uint8), cv2.IMREAD_COLOR)
    assert np.abs(read - image.astype(int)).mean() < 1.5


def test_pictures_are_told_from_photographs(rng):
    image = rng.integers(0, 256, (90, 120, 3), np.uint8)
    for suffix in (".png", ".jpg", ".jpeg"):
        assert OWN_PICTURE in encode_picture(suffix, image)[:4096]
        assert OWN_PICTURE not in encode_image(suffix, image)


def test_other_formats_are_refused():
    with pytest.raises(ValueError, match=r"expected one of \.png, \.jpg, \.jpeg, \.bmp, got '.gi"):
        encode_image(".gif", np.zeros((4, 4), np.uint8))

"""One photograph laid over another: what comes out, and files of it."""

import cv2
import numpy as np
import pytest
from PIL import Image

import mkdesc
from mkdesc.features.alignment import check_outputs
from mkdesc.images.writing import OWN_PICTURE

MATRIX = np.array([[0.95, 0.1, 60], [-0.1, 1, 70], [1e-4, 0, 1]])


@pytest.fixture(scope="module")
def colours(texture):
    """The second photograph in colour, 16 bits; three textures, the green one alone is gray."""
    return np.stack([texture(k).astype(np.uint16) * 257 for k in (1, 0, 2)], axis=-1)


@pytest.fixture(scope="module")
def first(colours):
    """What the first one shows, 16 bits."""
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    return cv2.warpPerspective(colours, MATRIX, (380, 280), flags=flags)


@pytest.fixture(scope="module")
def features():
    return mkdesc.Features(800)


@pytest.fixture(scope="module")
def found(first, colours, features):
    return mkdesc.align(first, colours, features)


@pytest.fixture
def files(tmp_path, first, colours):
    for name, image in (("a", first), ("b", colours)):
        assert cv2.imwrite(str(tmp_path / f"{name}.png"), image)
    return tmp_path


def inner(seen):
    return cv2.erode(seen.astype(np.uint8), np.ones((9, 9))) > 0


def test_it_looks_as_the_first_one_in_all_bits(found, first):
    assert found.by == "homography"
    assert found.image.dtype == np.uint16
    assert found.image.shape == first.shape
    assert 0.5 < found.seen.mean() < 0.95
    off = np.abs(found.image.astype(int) - first)[inner(found.seen)]
    assert np.median(off) < 100  # of 65,535: finer than 8 bits could be
    assert not found.image[~found.seen].any()
    assert found.summary().startswith("aligned by homography, ")


def test_by_the_field_it_looks_the_same(first, colours, features):
    found = mkdesc.align(first, colours, features, by="flow")
    assert found.by == "flow"
    off = np.abs(found.image.astype(int) - first)[inner(found.seen)]
    assert np.mean(off) < 600
    assert found.seen.mean() > 0.5


def test_files_and_arrays_give_the_same(files, found, features):
    other = mkdesc.align(files / "a.png", files / "b.png", features)
    off = np.abs(other.image.astype(int) - found.image)[inner(found.seen)]
    assert np.median(off) < 100  # gray values were rounded in another way
    assert np.mean(other.seen == found.seen) > 0.999


def test_png_files_have_16_bits_and_are_transparent_where_nothing_was_seen(tmp_path, found):
    found.save(tmp_path / "out.png")
    image = cv2.imread(str(tmp_path / "out.png"), cv2.IMREAD_UNCHANGED)
    assert image.dtype == np.uint16
    assert np.array_equal(image[..., :3], found.image)
    assert np.array_equal(image[..., 3], np.where(found.seen, 65535, 0))


def test_jpeg_files_are_white_there(tmp_path, found):
    found.save(tmp_path / "out.jpg")
    image = cv2.imread(str(tmp_path / "out.jpg"))
    far = cv2.dilate(found.seen.astype(np.uint8), np.ones((17, 17))) == 0
    assert far.any()
    assert image[far].min() > 245
    off = np.abs(image.astype(int) - (found.image >> 8))[inner(found.seen)]
    assert off.mean() < 6


def test_the_animation_shows_both(tmp_path, found, first):
    found.save_blink(tmp_path / "out.gif")
    assert OWN_PICTURE in (tmp_path / "out.gif").read_bytes()[:4096]
    with Image.open(tmp_path / "out.gif") as animation:
        assert animation.n_frames == 2
        frames = []
        for number in range(2):
            animation.seek(number)
            frames.append(np.asarray(animation.convert("RGB")).astype(int))
    gray, other = (frame.mean(axis=2) for frame in frames)
    assert np.abs(gray - (first >> 8).mean(axis=2)).mean() < 12
    assert np.abs(gray - other)[inner(found.seen)].mean() < 6
    assert other[~found.seen].min() > 90  # paler: of black 130, but for the palette


def test_the_difference_is_what_has_changed(tmp_path, texture, features):
    second = texture(0)
    first = (second * 0.6 + 30).astype(np.uint8)  # less light: no difference
    first[100:140, 200:260] = texture(8)[:40, :60] // 2 + 40
    found = mkdesc.align(first, second, features)
    difference = found.difference()
    assert difference[105:135, 205:255].mean() > 10 * difference[20:80, 20:180].mean()
    assert difference[20:80, 20:180].max() < 25
    found.save_difference(tmp_path / "out.png")
    image = np.asarray(Image.open(tmp_path / "out.png"))
    assert np.array_equal(image[..., 0], np.where(found.seen, difference, 0))
    assert np.array_equal(image[..., 1] == 255, found.seen)


def test_floats_stay_floats_and_files_of_them_have_16_bits(tmp_path, first, colours, features):
    found = mkdesc.align(first / 65535, (colours / 65535).astype(np.float32), features)
    assert found.image.dtype == np.float32
    assert found.image.max() <= 1
    found.save(tmp_path / "out.png")
    image = cv2.imread(str(tmp_path / "out.png"), cv2.IMREAD_UNCHANGED)
    assert np.abs(image[..., :3] / 65535 - found.image)[found.seen].max() < 1e-4


def test_opacity_of_the_photograph_stays(tmp_path, first, colours, features):
    opacity = np.full((*colours.shape[:2], 1), 40_000, np.uint16)
    opacity[:150] = 0
    found = mkdesc.align(first, np.concatenate([colours, opacity], axis=2), features)
    found.save(tmp_path / "out.png")
    image = cv2.imread(str(tmp_path / "out.png"), cv2.IMREAD_UNCHANGED)
    assert np.array_equal(image[..., 3] > 0, found.seen)
    assert 0.2 < found.seen.mean() < 0.6
    assert np.median(image[..., 3][found.seen]) == 40_000


def test_colour_profiles_stay(files, features):
    pixels = Image.fromarray((cv2.imread(str(files / "b.png"))[..., ::-1]).copy())
    pixels.save(files / "c.png", icc_profile=b"a profile")
    found = mkdesc.align(files / "a.png", files / "c.png", features)
    for name in ("out.png", "out.jpg"):
        found.save(files / name)
        with Image.open(files / name) as image:
            assert image.info["icc_profile"] == b"a profile"


def test_of_different_scenes_nothing_is_seen_and_nothing_is_written(tmp_path, texture, features):
    found = mkdesc.align(texture(0), texture(5), features)
    assert found.by is None
    assert not found.seen.any()
    assert not found.image.any()
    assert found.image.shape == (300, 400)
    for save in (found.save, found.save_difference):
        with pytest.raises(ValueError, match=r"not aligned: .* none verified"):
            save(tmp_path / "out.png")
    with pytest.raises(ValueError, match="not aligned: "):
        found.save_blink(tmp_path / "out.gif")
    assert not list(tmp_path.iterdir())
    assert not found.difference().any()


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 300), (300, 1), (5, 7), (16, 16), (300, 400), (300, 400, 3)]
)
def test_tiny_and_blank_photographs_are_not_aligned(texture, features, shape):
    blank = np.full(shape, 90, np.uint8)
    for pair in ((blank, texture(0)), (texture(0), blank), (blank, blank)):
        found = mkdesc.align(*pair, features)
        assert found.by is None
        assert found.image.shape[:2] == pair[0].shape[:2]


def test_what_is_no_number_is_refused(texture, features):
    image = texture(0) / 255
    image[3, 4] = np.nan
    for pair in ((image, texture(0)), (texture(0), image)):
        with pytest.raises(ValueError, match="image: has NaN"):
            mkdesc.align(*pair, features)
    with pytest.raises(ValueError, match=r"by: .*got 'x'"):
        mkdesc.align(texture(0), texture(0), by="x")
    with pytest.raises(ValueError, match="grid: expected an integer from 2 to 10000"):
        mkdesc.align(texture(0), texture(0), grid=0)


def test_outputs_are_checked(files, features):
    with pytest.raises(ValueError, match=r"a\.bmp: expected a name ending in \.png"):
        check_outputs(files / "a.bmp")
    with pytest.raises(ValueError, match=r"d\.jpg: expected a name ending in \.png"):
        check_outputs(None, difference=files / "d.jpg")
    with pytest.raises(ValueError, match="is named for two outputs"):
        check_outputs(files / "c.png", difference=files / "c.png")
    found = mkdesc.align(files / "a.png", files / "b.png", features)
    for name in ("a.png", "b.png"):
        with pytest.raises(ValueError, match="is an input and would be overwritten"):
            found.save(files / name, overwrite=True)
    (files / "diary.gif").write_text("Dear diary")
    with pytest.raises(FileExistsError, match="another kind of file"):
        found.save_blink(files / "diary.gif")
    found.save_blink(files / "diary.gif", overwrite=True)
    found.save_blink(files / "diary.gif")  # its own
    with pytest.raises(FileNotFoundError):
        found.save(files / "nowhere" / "a.png")

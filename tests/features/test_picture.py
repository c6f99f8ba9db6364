"""The picture of a photograph's keypoints: what it shows, and what it is not written over."""

import cv2
import numpy as np
import pytest

from mkdesc.features import Settings
from mkdesc.features.picture import save_keypoints
from mkdesc.images.demo import write_demo


@pytest.fixture
def photographs(tmp_path):
    write_demo(tmp_path / "demo")
    return tmp_path / "demo"


def test_circles_are_where_opencv_finds_keypoints(photographs, tmp_path):
    street = photographs / "street_a.jpg"
    found = save_keypoints([street], tmp_path / "out.png", settings=Settings("sift", 100))
    photograph = cv2.imread(str(street))
    sift = cv2.SIFT_create(100, enable_precise_upscale=True)
    expected = {one.pt for one in sift.detect(cv2.imread(str(street), cv2.IMREAD_GRAYSCALE))}
    seen = {tuple(place) for place in np.float32(found.points[:, :2]).tolist()}
    assert len(seen & expected) > 0.9 * len(expected)
    picture = cv2.imread(str(tmp_path / "out.png"))[44:]
    height, width = picture.shape[:2]
    plain = cv2.resize(photograph, (width, height), interpolation=cv2.INTER_CUBIC)
    changed = np.abs(picture.astype(int) - plain).max(axis=2) > 60
    near = np.zeros_like(changed, np.uint8)
    for x, y, sigma, _ in found.points * (width / photograph.shape[1]):
        cv2.circle(near, (round(x), round(y)), round(3 * sigma) + 4, 1, -1)
    assert changed.sum() > 3000
    assert not (
        changed & (near == 0)
    ).any()  # a colour photograph, and nothing but keypoints on it


@pytest.mark.parametrize(
    ("sources", "output", "said"),
    [
        ([""], "out.jpg", "a picture shows the keypoints of one photograph, got 27"),
        (["street_a.jpg"], "out.gif", "expected a name ending in .png, .jpg, .jpeg"),
        (["street_a.jpg"], "demo/street_a.jpg", "is an input and would be overwritten"),
    ],
)
def test_what_cannot_be_drawn_is_refused(photographs, tmp_path, sources, output, said):
    before = (photographs / "street_a.jpg").read_bytes()
    with pytest.raises(ValueError, match=said):
        save_keypoints([photographs / name for name in sources], tmp_path / output)
    assert (photographs / "street_a.jpg").read_bytes() == before
    assert not (tmp_path / "out.jpg").exists()


def test_the_command_draws_and_draws_again(photographs, tmp_path, run):
    picture = tmp_path / "keypoints.jpg"
    for number in ("200", "100"):
        options = ("--keypoints", number, "--detector", "sift", "-o", str(picture))
        done = run("features", str(photographs / "street_a.jpg"), *options)
        assert done.stdout == f"{number} keypoints\nwritten: {picture}\n"
    assert cv2.imread(str(picture)).shape[1] == 1000
    other = run("features", str(photographs / "town_a.jpg"), "-o", str(photographs / "town_b.jpg"))
    assert other.returncode == 2
    assert "is another kind of file" in other.stderr

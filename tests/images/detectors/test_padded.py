"""The learned detector for batches of images, by PyTorch on any device: as the compiled one."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.places import one_per_place
from mkdesc.images.detectors.registry import make_detector

torch = pytest.importorskip("torch")

from mkdesc.images.detectors.padded_torch import choose_first, one_a_place  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def detect(detector, images, device, masks=None):
    with torch.inference_mode():
        found = detector.detect_padded(
            torch.from_numpy(np.ascontiguousarray(images)).to(device),
            None if masks is None else torch.from_numpy(masks).to(device),
        )
    assert len(found.counts) == len(images)
    kept = []
    for points, scores, count in zip(*(each.cpu().numpy() for each in found), strict=True):
        assert not points[count:].any()
        assert not scores[count:].any()
        kept.append(Keypoints(points[:count], scores[:count]))
    return kept


def assert_alike(found, expected, share=0.99):
    """As many of them are where one of the other is, within 0.1 px, of its size and angle."""
    assert abs(len(found) - len(expected)) <= (1 - share) * len(expected)
    for some, others in ((found, expected), (expected, found)):
        away, which = cKDTree(others.points[:, :3]).query(some.points[:, :3])
        turned = (some.points[:, 3] - others.points[which, 3] + 180) % 360 - 180
        assert np.mean(away < 0.1) >= share
        assert np.mean((away < 0.1) & (np.abs(turned) < 2)) >= share - 0.02


@pytest.mark.parametrize("device", DEVICES)
def test_batches_have_the_keypoints_of_each_image(image, device):
    images = np.stack([image, image[:, ::-1], 255 - image])
    detector = make_detector("learned", max_keypoints=150)
    for found, one in zip(detect(detector, images, device), images, strict=True):
        expected = detector.detect(np.ascontiguousarray(one)).strongest(150)
        assert len(expected) > 100
        assert_alike(found, expected)
        assert (np.diff(found.scores) <= 0).all()
        np.testing.assert_allclose(found.scores[:50], expected.scores[:50], rtol=1e-3, atol=1e-3)


def test_images_that_go_in_several_batches(image, monkeypatch):
    images = np.stack([image, image[::-1], image[:, ::-1]])[:, :90, :110]
    detector = make_detector("learned", max_keypoints=40)
    at_once = detect(detector, images, "cpu")
    monkeypatch.setattr("mkdesc.images.detectors.learned_padded_torch.MOST_AT_ONCE", 2 * 90 * 110)
    masks = np.ones(images.shape, np.uint8)
    for one, other in zip(detect(detector, images, "cpu", masks), at_once, strict=True):
        np.testing.assert_allclose(one.points, other.points, atol=1e-4)


def test_masks(image):
    masks = np.zeros((2, *image.shape), bool)
    masks[0, 40:120, 50:150] = True
    shown, hidden = detect(
        make_detector("learned", max_keypoints=500), np.stack([image] * 2), "cpu", masks
    )
    assert len(hidden) == 0
    assert len(shown) > 20
    x, y = (shown.points[:, :2] + 0.5).astype(int).T
    assert masks[0, y, x].mean() > 0.97
    expected = make_detector("learned", max_keypoints=500).detect(image, masks[0].view(np.uint8))
    assert_alike(shown, expected, 0.97)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (14, 40), (15, 15), (33, 121)])
def test_tiny_and_blank_images(shape, rng):
    detector = make_detector("learned", max_keypoints=10)
    picture = rng.integers(0, 256, shape, np.uint8)
    found, blank = detect(detector, np.stack([picture, np.full(shape, 7, np.uint8)]), "cpu")
    assert len(blank) == 0
    assert len(found) == len(detector.detect(picture).strongest(10))
    assert detect(detector, np.empty((0, *shape), np.uint8), "cpu") == []


def test_upright_ones_have_no_angle(image):
    (found,) = detect(make_detector("learned", max_keypoints=9, upright=True), image[None], "cpu")
    assert len(found) == 9
    assert not found.points[:, 3].any()


def test_a_number_of_keypoints_is_needed(image):
    with pytest.raises(ValueError, match="max_keypoints: expected a number on a device"):
        detect(make_detector("learned"), image[None], "cpu")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [1, 70, 400])
def test_one_keypoint_a_place_as_by_compiled_code(rng, count, device):
    """Crowded, so that what one drops would have dropped others."""
    xy = rng.uniform(0, 60, (2, count, 2)).astype(np.float32)
    radius = rng.choice(np.float32([1.5, 2, 4]), (2, count))
    there = np.arange(count) < np.array([[count], [count * 2 // 3]])
    tensors = (xy[..., 0], xy[..., 1], radius, there)
    kept = one_a_place(*(torch.from_numpy(each).to(device) for each in tensors)).cpu().numpy()
    for k in range(2):
        n = there[k].sum()
        points = np.column_stack([xy[k, :n], np.ones(n), np.arange(n)])
        every = Keypoints(points, -np.arange(n))
        expected = one_per_place(every, radius[k, :n].astype(np.float64)).points[:, 3].astype(int)
        assert np.flatnonzero(kept[k]).tolist() == expected.tolist()


def test_the_first_that_are_kept(rng):
    kept = rng.random((3, 20)) < [[0.5], [0.1], [0]]
    places, counts = choose_first(torch.from_numpy(kept), 6)
    for row, place, count in zip(kept, places.numpy(), counts.numpy(), strict=True):
        assert place[:count].tolist() == np.flatnonzero(row)[:6].tolist()

"""Photographs to features on a device, against the same on the CPU."""

import cv2
import numpy as np
import pytest

from mkdesc import MKD, Features, load_model
from mkdesc.features.folder import extract_features
from mkdesc.features.image_features import load_features
from mkdesc.features.settings import Settings
from mkdesc.images.listing import find_images

torch = pytest.importorskip("torch")

from mkdesc.features import files_on_device  # noqa: E402
from mkdesc.torch import Features as Module  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def picture(shape, seed=0):
    noise = np.random.default_rng(seed).integers(0, 256, shape).astype(np.float32)
    return cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2), None, 0, 255, 32).astype(np.uint8)


def assert_alike(points, descriptors, expected, least=0.99):
    keypoints, wanted = expected
    away = np.linalg.norm(points[:, None, :2] - keypoints.points[None, :, :2], axis=2)
    which, near = away.argmin(1), away.min(1) < 0.1
    assert len(points) == len(keypoints)
    assert near.mean() >= 0.99
    cosine = (descriptors * wanted[which]).sum(1)[near]
    assert np.quantile(cosine, 0.03) > least


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", ["photo", "photo-net"])
def test_the_same_features_as_on_the_cpu(model, device):
    images = np.stack([picture((150, 200), seed) for seed in range(2)])
    found = Module(max_keypoints=100, model=model).to(device)(
        torch.from_numpy(images)[:, None].to(device)
    )
    for k, image in enumerate(images):
        points, scores, descriptors = (each.cpu().numpy() for each in found.of(k))
        expected = Features(100, model=model).extract(image)
        assert_alike(points, descriptors, expected)
        np.testing.assert_allclose(scores[:9], expected[0].scores[:9], rtol=1e-3)
    assert not found.descriptors[:, 100:].any()


@pytest.mark.parametrize("device", DEVICES)
def test_features_of_arrays_on_a_device(device):
    image = picture((120, 160))
    for given in (image, image.astype(np.uint16) * 257, image.astype(np.float32) / 255):
        expected = Features(50).extract(given)
        keypoints, descriptors = Features(50, device=device).extract(given)
        assert_alike(keypoints.points, descriptors, expected)
    mask = np.zeros(image.shape, bool)
    mask[:60] = True
    keypoints, _ = Features(50, device=device).extract(image, mask)
    assert len(keypoints) > 10
    assert keypoints.points[:, 1].max() < 60
    with pytest.raises(ValueError, match="image: has values from 0 to 510"):
        Features(50, device=device).extract(2 * image.astype(np.float32))


@pytest.mark.parametrize("device", ["cpu:0", *DEVICES[1:]])
def test_other_detectors_find_on_the_cpu_what_is_described_on_a_device(device):
    """(``"cpu:0"`` is PyTorch's, while ``"cpu"`` is for the compiled code.)"""
    image = picture((120, 160))
    for output in ("float32", "uint8"):
        expected, wanted = Features("dog", 50, output=output).extract(image)
        features = Features("dog", 50, output=output, device=device)
        keypoints, descriptors = features.extract(image)
        assert features.on_device() is None
        assert features.mkd.backend == "torch"
        np.testing.assert_array_equal(keypoints.points, expected.points)
        assert descriptors.dtype == wanted.dtype
        assert np.abs(descriptors.astype(float) - wanted).max() <= (
            1 if output == "uint8" else 2e-3
        )


def test_several_squares_and_bytes():
    mkd = MKD("extended", 32, side=(14, 40))
    image = picture((120, 160))
    expected = Features(40, model=mkd, upright=True).extract(image)
    points, _, descriptors = Module(max_keypoints=40, model=mkd, upright=True).extract(
        [torch.from_numpy(image)]
    )[0]
    assert not points[:, 3].any()
    # Squares of 40 sigma go far beyond the picture, where gradients are mere rounding.
    assert_alike(points.numpy(), descriptors.numpy() / 2, expected, least=0.9)
    for output in ("int8", "uint8"):
        wanted = Features(40, output=output).extract(image)[1]
        found = Module(max_keypoints=40, output=output).extract([torch.from_numpy(image)])[0][2]
        assert found.numpy().dtype == wanted.dtype
        assert np.mean(np.abs(found.numpy().astype(int) - wanted) <= 1) > 0.98
    wanted = Features(40, output="bits").extract(image)[1]
    found = Module(max_keypoints=40, output="bits").extract([torch.from_numpy(image)])[0][2]
    assert np.mean(np.unpackbits(found.numpy()) == np.unpackbits(wanted)) > 0.99


def test_images_of_several_sizes(monkeypatch):
    shapes = [(60, 80), (50, 50), (60, 80), (9, 9), (60, 80)]
    images = [torch.from_numpy(picture(shape, seed)) for seed, shape in enumerate(shapes)]
    module = Module(max_keypoints=15)
    monkeypatch.setattr("mkdesc.features.features_torch.BATCH", 2)
    found = module.extract(images)
    assert [len(points) for points, _, _ in found] == [15, 15, 15, 0, 15]
    for image, (points, _, descriptors) in zip(images, found, strict=True):
        alone = module(image[None]).of(0)
        np.testing.assert_allclose(points, alone[0], atol=1e-3)
        np.testing.assert_allclose(descriptors, alone[2], atol=2e-2)


def test_what_cannot_be_on_a_device():
    with pytest.raises(ValueError, match="detector: expected learned"):
        Module("dog")
    with pytest.raises(ValueError, match="max_keypoints"):
        Module(max_keypoints=0)
    with pytest.raises(ValueError, match="side: expected 2 for this model"):
        Module(side=(10, 20, 30))
    module = Module(max_keypoints=5)
    for shape in ((2, 3, 20, 20), (20, 20), (1, 0, 5)):
        with pytest.raises(ValueError, match=r"images: expected \(B, 1, H, W\)"):
            module(torch.zeros(shape))
    with pytest.raises(ValueError, match=r"images: expected uint8 or floats, got torch\.int32"):
        module(torch.zeros((1, 20, 20), dtype=torch.int32))
    with pytest.raises(ValueError, match="masks: expected the shape of the images"):
        module(torch.zeros((1, 20, 20)), torch.zeros((1, 20, 21)))


@pytest.mark.parametrize("device", DEVICES)
def test_folders_of_photographs(tmp_path, device, monkeypatch):
    """Batches that fill up, sizes that wait, and files that cannot be read."""
    monkeypatch.setattr(files_on_device, "BATCH", 2)
    monkeypatch.setattr(files_on_device, "WAITING", 3)
    for number in range(9):
        shape = [(70, 90), (64, 64), (80, 60)][number % 4 % 3]
        cv2.imwrite(str(tmp_path / f"{number}.png"), picture(shape, number))
    (tmp_path / "bad.jpg").write_bytes(b"nothing")
    images, settings = find_images([tmp_path]), Settings(max_keypoints=12)
    told = []
    found = extract_features(
        images,
        tmp_path / "device",
        settings=settings,
        workers=2,
        device=device,
        progress=lambda *progress: told.append(progress),
    )
    wanted = extract_features(images, tmp_path / "cpu", settings=settings, workers=1)
    assert found == wanted
    assert list(found.bad) == ["bad.jpg"]
    assert told[-1] == ("describing", 10, 10)
    for name in found.done:
        one, other = (
            load_features(tmp_path / "device", name),
            load_features(tmp_path / "cpu", name),
        )
        assert one.image_size.tolist() == other.image_size.tolist()
        assert str(one.source) == str(other.source)
        np.testing.assert_allclose(one.keypoints, other.keypoints, atol=0.02)
        assert (one.descriptors * other.descriptors).sum(1).min() > 0.999
    again = extract_features(
        images, tmp_path / "device", settings=settings, workers=2, device=device
    )
    assert again.kept == found.done


def test_models_say_the_same(rng):
    """A module made of a model by its name, or of the model itself."""
    image = torch.from_numpy(picture((60, 80)))[None]
    one = Module(max_keypoints=5, model="photo")(image)
    other = Module(max_keypoints=5, model=load_model("photo"))(image)
    assert torch.equal(one.descriptors, other.descriptors)

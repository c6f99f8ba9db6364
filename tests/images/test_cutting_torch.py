"""Patches cut by PyTorch against those that compiled code cuts, and kornia's."""

import numpy as np
import pytest
import torch

from mkdesc.images import cutting
from mkdesc.images.cutting_torch import cut_squares
from mkdesc.images.frames import affine_frames, frames_from_points
from mkdesc.torch import MKDescriptor, cut_patches


@pytest.fixture
def image(rng):
    coarse = rng.random((30, 40))
    rows = np.linspace(0, 29, 240)
    columns = np.linspace(0, 39, 320)
    smooth = np.stack([np.interp(columns, np.arange(40), line) for line in coarse])
    smooth = np.stack([np.interp(rows, np.arange(30), line) for line in smooth.T]).T
    return (255 * smooth).astype(np.uint8)


@pytest.fixture
def points(rng):
    """Finer and far coarser than the image, turned, some beyond its border."""
    x, y, angle = rng.uniform(-5, 320, 40), rng.uniform(-5, 240, 40), rng.uniform(0, 360, 40)
    return np.column_stack([x, y, np.geomspace(0.5, 40, 40), angle])


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_the_same_patches_as_compiled_code(image, points, interpolation, dtype):
    image = image.astype(dtype)
    expected = cutting.cut_patches(image, points, 32, interpolation=interpolation)
    found = cut_patches(torch.from_numpy(image), points, 32, interpolation=interpolation)
    assert found.dtype == (torch.uint8 if dtype == np.uint8 else torch.float32)
    difference = np.abs(found.numpy().astype(float) - expected)
    # A value in the middle between two integers may be rounded to either.
    assert difference.max() <= (1 if dtype == np.uint8 else 0.01)
    assert difference.mean() < 1e-3


@pytest.mark.parametrize("side", [12.0, 31.0])
def test_squares_of_many_images(image, points, side):
    images = np.stack([image, image[::-1], 255 - image]).astype(np.float32)
    which = np.arange(40) % 3
    found = cut_squares(
        torch.from_numpy(images), torch.from_numpy(which), torch.from_numpy(points), 24, side
    )
    for number, picture in enumerate(images):
        mine = which == number
        expected = cutting.cut_patches(picture, points[mine], 24, side, interpolation="linear")
        np.testing.assert_allclose(found[mine], expected, atol=0.05)
    none = cut_squares(torch.from_numpy(images), torch.empty(0).long(), torch.empty(0, 4), 24, 9.0)
    assert none.shape == (0, 24, 24)


def test_slanted_and_projective_frames(image, points):
    frames = frames_from_points(points[:20])
    frames[:, :, 0] *= 3  # a long axis
    frames = np.concatenate([frames, np.tile([[[0, 0, 1.0]]], (20, 1, 1))], axis=1)
    frames[::2, 2, 0] = 0.2
    expected = cutting.cut_patches(image, frames, 24, interpolation="linear")
    found = cut_patches(torch.from_numpy(image)[None], torch.from_numpy(frames), 24)
    assert np.abs(found.numpy().astype(int) - expected).max() <= 1


def test_no_frames_and_wrong_images(image):
    assert cut_patches(torch.from_numpy(image), np.empty((0, 4))).shape == (0, 64, 64)
    for bad in (torch.zeros(3, 20, 20), torch.zeros(20)):
        with pytest.raises(ValueError, match=r"image: expected \(H, W\)"):
            cut_patches(bad, [[5, 5, 1, 0]])
    with pytest.raises(ValueError, match="uint8 or floats"):
        cut_patches(torch.zeros(20, 20, dtype=torch.int32), [[5, 5, 1, 0]])


def test_kornias_frames_and_patches_are_ours(image, points):
    """LAFs are affine frames: same centres, axes and directions."""
    feature = pytest.importorskip("kornia.feature")
    inner = points[(points[:, 2] > 2.5) & (points[:, 2] < 4)].copy()
    inner[:, :2] = np.clip(inner[:, :2], 60, 170)
    assert len(inner) > 2
    frames = affine_frames(frames_from_points(inner))
    tensor = torch.from_numpy(image)
    ours = cut_patches(tensor.float() / 255, frames, 32)
    lafs = torch.from_numpy(frames).float()[None]
    theirs = feature.extract_patches_simple(tensor.float()[None, None] / 255, lafs, 32)[0, :, 0]
    assert (ours - theirs).abs().mean() < 0.01
    descriptor = MKDescriptor("extended")
    same = torch.cosine_similarity(descriptor(ours), descriptor(theirs))
    turned = torch.cosine_similarity(descriptor(ours), descriptor(theirs.transpose(1, 2)))
    assert same.min() > 0.95 > turned.max()


def test_several_squares_agree(image, points):
    expected = cutting.cut_patches(image, points, 24, (9, 25), interpolation="linear")
    found = cut_patches(torch.from_numpy(image), points, 24, (9, 25)).numpy()
    assert found.shape == expected.shape == (len(points), 2, 24, 24)
    assert np.abs(found.astype(int) - expected).max() <= 1

"""Where kornia takes a patch descriptor it takes this one."""

import pytest
import torch

from mkdesc.torch import MKDescriptor

feature = pytest.importorskip("kornia.feature")


@pytest.mark.parametrize(("model", "size"), [("extended", 32), ("paper", 64)])
def test_descriptors_of_lafs(model, size):
    torch.manual_seed(0)
    image = torch.rand(2, 1, 90, 120)
    centres = torch.tensor([[[40.0, 30.0], [60.0, 50.0], [80.0, 45.0]]]).repeat(2, 1, 1)
    lafs = feature.laf_from_center_scale_ori(centres, torch.full((2, 3, 1, 1), 15.0))
    descriptor = MKDescriptor(model)
    found = feature.LAFDescriptor(descriptor, patch_size=size)(image, lafs)
    assert found.shape == (2, 3, 128)
    patches = feature.extract_patches_from_pyramid(image, lafs, size)
    torch.testing.assert_close(found[1], descriptor(patches[1]), atol=1e-5, rtol=0)


def test_the_raw_descriptor_is_kornias(shared):
    """Kornia's MKDDescriptor follows the authors too; the numbers are the same, in its order."""
    import numpy as np

    patches = np.load(shared / "golden/mkd_pytorch_64px.npz")["patches"][:6]
    tensor = torch.from_numpy(patches)[:, None].float() / 255
    ours = MKDescriptor(parametrization="polar+cartesian")(tensor)
    theirs = feature.MKDDescriptor(64, whitening=None)(tensor)
    torch.testing.assert_close(ours @ ours.T, theirs @ theirs.T, atol=1e-3, rtol=0)

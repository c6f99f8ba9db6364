"""Devices that compute nothing, or something else."""

import pytest
import torch

from mkdesc.torch import MKDescriptor


def test_meta_gives_shapes():
    descriptor = MKDescriptor("extended").to("meta")
    described = descriptor(torch.empty((5, 1, 64, 64), device="meta"))
    assert (described.shape, described.device.type) == ((5, 128), "meta")


def test_patches_elsewhere_are_refused():
    descriptor = MKDescriptor("extended").to("meta")
    with pytest.raises(ValueError, match=r"patches: expected them on meta, .* got cpu"):
        descriptor(torch.zeros((5, 1, 64, 64)))

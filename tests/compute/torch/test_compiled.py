"""The module on a CPU without gradients: the compiled loops, to the last bit."""

import copy

import numpy as np
import pytest
import torch

from mkdesc import MKD, load_model
from mkdesc.evaluation.speed import textured_patches
from mkdesc.torch import MKDescriptor


@pytest.mark.parametrize("name", ["paper-32px", "photo", "extended-net"])
def test_the_numbers_of_the_compiled_loops(name):
    mkd = load_model(name)
    patches = textured_patches(300, mkd.patch_size)
    if mkd.squares > 1:
        patches = patches.reshape(-1, mkd.squares, *patches.shape[1:])
    for these in (patches, patches.astype(np.float32) / 255):
        found = MKDescriptor(name)(torch.from_numpy(these))
        np.testing.assert_array_equal(found.numpy(), mkd.transform(these))
        assert found.dtype == torch.float32


def test_several_squares():
    mkd = MKD("cartesian", 16, side=(14, 40))
    patches = textured_patches(10, 16).reshape(5, 2, 16, 16)
    found = MKDescriptor(mkd)(torch.from_numpy(patches))
    np.testing.assert_array_equal(found.numpy(), mkd.transform(patches))


def test_heads_that_change_are_seen():
    patches = torch.from_numpy(textured_patches(4, 32))
    descriptor = MKDescriptor("paper-32px")
    before = descriptor(patches)
    with torch.no_grad():
        descriptor.head[2].weight[0] *= -1
    after = descriptor(patches)
    torch.testing.assert_close(after[:, 0], -before[:, 0])
    plain = copy.deepcopy(descriptor)
    plain.fused = False
    torch.testing.assert_close(after, plain(patches), atol=1e-5, rtol=0)
    with torch.inference_mode():
        made_there = MKDescriptor("paper-32px")
        torch.testing.assert_close(made_there(patches), before)
        made_there.head[2].weight[0] *= -1
        torch.testing.assert_close(made_there(patches), after)


def test_gradients_and_what_loops_do_not_take_go_through_plain_operations():
    torch.manual_seed(0)
    patches = torch.rand(3, 32, 32, requires_grad=True)
    descriptor = MKDescriptor("paper-32px")
    descriptor(patches).sum().backward()
    assert patches.grad.abs().sum() > 0
    with torch.no_grad():
        loops = descriptor(patches)
    torch.testing.assert_close(descriptor(patches).detach(), loops, atol=1e-5, rtol=0)
    assert MKDescriptor("paper-32px").double()(patches.detach()).dtype == torch.float64
    bad = torch.full((2, 32, 32), torch.nan)
    assert MKDescriptor("paper-32px")(bad).isnan().any()
    own = MKDescriptor("paper-32px")
    own.head.append(torch.nn.Tanh())
    torch.testing.assert_close(own(patches.detach()), loops.tanh(), atol=1e-5, rtol=0)
    whole = (255 * patches.detach()).byte()
    batched = torch.func.vmap(descriptor)(whole[:, None])
    torch.testing.assert_close(batched[:, 0], descriptor(whole), atol=1e-5, rtol=0)

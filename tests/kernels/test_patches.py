import numpy as np
import pytest
from PIL import Image

import mkdesc
from mkdesc.kernels.patches import as_patches, plain_block, resize_patches


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((8, 8), (1, 8, 8)),
        ((3, 8, 8), (3, 8, 8)),
        ((3, 1, 9, 9), (3, 9, 9)),
        ((0, 8, 8), (0, 8, 8)),
    ],
)
def test_shapes(shape, expected):
    assert as_patches(np.zeros(shape, np.float32)).shape == expected


@pytest.mark.parametrize("shape", [(), (8,), (8, 9), (2, 8, 9), (2, 3, 8, 8), (1, 1, 1, 8, 8)])
def test_bad_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"patches: expected \(N, W, W\)"):
        as_patches(np.zeros(shape, np.float32))


@pytest.mark.parametrize("shape", [(7, 7), (2, 0, 0)])
def test_small_patches_are_refused(shape):
    with pytest.raises(ValueError, match="at least 8 px"):
        as_patches(np.zeros(shape, np.float32))


@pytest.mark.parametrize("dtype", [complex, object, bool, np.int64, np.float16, "U1"])
def test_bad_types_are_refused(dtype):
    with pytest.raises(ValueError, match="patches: expected uint8, uint16, float32, float64"):
        as_patches(np.zeros((2, 8, 8), dtype))


def test_float64_keeps_small_differences_on_a_large_offset(rng):
    patch = rng.random((1, 8, 8))
    block, scale = plain_block(patch + 2.0**24)
    assert scale == 1
    np.testing.assert_allclose(block, patch - patch[:, :1, :1], atol=1e-6)


@pytest.mark.parametrize(("old", "new"), [(65, 64), (65, 32), (64, 32), (33, 64), (17, 90)])
def test_resizing_is_pillows(rng, old, new):
    patch = rng.random((old, old)).astype(np.float32)
    expected = Image.fromarray(patch).resize((new, new), Image.Resampling.BILINEAR)
    np.testing.assert_allclose(resize_patches(patch, new)[0], np.asarray(expected), atol=1e-5)


@pytest.mark.parametrize("dtype", [">u2", ">f4", ">f8"])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_the_order_of_bytes_does_not_matter(rng, dtype, backend):
    numbers = 10_000 + 200 * rng.random((3, 64, 64))
    patches = (numbers if dtype == ">u2" else numbers / 10_200).astype(
        np.dtype(dtype).newbyteorder("=")
    )
    mkd = mkdesc.MKD("extended", backend=backend)
    np.testing.assert_array_equal(mkd.transform(patches.astype(dtype)), mkd.transform(patches))


def test_large_numbers_are_not_called_infinite():
    patches = np.zeros((3, 8, 8))
    patches[1, 0, 0], patches[1, 3, 3] = -3.3e38, 3.3e38
    with pytest.raises(ValueError, match=r"^patches\[1\] has numbers that differ by more than"):
        plain_block(patches)
    patches[1, 3, 3] = np.nan
    with pytest.raises(ValueError, match=r"^patches\[1\] has NaN or infinity"):
        plain_block(patches)

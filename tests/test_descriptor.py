import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import mkdesc
from mkdesc import MKD
from mkdesc.descriptor import CHUNK
from mkdesc.heads.head import L2, Affine, Head, Power, Relu
from mkdesc.heads.whitening import Whitening, linear_head
from mkdesc.models import load_model


@pytest.fixture(scope="module")
def whitening():
    raw = np.random.default_rng(1).normal(size=(3000, 238))
    return Whitening("pcawt", 100, power=0.75).fit(raw)


@pytest.fixture
def patches(rng):
    return rng.integers(0, 256, (5, 16, 16), np.uint8)


@pytest.fixture
def mkd():
    return MKD(patch_size=16)


def test_unit_vectors_of_float32(mkd, patches):
    found = mkd.transform(patches)
    assert found.shape == (5, 238)
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("whitened", [False, True])
@pytest.mark.parametrize("resize", [False, True])
def test_no_patches(backend, whitened, resize, whitening):
    mkd = MKD(patch_size=16, backend=backend, resize=resize)
    mkd.set_params(whitening=whitening if whitened else None)
    none = mkd.transform(np.empty((0, 20 if resize else 16, 20 if resize else 16)))
    assert none.shape == (0, 100 if whitened else 238)


def test_every_way_to_pass_the_same_patches(mkd, patches, tmp_path):
    expected = mkd.transform(patches)
    read_only = patches.copy()
    read_only.flags.writeable = False
    np.save(tmp_path / "patches.npy", patches)
    wide = np.repeat(patches, 2, axis=2)
    same = {
        "channel": patches[:, None],
        "read-only": read_only,
        "memory-mapped": np.load(tmp_path / "patches.npy", mmap_mode="r"),
        "strided": wide[:, :, ::2],
        "fortran": np.asfortranarray(patches),
        "list": list(patches),
        "reversed twice": patches[::-1][::-1],
        "byte order": patches.astype(">u2") * np.uint16(257),
    }
    for name, array in same.items():
        np.testing.assert_allclose(mkd.transform(array), expected, atol=1e-6, err_msg=name)
    for i, patch in enumerate(patches):
        np.testing.assert_array_equal(mkd.transform(patch), expected[i : i + 1])


def test_integers_are_scaled_by_their_maximum(mkd, patches):
    expected = mkd.transform(patches)
    for same in (patches.astype(np.uint16) * 257, patches / 255, (patches / 255).astype("f4")):
        np.testing.assert_allclose(mkd.transform(same), expected, atol=2e-6)


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-1, 1), st.floats(0, 1), st.integers(0, 2**32))
def test_gain_and_offset_hardly_matter(gain, offset, seed):
    patch = np.random.default_rng(seed).random((16, 16))
    a = MKD(patch_size=16).transform(patch)[0]
    b = MKD(patch_size=16).transform(gain * patch + (1 - gain) * offset)[0]
    assert a @ b > 1 - 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("resize", [False, True])
def test_floats_from_0_to_255_are_refused(patches, dtype, resize):
    wide = patches.astype(dtype)
    wide[0] /= 255
    mkd = MKD(patch_size=16 if resize else patches.shape[-1], resize=resize)
    with pytest.raises(ValueError, match=r"patches\[8\] has values from .* divide by 255"):
        mkd.transform(wide, first=7)
    mkd.transform(wide / 255 * 1.2 - 0.1)  # interpolation overshoots


def test_an_offset_does_not_matter_at_all(mkd, patches):
    dark = (patches // 2).astype(np.uint8)
    np.testing.assert_allclose(mkd.transform(dark + np.uint8(100)), mkd.transform(dark), atol=1e-6)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_the_polar_kernel_turns_with_the_patch(rng, turns):
    """A quarter turn of the patch only rotates phi: norms by frequency of phi stay."""
    patch = rng.random((32, 32))
    a, b = MKD("polar", patch_size=32).transform(np.stack([patch, np.rot90(patch, turns)]))
    a, b = a.reshape(7, 5, 5), b.reshape(7, 5, 5)
    for cosine, sine in ((1, 3), (2, 4)):
        np.testing.assert_allclose(
            np.hypot(a[:, cosine], a[:, sine]), np.hypot(b[:, cosine], b[:, sine]), atol=1e-5
        )


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("resize", [False, True])
def test_the_first_bad_patch_is_named(backend, value, dtype, resize):
    patches = np.zeros((700 if backend == "cpu" else 9, 16, 16), dtype)
    patches[[7, 8], 3, 3] = value
    mkd = MKD(patch_size=20 if resize else 16, resize=resize, backend=backend)
    with pytest.raises(ValueError, match=r"^patches\[7\] has NaN or infinity$"):
        mkd.transform(patches)


def test_a_bad_patch_is_named_beyond_the_first_chunk(rng):
    patches = np.zeros((CHUNK + 3, 8, 8), np.float32)
    patches[-1, 0, 0] = np.nan
    with pytest.raises(ValueError, match=rf"patches\[{CHUNK + 2}\] has NaN"):
        MKD(patch_size=10, resize=True).transform(patches)


def test_float64_beyond_float32_is_refused(mkd):
    patches = np.zeros((2, 16, 16))
    patches[1, 0, 1] = 1e300
    with pytest.raises(ValueError, match=r"patches\[1\]"):
        mkd.transform(patches)


def test_other_sizes_are_refused_unless_resized(mkd, patches):
    with pytest.raises(ValueError, match=r"expected 16 x 16 px .* got 20 x 20; resize=True"):
        mkd.transform(np.zeros((2, 20, 20), np.uint8))
    assert MKD(patch_size=32, resize=True).transform(patches).shape == (5, 238)


@pytest.mark.parametrize("method", ["pca", "pcawt"])
@pytest.mark.parametrize("power", [1, 0.75, 0.6])
def test_whitening_is_the_same_in_both_backends(rng, method, power):
    patches = rng.integers(0, 256, (600, 8, 8), np.uint8)
    raw = MKD("cartesian", 8).transform(patches)
    whitening = Whitening(method, 50, power=power).fit(raw)
    for backend in ("cpu", "reference"):
        mkd = MKD("cartesian", 8, whitening, backend=backend)
        # A square root near zero magnifies rounding.
        expected, tolerance = whitening.transform(raw), 1e-3 if method == "pca" else 1e-5
        np.testing.assert_allclose(mkd.transform(patches), expected, atol=tolerance)
    shuffled = rng.permutation(600)
    mkd = MKD("cartesian", 8, whitening)
    np.testing.assert_array_equal(
        mkd.transform(patches[shuffled]), mkd.transform(patches)[shuffled]
    )


@pytest.fixture
def head(rng):
    """A hidden layer beside a projection."""
    both = Affine(rng.normal(size=(63, 30)), rng.normal(size=63) / 9, rng.normal(size=30) / 9)
    down = Affine(rng.normal(size=(30, 10)), offset=rng.normal(size=10))
    return Head((Power(0.75), L2(), both, Relu(12), down, L2()))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_heads_with_a_hidden_layer(rng, head, backend):
    """Compared to the same by hand, in double precision."""
    patches = rng.integers(0, 256, (300, 8, 8), np.uint8)
    x = MKD("cartesian", 8, backend="reference").transform(patches).astype(float)
    x = np.sign(x) * np.abs(x) ** 0.75
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    _, _, both, _, down, _ = head.stages
    y = (x - both.centre) @ both.matrix.astype(float) + both.offset
    y[:, 12:] = np.maximum(y[:, 12:], 0)
    z = y @ down.matrix.astype(float) + down.offset
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    mkd = MKD("cartesian", 8, head=head, backend=backend)
    np.testing.assert_allclose(mkd.transform(patches), z, atol=1e-4)
    for copy in (clone(mkd), pickle.loads(pickle.dumps(mkd))):
        np.testing.assert_array_equal(copy.transform(patches), mkd.transform(patches))
    assert repr(mkd.head) in repr(mkd)
    assert mkd.effective_head() is head
    assert mkd.set_params(head=None).transform(patches).shape == (300, 63)
    with pytest.raises(ValueError, match=r"head: learned on 63 numbers, .* has 175"):
        MKD("polar", 8, head=head).transform(patches)


def test_a_changed_whitening_is_not_used_as_it_was(rng):
    patches = rng.integers(0, 256, (400, 8, 8), np.uint8)
    raw = MKD("cartesian", 8).transform(patches)
    mkd = MKD("cartesian", 8, Whitening("pcawt", 20).fit(raw))
    assert mkd.set_params(whitening__dims=4).transform(patches).shape == (400, 4)
    with pytest.raises(ValueError, match=r"power: expected statistics of 0\.5, got .* with 1"):
        mkd.set_params(whitening__power=0.5).transform(patches)


def test_whitening_of_another_descriptor_is_refused(whitening, patches):
    with pytest.raises(ValueError, match="learned on 238 numbers, but the descriptor has 175"):
        MKD("polar", 16, whitening).transform(patches)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"patch_size": 7}, "patch_size: expected an integer >= 8, got 7"),
        ({"patch_size": 16.5}, "patch_size"),
        ({"backend": "gpu"}, "backend: expected one of cpu, numpy, reference, torch, got 'gpu'"),
        ({"n_threads": 0}, "n_threads: expected an integer >= 1"),
        ({"output": "int4"}, "output: expected one of float32, int8, uint8, bits, got 'int4'"),
        ({"output": ["int8"]}, "output: expected one of float32, int8, uint8, bits, got"),
        ({"head": "paper"}, "head: expected a Head or None, got 'paper'"),
        ({"head": Whitening()}, "head: expected a Head or None, got Whitening"),
        (
            {"head": linear_head(np.zeros(2), np.eye(2)), "whitening": Whitening()},
            "head and whitening: expected one of them, got both",
        ),
        (
            {"parametrization": "extended", "patch_size": 40},
            "patch_size: the preparation 'standard' takes multiples of 32 px, got 40",
        ),
        ({"whitening": 3}, "whitening: expected a Whitening or None"),
        ({"parametrization": "spiral"}, "cannot read 'spiral'"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        MKD(**params).fit()


def test_scikit_learn_conventions(mkd, patches):
    copy = clone(mkd).set_params(n_threads=1)
    assert copy.get_params() == {**mkd.get_params(), "n_threads": 1}
    again = pickle.loads(pickle.dumps(mkd))
    np.testing.assert_array_equal(again.transform(patches), mkd.transform(patches))
    scaled = make_pipeline(mkd, StandardScaler()).fit_transform(patches)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-5)
    with pytest.raises(ValueError, match="MKD has no parameter 'colour'"):
        mkd.set_params(colour=1)
    assert repr(mkd) == "MKD(patch_size=16)"


@pytest.mark.parametrize(
    "check",
    [  # the others feed two-dimensional X; patches are three-dimensional
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_get_params_invariance",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    ],
)
def test_scikit_learn_checks(check):
    getattr(estimator_checks, check)("MKD", MKD())


def test_describe_uses_the_default_model(rng):
    patches = rng.integers(0, 256, (4, 64, 64), np.uint8)
    expected = load_model("extended").transform(patches)
    np.testing.assert_array_equal(mkdesc.describe(patches), expected)
    assert mkdesc.describe(patches, "paper-64").shape == (4, 64)
    assert mkdesc.describe(patches[:, :32, :32]).shape == (4, 128)
    with pytest.raises(ValueError, match="got 40 x 40; resize=True"):
        mkdesc.describe(patches[:, :40, :40])
    assert mkdesc.describe(patches[:, :40, :40], resize=True).shape == (4, 128)


def test_int8_keeps_what_matters(shared):
    golden = np.load(shared / "golden/mkd_pytorch_64px.npz")["patches"][:-3]
    mkd = load_model("extended")
    floats = mkd.transform(golden)
    bytes_ = mkd.set_params(output="int8").transform(golden)
    assert bytes_.dtype == np.int8
    rounded = bytes_.astype(np.float32)
    rounded /= np.linalg.norm(rounded, axis=1, keepdims=True)
    assert np.abs(rounded @ rounded.T - floats @ floats.T).max() < 0.01
    assert mkd.transform(np.empty((0, 64, 64))).shape == (0, 128)


def test_bytes_by_their_definition(rng):
    patches = rng.integers(0, 256, (20, 8, 8), np.uint8)
    floats = MKD("cartesian", 8).transform(patches).astype(float)
    for output, scale, zero, low, high in (
        ("int8", 254, 0, -127, 127),
        ("uint8", 256, 128, 0, 255),
    ):
        found = MKD("cartesian", 8, output=output).transform(patches)
        assert found.dtype == output
        expected = np.clip(floats * scale + zero, low, high)
        assert np.abs(found - expected).max() < 0.5 + 1e-4


@pytest.mark.parametrize("size", [32, 96])
def test_what_is_reduced_to_one_size_takes_all_multiples_of_it(rng, size):
    patches = rng.integers(0, 256, (4, size, size), np.uint8)
    expected = MKD("extended", patch_size=size).transform(patches)
    np.testing.assert_array_equal(MKD("extended").transform(patches), expected)
    np.testing.assert_array_equal(MKD("extended", resize=True).transform(patches), expected)
    with pytest.raises(
        ValueError, match=r"64 px \(patch_size\) or another multiple of 32 px, got"
    ):
        MKD("extended").transform(patches[:, 1:, 1:])
    with pytest.raises(ValueError, match="expected 64 x 64 px"):
        MKD().transform(patches)

import importlib.util

import numpy as np
import pytest

import mkdesc
from mkdesc.datasets.phototourism.layout import Subset
from mkdesc.evaluation.contenders.base import (
    LearnedDescriptor,
    ProjectedDescriptor,
    base_of,
    file_name,
)
from mkdesc.evaluation.contenders.registry import (
    get_descriptor,
    get_descriptors,
    named_descriptors,
)
from mkdesc.heads.whitening import Whitening
from mkdesc.kernels.patches import resize_patches
from mkdesc.learn import TrainingBlock, learn_model
from mkdesc.models import load_model


@pytest.fixture
def patches(rng):
    return rng.integers(0, 256, (6, 65, 65), np.uint8)


@pytest.fixture
def model(tmp_path, rng):
    points = np.repeat(rng.random((300, 16, 16)), 2, axis=0)
    noisy = (points + rng.uniform(-0.3, 0.3, points.shape)).astype(np.float32)
    block = TrainingBlock(noisy, np.repeat(np.arange(300), 2))
    learned = learn_model([block], mkdesc.MKD("cartesian", 16), whitening=Whitening("lw", 32))
    learned.save(tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("mkd-raw", "polar+cartesian"),
        ("mkd-polar-raw", "polar"),
        ("mkd-cartesian-raw", "cartesian"),
    ],
)
def test_raw_descriptors_are_those_of_the_resized_patch(patches, name, kernels):
    expected = mkdesc.MKD(kernels).transform(resize_patches(patches, 64))
    got = get_descriptor(name).describe(patches)
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_parts_are_columns_of_the_whole(patches):
    whole = get_descriptor("mkd-raw").describe(patches)
    for name in ("mkd-polar-raw", "mkd-cartesian-raw"):
        part = get_descriptor(name)
        columns = whole[:, slice(*part.columns)]
        np.testing.assert_allclose(columns * np.sqrt(2), part.describe(patches), atol=1e-5)


def test_model_file(patches, model):
    found = get_descriptor(str(model))
    assert isinstance(found, ProjectedDescriptor)
    expected = load_model(model).set_params(resize=True).transform(patches)
    np.testing.assert_allclose(found.describe(patches), expected, atol=1e-4)
    assert "sha256" in found.identity
    assert base_of(found).name.startswith("mkd ")


def test_authors_models_share_their_base(shared, patches):
    file = shared / "golden" / "mkd-concat-64.safetensors"
    lw, pca = (get_descriptor(f"{file}:liberty:{method}") for method in ("lw", "pca"))
    assert base_of(lw).name == base_of(pca).name == "mkd-raw"
    mkd = load_model(file, set="liberty", method="lw").set_params(resize=True)
    np.testing.assert_allclose(lw.describe(patches), mkd.transform(patches), atol=1e-4)
    assert lw.identity != pca.identity


def test_sift_and_rootsift(patches):
    sift = get_descriptor("opencv-sift").describe(patches)
    assert sift.shape == (6, 128)
    assert sift.dtype == np.float32
    rooted = get_descriptor("rootsift").describe(patches)
    np.testing.assert_allclose(np.linalg.norm(rooted, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(rooted**2 * sift.sum(axis=1, keepdims=True), sift, atol=1e-3)
    assert get_descriptor("opencv-sift").describe(patches[:0]).shape == (0, 128)
    assert "opencv" in get_descriptor("rootsift").identity


def test_sift_sees_the_whole_patch_and_no_more(patches):
    changed = patches.copy()
    changed[:, 4:8, 30:34] ^= 255  # near the border, within 12 sigma
    describe = get_descriptor("opencv-sift").describe
    assert (describe(changed) != describe(patches)).any(axis=1).all()


def test_sift_is_good_on_real_patches(shared, fpr95_of):
    subset = Subset(shared / "data" / "phototourism" / "door")
    assert fpr95_of(subset, get_descriptor("opencv-sift").describe, 1000) < 1


def test_contrib_says_that_two_builds_cannot_share(patches):
    cv2 = pytest.importorskip("cv2")
    if hasattr(cv2, "xfeatures2d") and hasattr(cv2.xfeatures2d, "VGG_create"):
        assert get_descriptor("opencv-teblid").describe(patches).shape == (6, 256)
        return
    with pytest.raises(ImportError, match="Two OpenCV builds cannot share an environment"):
        get_descriptor("opencv-vgg")


def test_kornia_says_what_it_needs(patches):
    if importlib.util.find_spec("kornia"):
        assert get_descriptor("kornia-mkd").describe(patches).shape == (6, 238)
        return
    with pytest.raises(ImportError, match="needs torch and kornia"):
        get_descriptor("kornia-sift")


def test_learned_and_callables(patches):
    found = get_descriptor("opencv-sift+zca")
    assert isinstance(found, LearnedDescriptor)
    assert (found.base.name, found.method) == ("opencv-sift", "zca")

    def means(patches):
        return patches.mean(axis=(1, 2))[:, None]

    assert get_descriptor(means).name == "means"
    assert get_descriptor(get_descriptor(means)).describe(patches).shape == (6, 1)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("nonsense", "no descriptor 'nonsense'"),
        ("tfeat:nowhere", "expected tfeat:FILE"),
        ("csv:nowhere", "expected csv:FOLDER"),
        ("mkd-raw+lw+pca", "expected one whitening, got two"),
        (3, "expected a name or a callable, got 3"),
    ],
)
def test_errors(wanted, message):
    with pytest.raises(ValueError, match=message):
        get_descriptor(wanted)


def test_several():
    with pytest.raises(ValueError, match="expected different names"):
        get_descriptors(["mkd-raw", "mkd-raw"])
    with pytest.raises(ValueError, match="at least one"):
        get_descriptors([])
    assert {"mkd-raw", "rootsift", "opencv-vgg", "kornia-mkd"} <= set(named_descriptors())


def test_file_names_differ():
    names = ["a/m.safetensors", "b/m.safetensors", "rootsift", "csv:x/y"]
    made = [file_name(name) for name in names]
    assert len(set(made)) == 4
    assert not any("/" in name for name in made)

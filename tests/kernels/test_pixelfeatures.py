import sys

import numpy as np
import pytest

import mkdesc
from mkdesc.kernels.gradients import second_order
from mkdesc.kernels.pixelfeatures import Intensity, compress, shape_features


def test_intensity_is_squeezed(rng):
    q = rng.normal(0, 5, 50)
    z = compress(q)
    assert np.all(np.abs(z) < 1)
    assert np.all(np.diff(z[np.argsort(q)]) >= 0)
    with pytest.raises(ValueError, match="expected 1 or 2 features, got 3"):
        Intensity(3)


def test_shape_features_turn_as_they_should(rng):
    """Turning a surface by an angle turns (ridge, saddle) by twice the angle."""
    l, d, e = rng.normal(size=(3, 20))  # noqa: E741
    t = 0.7
    turned = shape_features(l, d * np.cos(t) - e * np.sin(t), d * np.sin(t) + e * np.cos(t))
    features = shape_features(l, d, e)
    for group in ([0], [1], [2, 3], [4], [5, 6]):
        np.testing.assert_allclose(
            np.linalg.norm(turned[:, group], axis=1), np.linalg.norm(features[:, group], axis=1)
        )
    # d^2 - e^2 and 2 d e turn as a pair, by twice that.
    for a in (turned, features):
        a[:, 8] *= 2
    np.testing.assert_allclose(
        np.linalg.norm(turned[:, 7:], axis=1), np.linalg.norm(features[:, 7:], axis=1)
    )


def test_no_shape_has_little_weight():
    weak, strong = shape_features(*np.zeros((3, 1))), shape_features(*np.ones((3, 1)))
    assert np.linalg.norm(weak) < 0.2 * np.linalg.norm(strong)


@pytest.fixture
def own(monkeypatch):
    """Features of one's own: ``curved`` is what ``shape`` is, ``bright`` what intensity is."""
    monkeypatch.setattr("mkdesc.kernels.pixelfeatures._OWN", {})
    mkdesc.register_feature("curved", lambda q: shape_features(*second_order(q)), dims=9)
    mkdesc.register_feature("bright", lambda q: compress(q)[..., None])


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize(
    ("mine", "built_in"),
    [
        ("standard: x(8,2)*y(8,2)*curved(9)", "standard: x(8,2)*y(8,2)*shape"),
        ("standard: rho(8,2)*curved(9)", "standard: rho(8,2)*shape"),
        (
            "standard: x(8,2)*bright(1)*theta(8,2)+rho(8,2)*curved(9)*bright(1)+theta(8,3)",
            "standard: x(8,2)*intensity(1)*theta(8,2)+rho(8,2)*shape*intensity(1)+theta(8,3)",
        ),
    ],
)
def test_own_features_count_as_the_same_built_in_ones(rng, backend, mine, built_in):
    patches = rng.integers(0, 256, (5, 64, 64), np.uint8)
    found = mkdesc.MKD(mine, backend=backend).transform(patches)
    expected = mkdesc.MKD(built_in, backend=backend).transform(patches)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    p, q = patches[:2, :32, :32]
    assert np.isclose(mkdesc.match_kernel(p, q, mine), mkdesc.match_kernel(p, q, built_in))


@pytest.mark.usefixtures("own")
def test_a_model_of_own_features_is_learned_kept_and_loaded(rng, tmp_path, monkeypatch):
    patches = np.repeat(rng.integers(0, 256, (300, 32, 32), np.uint8), 2, axis=0)
    mkd = mkdesc.MKD("standard: x(1,1)*y(1,1)*bright(1)", patch_size=32)
    raw = mkd.transform(patches)
    mkd.whitening = mkdesc.Whitening("pca", dims=4).fit(raw)
    mkdesc.save_model(mkd, tmp_path / "mine.safetensors")
    loaded = mkdesc.load_model(tmp_path / "mine.safetensors")
    np.testing.assert_allclose(loaded.transform(patches), mkd.transform(patches), atol=1e-6)
    monkeypatch.setattr("mkdesc.kernels.pixelfeatures._OWN", {})
    with pytest.raises(ValueError, match=r"cannot read 'bright\(1\)'.*register_feature"):
        mkdesc.load_model(tmp_path / "mine.safetensors")
    with pytest.raises(ValueError, match=r"bright\(1\): not registered"):
        loaded.transform(patches)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_features_that_are_not_what_they_should_be_are_refused(backend):
    mkd = mkdesc.MKD("standard: bright(1)", backend=backend)
    mkdesc.register_feature("bright", lambda q: q)
    with pytest.raises(ValueError, match=r"'bright': expected an array \(1, 32, 32, 1\), got"):
        mkd.transform(np.eye(64))
    mkdesc.register_feature("bright", lambda q: np.full((*q.shape, 1), np.nan))
    with pytest.raises(ValueError, match="feature 'bright' has NaN or infinity"):
        mkd.transform(np.eye(64))
    with pytest.raises(ValueError, match=r"patches\[0\] has NaN"):
        mkd.transform(np.full((64, 64), np.nan, np.float32))
    with pytest.raises(ValueError, match=r"registered with other dimensions, bright\(1\)"):
        mkdesc.MKD("standard: bright(2)").transform(np.eye(64))
    with pytest.raises(ValueError, match="contrast is not removed"):
        mkdesc.MKD("bright(1)").transform(np.eye(64))


@pytest.mark.usefixtures("own")
def test_numbers_of_features_may_be_numpy_s():
    feature = mkdesc.register_feature(
        "both", lambda q: np.stack([q, -q], axis=-1), dims=np.int64(2)
    )
    assert mkdesc.as_parametrization("standard: both(2)").own == (feature,)
    assert str(feature) == "(2)"


@pytest.mark.parametrize(
    ("name", "function", "dims", "message"),
    [
        ("theta", np.abs, 1, "name: expected an identifier other than x, y,"),
        ("a b", np.abs, 1, "name: expected an identifier"),
        (3, np.abs, 1, "name: expected an identifier"),
        ("mine", None, 1, "function: expected something to call, got None"),
        ("polar", np.abs, 1, "name: expected an identifier other than .*polar, .*got 'polar'"),
        ("Extended", np.abs, 1, "name: expected an identifier other than"),
        ("standard", np.abs, 1, "name: expected an identifier other than .*standard"),
        ("lambda", np.abs, 1, "name: expected an identifier"),
        ("mine", np.abs, 0, "dims: expected an integer from 1 to 100000, got 0"),
        ("mine", np.abs, True, "dims: expected an integer from 1 to 100000, got True"),
        ("mine", np.abs, 10**6, "dims: expected an integer from 1 to 100000, got 1000000"),
    ],
)
def test_registering_nonsense_is_refused(name, function, dims, message):
    with pytest.raises(ValueError, match=message):
        mkdesc.register_feature(name, function, dims)


def test_features_of_installed_packages_are_found(monkeypatch):
    from importlib.metadata import EntryPoint

    from mkdesc.kernels import pixelfeatures

    entry = EntryPoint("mine", "test_entry_points_of_mine:register", "mkdesc.features")
    module = type(pixelfeatures)("test_entry_points_of_mine")
    module.register = lambda: mkdesc.register_feature(
        "installed_one", lambda q: np.tanh(q)[..., None]
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(pixelfeatures, "entry_points", lambda group: [entry])
    pixelfeatures._load_installed.cache_clear()
    found = mkdesc.as_parametrization("standard: x(8,1)*y(8,1)*installed_one(1)")
    assert "installed_one" in str(found)

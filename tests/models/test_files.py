"""Model files: what is saved is what is loaded."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import mkdesc
from mkdesc import MKD
from mkdesc.evaluation.contenders.registry import get_descriptor
from mkdesc.heads.whitening import METHODS, Whitening, linear_head
from mkdesc.models import bundled_models, files, load_model, open_model, read_card, save_model


def test_a_saved_model_describes_the_same(path, mkd, patches):
    again = load_model(path)
    np.testing.assert_array_equal(again.transform(patches), mkd.transform(patches))
    card = read_card(path)
    assert (card.method, card.dims, card.patch_size) == ("gda", 8, 16)
    assert card.learned_from == {"source": "noise", "points": 100}
    assert card.params["ridge"] == 1e-3
    assert card.side == 24
    assert card.schema == 2
    assert mkdesc.as_parametrization(card.parametrization) == mkdesc.CARTESIAN


def test_a_ratio_is_kept_and_models_without_one_do_not_mention_it(path, mkd):
    assert load_model(path).ratio is None
    assert "ratio" not in json.loads(read_card(path).to_json())
    assert any(line.split() == ["ratio", "not", "known"] for line in read_card(path).lines())
    save_model(mkd.set_params(ratio=0.85), path)
    assert load_model(path).ratio == read_card(path).ratio == 0.85
    with pytest.raises(ValueError, match="ratio: expected a number > 0 and <= 1"):
        mkd.set_params(ratio=1.5).fit()


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_head_of_its_own_is_saved_loaded_and_shown(hidden, patches, tmp_path, backend):
    path = tmp_path / "hidden.safetensors"
    card = save_model(hidden, path)
    again = load_model(path).set_params(backend=backend)
    expected = hidden.head.apply(MKD("cartesian", 16).transform(patches[:9]))
    np.testing.assert_allclose(again.transform(patches[:9]), expected, atol=1e-5)
    np.testing.assert_array_equal(
        again.transform(patches[:9]),
        hidden.set_params(backend=backend).transform(patches[:9]),
    )
    assert (card.method, card.side, card.dims) == (None, None, 6)
    words = "power 0.7, l2, 63 -> 20, relu 8, 20 -> 6, l2"
    assert str(again.head) == words
    assert any(line.split(maxsplit=1) == ["head", words] for line in read_card(path).lines())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("power", [1, 0.75])
def test_every_method_and_power_survives(patches, tmp_path, method, power):
    """Compared to the definition: a model loaded without its power or root is another one."""
    raw = MKD("cartesian", 16).transform(patches)
    whitening = Whitening(method, 8, ridge=1e-3, power=power)
    whitening.fit(raw, np.repeat(np.arange(100), 2))
    save_model(MKD("cartesian", 16, whitening), tmp_path / "m.safetensors")
    found = load_model(tmp_path / "m.safetensors").transform(patches)
    linear = whitening.learned().linear()
    x = np.sign(raw) * np.abs(raw.astype(float)) ** power
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = (x - linear.centre) @ linear.matrix.astype(float)
    y = np.sign(y) * np.sqrt(np.abs(y)) if method == "pca" else y
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    np.testing.assert_allclose(found, y, atol=1e-3 if method == "pca" else 2e-5)


def test_unknown_models_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model 'nothing': neither a file nor one of"):
        load_model("nothing")
    save_file({"a": np.zeros(3, np.float32)}, tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="neither a model of mkdesc nor"):
        load_model(tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="it has no card"):
        read_card(tmp_path / "a.safetensors")


def test_arrays_that_are_not_contiguous_are_saved_whole(tmp_path, mkd, patches):
    found = mkd.whitening.head_.linear()
    spread = np.stack([found.centre, found.centre + 1], axis=1)[:, 0]
    turned = np.asfortranarray(found.matrix)
    head = linear_head(spread, turned, power=mkd.whitening.power)
    mkd.whitening = Whitening.of_head(head, **mkd.whitening.get_params())
    save_model(mkd, tmp_path / "m.safetensors")
    again = load_model(tmp_path / "m.safetensors").transform(patches)
    np.testing.assert_allclose(again, mkd.transform(patches), atol=1e-6)


def test_only_what_was_learned_is_saved(tmp_path, mkd, hidden):
    with pytest.raises(ValueError, match="mkd: expected one with a head or a fitted Whitening"):
        save_model(MKD(), tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="call fit first"):
        save_model(MKD(whitening=Whitening()), tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match=r"whitening: learned on 63 numbers, but .* has 175"):
        save_model(MKD("polar", whitening=mkd.whitening), tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match=r"head: learned on 63 numbers, but .* has 175"):
        save_model(MKD("polar", head=hidden.head), tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match=r"power: expected statistics of 0\.5, got"):
        save_model(mkd.set_params(whitening__power=0.5), tmp_path / "m.safetensors")
    assert not list(tmp_path.glob("m.*"))


def test_a_loaded_model_is_not_silently_another(path, patches):
    mkd = load_model(path).set_params(whitening__dims=4)
    with pytest.raises(ValueError, match="dims: this whitening was learned with 8"):
        mkd.transform(patches)


def test_one_opener_of_names_files_and_choices(path, shared, patches):
    np.testing.assert_array_equal(
        open_model(path).transform(patches), load_model(path).transform(patches)
    )
    assert open_model("paper-64").effective_head().dims_out == 64
    file = shared / "golden/mkd-cart-64.safetensors"
    assert open_model(f"{file}:liberty:pca").whitening.method == "pca"
    with pytest.raises(ValueError, match="set: expected one of liberty"):
        open_model(f"{file}:nowhere:pca")
    with pytest.raises(FileNotFoundError, match="no model 'nothing'"):
        open_model("nothing:liberty:lw")
    with pytest.raises(ValueError, match="model: expected a name or a path, got None"):
        open_model(None)
    odd = path.with_name("a:b:c")
    odd.write_bytes(path.read_bytes())
    assert open_model(odd).whitening.method == "gda"


@pytest.mark.parametrize(
    ("old", "new"), [("default", "paper"), ("default-32", "paper-32px"), ("compact", "paper-64")]
)
def test_old_names_say_the_new_ones(old, new):
    for call in (load_model, read_card, get_descriptor):
        with pytest.raises((FileNotFoundError, ValueError), match=rf"{old}' \(now called '{new}'"):
            call(old)
    assert new in bundled_models()


def test_eigenvalues_must_be_positive(tmp_path):
    names = ("mean", "eigvecs", "eigvals")
    shapes = ((63,), (63, 63), (63,))
    tensors = {f"a.pca.{n}": np.zeros(s, np.float32) for n, s in zip(names, shapes, strict=True)}
    save_file(tensors, tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="eigenvalues that are not positive"):
        load_model(tmp_path / "a.safetensors", "a", "pcawt")


@pytest.mark.parametrize("kernels", ["concat", "polar", "cart"])
@pytest.mark.parametrize("method", ["lw", "pca", "pcawt", "pcaws"])
@pytest.mark.parametrize("size", [32, 64])
def test_the_authors_models_give_the_authors_outputs(shared, kernels, method, size):
    golden = np.load(shared / f"golden/mkd_pytorch_{size}px.npz")
    mkd = load_model(shared / f"golden/mkd-{kernels}-64.safetensors", "liberty", method)
    found = mkd.set_params(patch_size=size).transform(golden["patches"])
    expected = golden[f"{method}_{kernels}_liberty"]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_authors_models_are_asked_for_properly(shared):
    file = shared / "golden/mkd-concat-64.safetensors"
    assert load_model(file, "yosemite", "pcaws", dims=32).transform(
        np.zeros((1, 64, 64), np.uint8)
    ).shape == (1, 32)
    with pytest.raises(ValueError, match="set: expected one of liberty, notredame, yosemite"):
        load_model(file)
    with pytest.raises(
        ValueError, match="method: expected one of pca, pcawt, pcaws, lw, got None"
    ):
        load_model(file, "liberty")


@pytest.mark.parametrize("name", bundled_models())
def test_bundled_models_work(name, rng):
    card = read_card(name)
    mkd = load_model(name)
    size = card.patch_size
    shape = (size, size) if mkd.squares == 1 else (mkd.squares, size, size)
    found = mkd.transform(rng.integers(0, 256, (3, *shape), np.uint8))
    assert found.shape == (3, card.dims)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert mkd.transform(np.full((1, *shape), 7, np.uint8)).shape == (1, card.dims)
    with pytest.raises(ValueError, match="set and method are for files"):
        load_model(name, set="liberty")


def test_nothing_else_is_written_beside_a_model(path, mkd, tmp_path, monkeypatch):
    """safetensors' own save_file has a temporary file, which kills would leave behind."""
    import safetensors.numpy

    def refused(*rest, **keywords):
        raise AssertionError("save_file")

    monkeypatch.setattr(safetensors.numpy, "save_file", refused)
    save_model(mkd, path)
    assert load_model(path).patch_size == mkd.patch_size


def test_bundled_models_are_read_once_and_stay_as_they_are(monkeypatch, rng):
    """What a caller does to one that was loaded is not in the next one."""
    patches = rng.integers(0, 256, (2, 64, 64), np.uint8)
    before = load_model("extended").transform(patches)
    monkeypatch.setattr(files, "read_safetensors", None)  # would fail
    changed = load_model("extended").set_params(resize=True, output="int8")
    changed.whitening.set_params(dims=3)
    read_card("extended").learned_from.clear()
    assert not load_model("extended").resize
    np.testing.assert_array_equal(load_model("extended").transform(patches), before)
    np.testing.assert_array_equal(mkdesc.describe(patches), before)
    assert read_card("extended").learned_from
    bundled_models().clear()
    assert "extended" in bundled_models()
    matrix = load_model("extended").effective_head().linear().matrix
    with pytest.raises(ValueError, match="read-only"):
        matrix[0] = 0

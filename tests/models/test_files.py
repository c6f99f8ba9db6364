import json
import pickle
import zipfile

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import mkdesc
from mkdesc import MKD
from mkdesc.heads.whitening import Whitening, linear_head
from mkdesc.models import bundled_models, load_model, read_card, save_model
from mkdesc.models.card import Card, conventions


@pytest.fixture
def patches(rng):
    return rng.integers(0, 256, (200, 16, 16), np.uint8)


@pytest.fixture
def mkd(patches):
    labels = np.repeat(np.arange(100), 2)
    raw = MKD("cartesian", 16)
    whitening = Whitening("gda", 8, ridge=1e-3).fit(raw.transform(patches), labels)
    return MKD("cartesian", 16, whitening)


@pytest.fixture
def path(tmp_path, mkd):
    path = tmp_path / "model.safetensors"
    save_model(mkd, path, {"source": "noise", "points": 100})
    return path


def test_a_saved_model_describes_the_same(path, mkd, patches):
    again = load_model(path)
    np.testing.assert_array_equal(again.transform(patches), mkd.transform(patches))
    card = read_card(path)
    assert (card.method, card.dims, card.patch_size) == ("gda", 8, 16)
    assert card.learned_from == {"source": "noise", "points": 100}
    assert card.params["ridge"] == 1e-3
    assert mkdesc.as_parametrization(card.parametrization) == mkdesc.CARTESIAN


def rewrite(path, change_tensors=None, change_card=None):
    """Write the file again with something changed."""
    with safe_open(path, "numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        card = json.loads(file.metadata()["mkdesc"])
    if change_tensors:
        change_tensors(tensors)
    if change_card:
        change_card(card)
    save_file(tensors, path, {"mkdesc": json.dumps(card)})


def spoil_nan(tensors):
    tensors["mean"][0] = np.nan


def spoil_value(tensors):
    tensors["projection"][3, 3] += 1


def spoil_shape(tensors):
    tensors["projection"] = tensors["projection"][:, :-1].copy()


def spoil_name(tensors):
    tensors["extra"] = tensors["mean"]


def spoil_size(tensors):
    tensors["mean"] = tensors["mean"].astype(np.float64) * 1e300


def spoil_type(tensors):
    tensors["mean"] = tensors["mean"].astype(np.int32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (spoil_nan, "mean has NaN"),
        (spoil_value, "sha256 differs"),
        (spoil_shape, r"projection has the shape \(63, 7\), expected \(63, 8\)"),
        (spoil_size, "mean has NaN, infinity"),
        (spoil_name, "expected the tensors mean and projection"),
        (spoil_type, "mean has NaN, infinity or no real numbers"),
    ],
)
def test_tampered_tensors_are_refused(path, change, message):
    rewrite(path, change_tensors=change)
    for read in (load_model, read_card):
        with pytest.raises(ValueError, match=rf"model\.safetensors: .*{message}"):
            read(path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("schema", 99, "its schema is 99; this version reads 1"),
        ("schema", None, "its schema is None"),
        ("parametrization", "spiral", "cannot read 'spiral'"),
        ("parametrization", "extended", "its contrast is None"),
        ("parametrization", "polar", r"mean has the shape \(63,\), expected \(175,\)"),
        ("method", "magic", "sha256 differs"),
        ("method", 7, "its card says method = 7"),
        ("patch_size", 3, "sha256 differs"),
        ("patch_size", "16", "its card says patch_size = '16'"),
        ("dims", True, "its card says dims = True"),
        ("patch_size", 64, "sha256 differs"),
        ("params", {"t": 0.7, "shrinkage": 40, "ridge": 1e-3, "power": 0.5}, "sha256 differs"),
        ("created", "1999-01-01", "sha256 differs"),
        ("params", {"evil": 1}, "sha256 differs"),
        (
            "conventions",
            {**conventions("cartesian"), "gradient": "usual"},
            "its gradient is 'usual'",
        ),
        ("conventions", {}, "its gradient is None"),
    ],
)
def test_cards_that_do_not_fit_are_refused(path, field, value, message):
    rewrite(path, change_card=lambda card: card.update({field: value}))
    with pytest.raises(ValueError, match=rf"model\.safetensors: .*{message}"):
        load_model(path)


def test_cards_with_other_fields_are_refused(path):
    rewrite(path, change_card=lambda card: card.pop("created"))
    with pytest.raises(ValueError, match="its card has the fields"):
        load_model(path)
    with pytest.raises(ValueError, match="not JSON"):
        Card.from_json("{")
    with pytest.raises(ValueError, match="its schema is None"):
        Card.from_json("[1]")


def test_truncated_and_other_files_are_refused(path, tmp_path):
    path.write_bytes(path.read_bytes()[:-100])
    other = tmp_path / "other.safetensors"
    other.write_bytes(b"")
    huge = tmp_path / "huge.safetensors"
    huge.write_bytes((2**60).to_bytes(8, "little") + b"{}")
    for bad in (path, other, huge):
        with pytest.raises(ValueError, match="not a safetensors file") as caught:
            load_model(bad)
        assert "\n" not in str(caught.value)


def test_pickles_are_refused_by_name(tmp_path):
    plain = tmp_path / "model.pkl"
    plain.write_bytes(pickle.dumps({"mean": [1]}))
    zipped = tmp_path / "model.pth"
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("archive/data.pkl", b"x")
    for bad in (plain, zipped):
        with pytest.raises(ValueError, match=r"is a pickle .* safetensors\.numpy\.save_file"):
            load_model(bad)


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
    mkd.whitening.head_ = linear_head(spread, turned, power=mkd.whitening.power)
    save_model(mkd, tmp_path / "m.safetensors")
    again = load_model(tmp_path / "m.safetensors").transform(patches)
    np.testing.assert_allclose(again, mkd.transform(patches), atol=1e-6)


def test_only_what_was_learned_is_saved(tmp_path, mkd):
    with pytest.raises(ValueError, match="expected a fitted Whitening"):
        save_model(MKD(), tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="expected a fitted Whitening"):
        save_model(MKD(whitening=Whitening()), tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="learned on 63 numbers, but the descriptor has 175"):
        save_model(MKD("polar", whitening=mkd.whitening), tmp_path / "m.safetensors")
    assert not list(tmp_path.glob("m.*"))


def test_the_power_that_was_learned_with_is_saved(tmp_path, mkd, patches):
    expected = mkd.transform(patches)
    mkd.set_params(whitening__power=0.5)
    save_model(mkd, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(
        load_model(tmp_path / "m.safetensors").transform(patches), expected
    )


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
    with pytest.raises(ValueError, match="method: expected pca, pcawt, pcaws or lw, got None"):
        load_model(file, "liberty")


@pytest.mark.parametrize("name", bundled_models())
def test_bundled_models_work(name, rng):
    card = read_card(name)
    mkd = load_model(name)
    size = card.patch_size
    found = mkd.transform(rng.integers(0, 256, (3, size, size), np.uint8))
    assert found.shape == (3, card.dims)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert mkd.transform(np.full((1, size, size), 7, np.uint8)).shape == (1, card.dims)
    with pytest.raises(ValueError, match="set and method are for files"):
        load_model(name, set="liberty")


def scalars(names, dtype="F32"):
    """The header of 0-d tensors of four bytes each; of float8: of four numbers."""
    shape = [] if dtype == "F32" else [4]
    return {
        name: {"dtype": dtype, "shape": shape, "data_offsets": [4 * i, 4 * i + 4]}
        for i, name in enumerate(names)
    }


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"__metadata__": {"mkdesc": "[" * 100_000}}, "its card is nested too deeply"),
        (scalars(["a"], "F8_E4M3"), "of a type that numpy lacks"),
        (scalars(["a"], "F8_E5M2"), "of a type that numpy lacks"),
        (scalars(["a"], "F8_E8M0"), "of a type that numpy lacks"),
        (scalars(["a.lw.mean", "a.lw.eigvecs", "a.lw.eigvals"]), "238, 175 or 63 numbers, got 1"),
        (scalars(["b\nc.lw.mean"]), "set: expected one of b c, got 'a'"),
        ({"__metadata__": {"mkdesc": '{"schema": 1, "a\\nb": 2}'}}, "has the fields a b, schema"),
        (
            {
                "__metadata__": {"mkdesc": Card("polar", 16, "pca", 1).to_json()},
                **scalars(["b\nc"]),
            },
            "projection, got b c",
        ),
        ({"a\nb": {"dtype": "F32", "shape": [1], "data_offsets": [9, 4]}}, "not a safetensors"),
    ],
)
def test_hostile_files_are_refused_in_one_line(tmp_path, header, message):
    text = json.dumps(header).encode()
    size = 4 * (len(header) - ("__metadata__" in header))
    file = tmp_path / "bad.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))
    with pytest.raises(ValueError, match=rf"bad\.safetensors: .*{message}") as caught:
        load_model(file, *(() if "__metadata__" in header else ("a", "lw")))
    assert len(str(caught.value).splitlines()) == 1


def test_cards_too_deep_for_their_fingerprint_are_refused(path):
    with safe_open(path, "numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        card = file.metadata()["mkdesc"].replace('"noise"', "[" * 900 + "]" * 900)
    save_file(tensors, path, {"mkdesc": card})
    with pytest.raises(ValueError, match="its card is nested too deeply"):
        load_model(path)

"""Model files that somebody changed, and files that are none: refused by name, or still right."""

import json
import pickle
import zipfile

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from mkdesc.models import load_model, read_card, save_model
from mkdesc.models.card import CONVENTIONS, Card, preparation_numbers


def read(path):
    with safe_open(path, "numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return tensors, json.loads(file.metadata()["mkdesc"])


def rewrite(path, change_tensors=None, change_card=None):
    """Write the file again with something changed."""
    tensors, card = read(path)
    if change_tensors:
        change_tensors(tensors)
    if change_card:
        change_card(card)
    save_file(tensors, path, {"mkdesc": json.dumps(card)})


def sign(path, change_tensors=None, change_card=None):
    """The same, with a fingerprint that agrees: as one would who means harm."""
    rewrite(path, change_tensors, change_card)
    tensors, card = read(path)
    print_ = Card(**card).fingerprint(tensors)
    rewrite(path, change_card=lambda card: card.update(sha256=print_))


def test_half_precision_is_widened(hidden, patches, tmp_path):
    path = tmp_path / "half.safetensors"
    save_model(hidden, path)
    sign(path, change_tensors=lambda t: t.update({n: x.astype("f2") for n, x in t.items()}))
    found, expected = load_model(path), hidden
    assert found.head.stages[2].matrix.dtype == np.float32
    np.testing.assert_allclose(found.transform(patches), expected.transform(patches), atol=1e-2)


def spoil_nan(tensors):
    tensors["head.0.centre"][0] = np.nan


def spoil_value(tensors):
    tensors["head.0.matrix"][3, 3] += 1


def spoil_shape(tensors):
    tensors["head.0.matrix"] = tensors["head.0.matrix"][:, :-1].copy()


def spoil_name(tensors):
    tensors["extra"] = tensors["head.0.centre"]


def spoil_missing(tensors):
    del tensors["head.0.centre"]


def spoil_size(tensors):
    tensors["head.0.centre"] = tensors["head.0.centre"].astype(np.float64) * 1e300


def spoil_type(tensors):
    tensors["head.0.centre"] = tensors["head.0.centre"].astype(np.int32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (spoil_nan, r"head\[0\]: head\.0\.centre has NaN"),
        (spoil_value, "sha256 differs"),
        (spoil_shape, r"head\.0\.matrix has the shape \(63, 7\), expected \(63, 8\)"),
        (spoil_size, r"head\.0\.centre: expected float32 or float16, got float64"),
        (spoil_name, "the tensors extra are not used"),
        (spoil_missing, r"centre: the tensor 'head\.0\.centre' is missing"),
        (spoil_type, r"head\.0\.centre: expected float32 or float16, got int32"),
    ],
)
def test_tampered_tensors_are_refused(path, change, message):
    rewrite(path, change_tensors=change)
    for reading in (load_model, read_card):
        with pytest.raises(ValueError, match=rf"model\.safetensors: .*{message}"):
            reading(path)


PAPER = preparation_numbers("cartesian")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("schema", 99, "its schema is 99; this version reads 2"),
        ("schema", None, "its schema is None"),
        ("schema", 1, "its schema is 1; this version reads 2"),
        ("parametrization", "spiral", "cannot read 'spiral'"),
        ("parametrization", "extended", "its preparation: epsilon is 1e-08"),
        ("parametrization", "polar", "sha256 differs"),
        ("method", "magic", "sha256 differs"),
        ("method", 7, "its card says method = 7"),
        ("patch_size", 3, "its card says patch_size = 3, expected 8 to 4096"),
        ("patch_size", 10**9, "its card says patch_size = 1000000000, expected 8 to 4096"),
        ("patch_size", "16", "its card says patch_size = '16'"),
        ("dims", True, "its card says dims = True"),
        ("patch_size", 64, "sha256 differs"),
        ("side", -3, "its card says side = -3, expected a number > 0"),
        ("side", [14, None], r"its card says side = \[14, None\], expected a number > 0"),
        ("side", [], r"its card says side = \[\], expected a number > 0"),
        ("side", [14, 40], "sha256 differs"),
        ("side", "12", "its card says side = '12'"),
        ("side", 12, "sha256 differs"),
        ("ratio", 0, "its card says ratio = 0, expected a number > 0 and <= 1"),
        ("ratio", 1.5, "its card says ratio = 1.5, expected a number > 0 and <= 1"),
        ("ratio", "0.8", "its card says ratio = '0.8'"),
        ("ratio", 0.8, "sha256 differs"),
        ("params", {"t": 0.7, "shrinkage": 40, "ridge": 1e-3, "power": 0.5}, "sha256 differs"),
        ("created", "1999-01-01", "sha256 differs"),
        ("preparation", {**PAPER, "sigma": 1.5}, "its preparation: sigma is 1.5; .* 1.4"),
        ("preparation", {**PAPER, "tilt": 1}, "its preparation: tilt is 1; this version has None"),
        (
            "conventions",
            {**CONVENTIONS, "gradient_sign": 1},
            "conventions: gradient_sign is 1; .* has -1",
        ),
        ("conventions", {}, "its conventions: attributes is None"),
        ("head", {}, r"its card says head = \{\}"),
    ],
)
def test_cards_that_do_not_fit_are_refused(path, field, value, message):
    rewrite(path, change_card=lambda card: card.update({field: value}))
    with pytest.raises(ValueError, match=rf"model\.safetensors: .*{message}"):
        load_model(path)


AFFINE = {
    "op": "affine",
    "dims": [63, 8],
    "matrix": "head.0.matrix",
    "centre": "head.0.centre",
    "offset": None,
}
END = {"op": "l2"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"head": [AFFINE, {"op": "eval"}, END]}, r"head\[1\]: expected one of .*, got 'eval'"),
        ({"head": [AFFINE, "l2"]}, r"head\[1\]: expected one of .*, got None"),
        ({"head": [AFFINE, {"op": ["l2"]}]}, r"head\[1\]: expected one of power, affine"),
        ({"head": [AFFINE, {"op": "l2", "x": 1}]}, r"head\[1\]: l2 has the fields op, x"),
        ({"head": [AFFINE, {"op": "power", "exponent": 3}, END]}, r"head\[1\]: power: expected"),
        ({"head": [AFFINE, {"op": "power", "exponent": True}, END]}, r"head\[1\]: power: exp"),
        ({"head": [AFFINE, {"op": "relu", "start": -1}, END]}, r"head\[1\]: start: expected"),
        ({"head": [AFFINE, {"op": "relu", "start": 8}, END]}, "Relu from 8 follows 8 numbers"),
        ({"head": [AFFINE]}, "expected L2 to be the last"),
        ({"head": [END]}, "not used by the head"),
        ({"head": [AFFINE, AFFINE, END]}, r"head\[1\]: matrix: .* is missing, or used twice"),
        ({"head": [AFFINE | {"dims": [63, 9]}, END]}, r"shape \(63, 8\), expected \(63, 9\)"),
        ({"head": [AFFINE | {"dims": [63]}, END]}, r"dims: expected two integers, got \[63\]"),
        ({"head": [AFFINE | {"centre": 3}, END]}, "centre: the tensor 3 is missing"),
        ({"head": [AFFINE | {"centre": None}, END]}, r"tensors head\.0\.centre are not used"),
        ({"head": [AFFINE, *[END] * 100]}, "expected at most 64 operations, got 101"),
        ({"head": [AFFINE, {"op": "relu", "start": 2}, END]}, "is not one of gda"),
        ({"head": [{"op": "power", "exponent": 0.5}, END, AFFINE, END]}, "is not one of gda"),
        ({"method": "pca"}, "is not one of pca"),
        ({"dims": 7}, "its card says dims = 7, its head gives 8"),
        ({"method": "magic"}, "method: expected one of"),
        ({"params": {"evil": 1}}, "its whitening has the parameters evil"),
        ({"params": {"t": "x", "shrinkage": 40, "ridge": None, "power": 1}}, "t: expected a num"),
        ({"parametrization": "polar"}, "learned on 63 numbers, but the descriptor has 175"),
    ],
)
def test_files_that_mean_harm_are_refused(path, change, message):
    sign(path, change_card=lambda card: card.update(change))
    for reading in (load_model, read_card):
        with pytest.raises(ValueError, match=rf"model\.safetensors: .*{message}") as caught:
            reading(path)
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"created"', '"dims": 8, "created"', "its card has 'dims' twice"),
        ('"ridge": 0.001', '"ridge": 0.001, "ridge": 0.1', "its card has 'ridge' twice"),
        ('"ridge": 0.001', '"ridge": NaN', "its card has NaN"),
        ('"points": 100', '"points": 1e999', "Out of range"),
        ("}", "", "its card is not JSON"),
    ],
)
def test_cards_with_odd_text_are_refused(path, old, new, message):
    with safe_open(path, "numpy") as file:
        text = file.metadata()["mkdesc"]
    assert old in text
    save_file(read(path)[0], path, {"mkdesc": text.replace(old, new)})
    with pytest.raises(ValueError, match=rf"model\.safetensors: .*{message}"):
        load_model(path)


def test_cards_with_other_fields_are_refused(path):
    rewrite(path, change_card=lambda card: card.pop("created"))
    with pytest.raises(ValueError, match="its card has the fields"):
        load_model(path)
    save_file(read(path)[0], path, {"mkdesc": "[1]"})
    with pytest.raises(ValueError, match="its card is not a JSON object but list"):
        load_model(path)


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


def scalars(names, dtype="F32"):
    """The header of 0-d tensors of four bytes each; of float8: of four numbers."""
    shape = [] if dtype == "F32" else [4]
    return {
        name: {"dtype": dtype, "shape": shape, "data_offsets": [4 * i, 4 * i + 4]}
        for i, name in enumerate(names)
    }


EMPTY = Card("polar", 16, 1, []).to_json()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"__metadata__": {"mkdesc": "[" * 100_000}}, "its card is nested too deeply"),
        (scalars(["a"], "F8_E4M3"), "of a type that numpy lacks"),
        (scalars(["a"], "F8_E5M2"), "of a type that numpy lacks"),
        (scalars(["a"], "F8_E8M0"), "(of a type that numpy lacks|not a safetensors file)"),
        (scalars(["a.lw.mean", "a.lw.eigvecs", "a.lw.eigvals"]), "238, 175 or 63 numbers, got 1"),
        (scalars(["b\nc.lw.mean"]), "set: expected one of b c, got 'a'"),
        ({"__metadata__": {"mkdesc": '{"schema": 2, "a\\nb": 2}'}}, "has the fields a b, schema"),
        ({"__metadata__": {"mkdesc": EMPTY}, **scalars(["b\nc"])}, "the tensors b c are not used"),
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
    # How deep Python goes differs between its versions; where it gets there, the sum is wrong.
    with pytest.raises(ValueError, match=r"its card is nested too deeply|sha256 differs"):
        load_model(path)

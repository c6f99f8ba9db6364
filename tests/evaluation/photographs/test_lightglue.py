"""LightGlue with weights of a file: kornia's own module beside ours, on random weights."""

import numpy as np
import pytest

from mkdesc.evaluation.photographs.base import FoundFeatures, PhotographOptions
from mkdesc.evaluation.photographs.homography import run_homography
from mkdesc.evaluation.photographs.lightglue import lightglue_matcher
from mkdesc.evaluation.photographs.methods import get_method

torch = pytest.importorskip("torch")
kornia = pytest.importorskip("kornia")


def network(**conf):
    torch.manual_seed(0)
    given = {"input_dim": 128, "n_layers": 9} | conf
    return kornia.feature.LightGlue(features=None, **given).eval()


@pytest.fixture(autouse=True)
def everything_matches(monkeypatch):
    """Random weights are sure of nothing: take what they like best."""
    monkeypatch.setitem(kornia.feature.LightGlue.default_conf, "filter_threshold", 0.0)
    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", None)  # nothing is downloaded


@pytest.fixture
def weights(tmp_path):
    """Random weights with kornia's names."""
    module = network()
    file = tmp_path / "lightglue.pth"
    torch.save(module.state_dict(), file)
    return file


def features(seed, count=40, dims=128, shape=(90, 120)):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, dims)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return FoundFeatures(rng.uniform(5, 85, (count, 2)), rows, 0.0, shape, (1.0, 1.0))


def as_kornia(one):
    return {
        "keypoints": torch.from_numpy(one.xy).float()[None],
        "descriptors": torch.from_numpy(one.descriptors)[None],
        "image_size": torch.tensor([[one.shape[1], one.shape[0]]]).float(),
    }


def test_matches_are_those_of_kornias_module(weights):
    a, b = features(0), features(1, 50, shape=(100, 110))
    with torch.inference_mode():
        data = {"image0": as_kornia(a), "image1": as_kornia(b)}
        expected = network()(data)["matches"][0].numpy()
    found = lightglue_matcher(weights)(a, b)
    assert len(expected) > 5
    np.testing.assert_array_equal(found, expected)


def test_names_of_older_files_are_understood(weights, tmp_path):
    state = torch.load(weights, weights_only=True)
    old = {}
    for name, tensor in state.items():
        parts = name.split(".")
        if parts[0] == "transformers":  # transformers.3.self_attn.x was self_attn.3.x
            parts = [parts[2], parts[1], *parts[3:]]
        old["matcher." + ".".join(parts)] = tensor
    torch.save({**old, "extractor.weight": torch.zeros(3)}, tmp_path / "old.pth")
    a, b = features(0), features(1)
    found = lightglue_matcher(tmp_path / "old.pth")(a, b)
    assert len(found) > 5
    np.testing.assert_array_equal(found, lightglue_matcher(weights)(a, b))


def test_a_method_with_a_matcher_of_its_own_runs(sequences, weights, tmp_path, monkeypatch):
    (tmp_path / "glued.py").write_text(
        "import numpy as np\n"
        "def corners(gray, most):\n"
        "    y, x = np.mgrid[20:200:20, 20:280:20]\n"
        "    xy = np.column_stack([x.ravel(), y.ravel()])[:most]\n"
        "    rows = [gray[v - 8:v + 8, u - 4:u + 4].ravel() for u, v in xy]\n"
        "    return xy, np.array(rows, np.float32) / 255\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"glued:corners+lightglue:{weights}"
    options = PhotographOptions(keypoints=100)
    results = run_homography(sequences, ["glued:corners", name], options=options)
    plain, glued = (results.details[one]["pairs"]["wall 1-2"] for one in ("glued:corners", name))
    assert 0 < glued["matches"] != plain["matches"]  # random weights find other pairs
    assert plain["repeatability"] == glued["repeatability"]
    both = get_method(f"{name}+grow")
    assert (both.features, both.grows, both.match is None) == ("glued:corners", True, False)


def test_what_cannot_be_matched_is_refused(weights, tmp_path):
    with pytest.raises(ValueError, match="there are none for mkdesc's"):
        get_method(f"mkdesc+lightglue:{weights}")
    with pytest.raises(ValueError, match=r"expected FEATURES\+lightglue:FILE"):
        get_method(f"lightglue:{weights}")
    with pytest.raises(ValueError, match="there is no file"):
        get_method("aliked:x.safetensors+lightglue:missing.pth")
    with pytest.raises(ValueError, match="kornia has no SuperPoint"):
        get_method("superpoint:weights.pth")
    with pytest.raises(ValueError, match="taught for descriptors of 128 numbers, got 64"):
        lightglue_matcher(weights)(features(0), features(1, dims=64))
    torch.save({"something": torch.zeros(2)}, tmp_path / "else.pth")
    with pytest.raises(ValueError, match="not weights of LightGlue"):
        lightglue_matcher(tmp_path / "else.pth")
    torch.save(network(add_scale_ori=True).state_dict(), tmp_path / "sift.pth")
    with pytest.raises(ValueError, match="scales and angles"):
        lightglue_matcher(tmp_path / "sift.pth")
    torch.save(network(n_layers=2).state_dict(), tmp_path / "short.pth")
    with pytest.raises(ValueError, match="not weights of this network"):
        lightglue_matcher(tmp_path / "short.pth")

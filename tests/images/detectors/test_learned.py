"""The learned detector: engines that agree, and what every detector of ours promises."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy.spatial import cKDTree

from mkdesc.features import Features
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.learned import SIGMA, Learned
from mkdesc.images.detectors.learned_weights import (
    Convolution,
    Weights,
    bundled_weights,
    load_weights,
    save_weights,
)
from mkdesc.images.detectors.places import choose_places
from mkdesc.images.detectors.registry import make_detector


def symmetric_weights(channels, sides, seed=0):
    """Random kernels that look the same after a quarter turn."""
    rng = np.random.default_rng(seed)
    layers, before = [], 1
    for count, side in zip((*channels, 1), sides, strict=True):
        kernels = rng.normal(0, 1 / (side * np.sqrt(before)), (count, before, side, side))
        kernels = sum(np.rot90(kernels, turn, (2, 3)) for turn in range(4)) / 2
        biases = rng.normal(0, 0.1, count)
        layers.append(Convolution(kernels.astype(np.float32), biases.astype(np.float32)))
        before = count
    return Weights(tuple(layers))


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "symmetric.safetensors"
    save_weights(symmetric_weights((8, 8), (5, 3, 5)), path)
    return path


def assert_alike(found, expected, within=0.1):
    """99% of each are where one of the other is, of its size and angle."""
    assert abs(len(found) - len(expected)) <= 0.01 * len(expected)
    for some, others in ((found, expected), (expected, found)):
        away, which = cKDTree(others.points[:, :3]).query(some.points[:, :3])
        turned = (some.points[:, 3] - others.points[which, 3] + 180) % 360 - 180
        assert np.mean((away < within) & (np.abs(turned) < 1)) >= 0.99


NETWORKS = {
    "three layers": ((8, 8), (5, 5, 5)),
    "small kernels": ((8, 8), (5, 3, 3)),
    "twelve channels and single pixels": ((12, 3), (3, 1, 5)),
    "one layer": ((), (5,)),
    "four layers": ((16, 8, 8), (3, 3, 3, 3)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_compiled_one_is_as_defined(image, name, tmp_path):
    path, image = tmp_path / "weights.safetensors", np.ascontiguousarray(image[:120, :150])
    save_weights(symmetric_weights(*NETWORKS[name], seed=3), path)
    expected = Learned(weights=path, engine="reference").detect(image)
    assert len(expected) > 100
    assert_alike(Learned(weights=path).detect(image), expected)
    assert_alike(
        Learned(150, weights=path).detect(image),
        Learned(150, weights=path, engine="reference").detect(image),
    )


def test_by_torch_it_is_as_defined(image, weights):
    pytest.importorskip("torch")
    expected = Learned(300, weights=weights, engine="reference").detect(image)
    assert_alike(Learned(300, weights=weights, engine="torch").detect(image), expected)
    assert_alike(Learned(300, weights=weights, device="cpu").detect(image), expected)


@pytest.mark.parametrize("shape", [(131, 257), (70, 600), (300, 41)])
def test_threads_give_the_same_bits(shape, weights, rng):
    picture = rng.integers(0, 256, shape, np.uint8)
    one = Learned(200, weights=weights, n_threads=1).detect(picture)
    assert len(one) > 50
    for threads in (2, 5):
        many = Learned(200, weights=weights, n_threads=threads).detect(picture)
        np.testing.assert_array_equal(many.points, one.points)
        np.testing.assert_array_equal(many.scores, one.scores)


@pytest.mark.parametrize("quarters", [1, 2, 3])
@pytest.mark.parametrize("given", ["random", "keypoints"])
def test_turned_images_have_turned_keypoints(image, weights, given, quarters):
    """With random symmetric weights, and with those that come with the package."""
    weights = weights if given == "random" else given
    found = Learned(weights=weights).detect(image)
    turned = Learned(weights=weights).detect(np.ascontiguousarray(np.rot90(image, -quarters)))
    x, y, sigma, angle = found.points.T
    height, width = image.shape
    for _ in range(quarters):  # a quarter turn clockwise: the left column becomes the top row
        x, y, height, width = height - 1 - y, x, width, height
    away, which = cKDTree(turned.points[:, :3]).query(np.column_stack([x, y, sigma]))
    assert np.mean(away < 0.05) > 0.99
    near = away < 0.05
    change = turned.points[which[near], 3] - angle[near]
    assert np.mean(np.abs((change - 90 * quarters + 180) % 360 - 180) < 0.5) > 0.99


def test_a_blob_is_where_it_is(tmp_path):
    """Scores of one kernel, the middle of a blob minus what is around: found to 0.1 px."""
    kernel = np.full((1, 1, 5, 5), -1 / 16, np.float32)
    kernel[0, 0, 1:4, 1:4] = 1 / 9
    save_weights(
        Weights((Convolution(kernel, np.zeros(1, np.float32)),)), tmp_path / "b.safetensors"
    )
    y, x = np.mgrid[:80, :100]
    blob = 40 + 180 * np.exp(-((x - 60.3) ** 2 + (y - 31.6) ** 2) / (2 * 1.5**2))
    found = Learned(1, weights=tmp_path / "b.safetensors").detect(np.rint(blob).astype(np.uint8))
    np.testing.assert_allclose(found.points[0, :2], [60.3, 31.6], atol=0.1)


def test_masks(image, weights):
    mask = np.zeros(image.shape, np.uint8)
    mask[40:120, 50:150] = 1
    found = Learned(50, weights=weights).detect(image, mask)
    x, y = np.rint(found.points[:, :2].T).astype(int)
    assert len(found) == 50
    assert mask[y, x].all()
    assert len(Learned(weights=weights).detect(image, np.zeros_like(mask))) == 0


@pytest.mark.parametrize("engine", ["numba", "reference", "torch"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (14, 40), (15, 15)])
def test_tiny_images(engine, shape, weights, rng):
    if engine == "torch":
        pytest.importorskip("torch")
    picture = rng.integers(0, 256, shape, np.uint8)
    found = Learned(10, weights=weights, engine=engine).detect(picture)
    assert len(found) <= 10
    if min(shape) < 13:  # there is no score
        assert len(found) == 0


@pytest.mark.parametrize("engine", ["numba", "reference", "torch"])
@pytest.mark.parametrize("value", [0, 7, 255])
def test_blank_images_have_none(engine, value, weights):
    if engine == "torch":
        pytest.importorskip("torch")
    blank = np.full((100, 120), value, np.uint8)
    keypoints, descriptors = Features(Learned(10, weights=weights, engine=engine)).extract(blank)
    assert len(keypoints) == 0
    assert descriptors.shape == (0, 128)


def test_one_keypoint_a_place(image, weights):
    found = Learned(weights=weights).detect(image)
    near = cKDTree(found.points[:, :2]).query_pairs(16, output_type="ndarray")
    sigma = found.points[near, 2].min(axis=1)
    apart = np.linalg.norm(found.points[near[:, 0], :2] - found.points[near[:, 1], :2], axis=1)
    assert len(near) > 1000
    assert (apart > 2 * sigma / SIGMA).all()
    every = Learned(weights=weights, repeats=True).detect(image)
    assert len(every) > len(found)
    assert {tuple(point) for point in found.points} < {tuple(point) for point in every.points}


def test_of_what_is_less_than_wanted_places_are_chosen_once(image, weights, monkeypatch):
    asked = []

    def watched(every, *more):
        asked.append(len(every))
        return choose_places(every, *more)

    monkeypatch.setattr("mkdesc.images.detectors.learned.choose_places", watched)
    Learned(5000, weights=weights).detect(image)
    assert len(asked) == 1


def test_crowds_leave_room_for_others(weights):
    """Of 200 maxima of one place, and two others, that are weaker, there are three keypoints."""
    points = np.full((202, 4), (50.0, 60.0, 1.6, 0.0))
    points[200:, 0] = 80, 90
    every = Keypoints(points, np.arange(202, 0, -1))
    assert Learned(3, weights=weights)._choose(every).tolist() == [0, 200, 201]
    assert Learned(3, weights=weights, repeats=True)._choose(every).tolist() == [0, 1, 2]


@pytest.mark.parametrize("n", [1, 20, 400])
def test_as_many_as_asked_for_and_the_best(image, weights, n):
    every = Learned(weights=weights).detect(image).strongest(n)
    found = Learned(n, weights=weights).detect(image).strongest()
    np.testing.assert_array_equal(found.points, every.points)
    repeated = Learned(n, weights=weights, repeats=True).detect(image)
    assert len(repeated) == min(n, len(Learned(weights=weights, repeats=True).detect(image)))


def test_spread(image, weights):
    best = Learned(60, weights=weights).detect(image)
    spread = Learned(60, weights=weights, spread=True).detect(image)
    cells = [len({(x // 40, y // 40) for x, y in one.points[:, :2]}) for one in (best, spread)]
    assert len(spread) == 60
    assert cells[1] > cells[0]
    with pytest.raises(ValueError, match="spread: needs max_keypoints"):
        Learned(weights=weights, spread=True)


def test_upright_ones_have_no_angle(image, weights):
    assert not Learned(50, True, weights=weights).detect(image).points[:, 3].any()
    assert Learned(50, False, weights=weights).detect(image).points[:, 3].any()


def test_settings_that_do_not_fit(weights):
    with pytest.raises(ValueError, match="engine: expected numba, torch or reference, got 'c'"):
        make_detector("learned", weights=weights, engine="c")
    with pytest.raises(FileNotFoundError, match="no weights 'nowhere': neither a file nor one of"):
        make_detector("learned", weights="nowhere")
    with pytest.raises(ValueError, match="weights: expected a name or a file, got 3"):
        load_weights(3)
    for wrong in (None, 123):
        with pytest.raises(ValueError, match=f"weights: expected a name or a file, got {wrong}"):
            make_detector("learned", weights=wrong)


def layer(*shape, value=0.1):
    return {
        "convs.0.weight": np.full(shape, value, np.float32),
        "convs.0.bias": np.zeros(shape[0], np.float32),
    }


FOREIGN = {
    "other tensors": ({"head.weight": np.zeros(3, np.float32)}, "expected convs.0.weight"),
    "no bias": ({"convs.0.weight": np.zeros((1, 1, 3, 3), np.float32)}, "expected convs.0.weight"),
    "two scores": (layer(2, 1, 3, 3), "the last layer gives 2 channels, expected 1"),
    "colour": (
        layer(1, 3, 3, 3),
        r"convs.0.weight: expected \(out, 1, k, k\), got \(1, 3, 3, 3\)",
    ),
    "large kernels": (layer(1, 1, 7, 7), "expected an odd k up to 5, got 7"),
    "even kernels": (layer(1, 1, 4, 4), "expected an odd k up to 5, got 4"),
    "not finite": (layer(1, 1, 3, 3, value=np.nan), "expected finite numbers"),
    "zeros": (layer(1, 1, 3, 3, value=0), "convs.0.weight: expected some that are not zero"),
    "huge": (layer(1, 1, 3, 3, value=1e30), "convs.0: expected sums up to 1e"),
    "doubles": (
        {name: values.astype(np.float64) for name, values in layer(1, 1, 3, 3).items()},
        "convs.0: expected float32, got float64",
    ),
    "no channels": (layer(0, 1, 3, 3), "expected 1 to 256 channels, got 0"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_weights_are_refused(name, tmp_path):
    tensors, why = FOREIGN[name]
    path = tmp_path / "foreign.safetensors"
    save_file(tensors, path)
    with pytest.raises(ValueError, match=why) as caught:
        Learned(weights=path)
    assert "\n" not in str(caught.value)
    assert "foreign.safetensors" in str(caught.value)


def test_damaged_weights_are_refused(weights, tmp_path):
    data = weights.read_bytes()
    card = json.dumps([1, 2]).encode()
    damaged = {
        "empty": b"",
        "cut": data[: len(data) // 2],
        "text": b"not a file of weights",
        "length": b"\xff" * 8 + data[8:],
        "card": data.replace(
            b'"mkdesc-keypoints":"{}"', b'"mkdesc-keypoints":"' + card[:2] + b'"'
        ),
    }
    for name, content in damaged.items():
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=name) as caught:
            load_weights(path)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 700


def test_what_is_saved_is_what_is_read(tmp_path):
    made = replace(symmetric_weights((8,), (3, 5)), card={"model": "photo", "steps": 3})
    save_weights(made, tmp_path / "some.safetensors")
    read = load_weights(tmp_path / "some.safetensors")
    assert read.card == made.card
    assert read.margin == 3
    for (weight, bias), (same, other) in zip(made.layers, read.layers, strict=True):
        np.testing.assert_array_equal(weight, same)
        np.testing.assert_array_equal(bias, other)


def test_weights_that_were_replaced_are_read_again(tmp_path, image):
    path = tmp_path / "w.safetensors"
    for seed in (1, 2, 1):
        save_weights(symmetric_weights((8,), (3, 5), seed), path)
        found = Learned(50, weights=path).detect(image)
        alone = tmp_path / f"{seed}.safetensors"
        save_weights(symmetric_weights((8,), (3, 5), seed), alone)
        expected = Learned(50, weights=alone).detect(image)
        np.testing.assert_array_equal(found.points, expected.points)


@pytest.mark.parametrize("name", bundled_weights())
def test_bundled_weights_have_a_card_and_find_keypoints(name, image):
    weights = load_weights(name)
    assert weights.card["photos"] > 0
    assert weights.card["model"]
    assert weights.card["after"]["right"] > weights.card["before"]["right"]
    found = make_detector("learned", max_keypoints=50, weights=name).detect(image)
    assert len(found) == 50

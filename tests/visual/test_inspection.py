"""Contributions of pixels add up to the similarity, for every kind of model."""

import numpy as np
import pytest

from mkdesc import MKD, as_parametrization, load_model, patch_map
from mkdesc.heads.head import L2, Affine, Head, Power, Relu
from mkdesc.kernels.grid import patch_grid
from mkdesc.kernels.pixelvalues import pixel_values
from mkdesc.kernels.preparation import PAPER
from mkdesc.visual.inspection import contributions, product_scores
from mkdesc.visual.inspection_figure import inspect_pair
from mkdesc.visual.whitenings import bundled_whitenings, load_whitening

MODELS = ["paper", "paper-64", "polar", "paper-32px", "extended", "extended-64"]


@pytest.fixture
def pair(rng):
    """A smooth patch and a shifted, noisy one of it."""
    waves = np.add.outer(np.sin(np.arange(70) / 5), np.cos(np.arange(70) / 7) ** 3)
    image = 30 * waves + 120 + rng.normal(0, 4, waves.shape)
    return np.stack([image[:64, :64], image[4:68, 3:67]]).astype(np.uint8)


@pytest.mark.parametrize("name", [*MODELS, *bundled_whitenings()])
def test_maps_add_up_to_the_cosine_of_a_model_s_descriptors(pair, name):
    mkd = load_whitening(name) if name in bundled_whitenings() else load_model(name)
    patches = pair[:, : mkd.patch_size, : mkd.patch_size]
    a, b = mkd.transform(patches).astype(np.float64)
    map_p, map_q, score = contributions(*patches, mkd.parametrization, mkd)
    assert score == pytest.approx(a @ b, abs=2e-5)
    assert map_p.sum() == pytest.approx(score, abs=1e-10)
    assert map_q.sum() == pytest.approx(score, abs=1e-10)


@pytest.mark.parametrize("spec", ["polar+cartesian", "extended"])
def test_maps_add_up_for_a_hidden_layer(pair, rng, spec):
    dims = as_parametrization(spec).dims
    both = Affine(rng.normal(size=(dims, 90)), rng.normal(size=dims) / 30, rng.normal(size=90))
    down = Affine(rng.normal(size=(90, 40)), rng.normal(size=90), rng.normal(size=40))
    head = Head((Power(0.75), L2(), both, Relu(40), down, Power(0.5), L2()))
    mkd = MKD(spec, head=head)
    a, b = mkd.transform(pair).astype(np.float64)
    for given in (head, mkd):
        map_p, map_q, score = contributions(*pair, spec, given)
        assert score == pytest.approx(a @ b, abs=1e-4)
        assert map_p.sum() == pytest.approx(score, abs=1e-10)
        assert map_q.sum() == pytest.approx(score, abs=1e-10)
    assert inspect_pair(*pair, mkd).score == pytest.approx(score)
    with pytest.raises(ValueError, match="hidden layer") as caught:
        patch_map((31, 31), spec, 0.1, 0.2, whitening=mkd)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("spec", ["polar+cartesian", "cartesian", "extended", "theta(2,1)"])
def test_maps_add_up_to_the_cosine_of_raw_descriptors(pair, spec):
    a, b = MKD(spec).transform(pair)
    map_p, map_q, score = contributions(*pair, spec)
    assert score == pytest.approx(a @ b, abs=2e-6)
    assert map_p.sum() == pytest.approx(score, abs=1e-12)
    assert map_q.sum() == pytest.approx(score, abs=1e-12)


def test_a_raw_map_is_what_the_sum_loses_without_the_pixel(pair):
    """Pixel by pixel, from the definition: the descriptor is a sum, so a term is what it adds."""
    (part,) = load_whitening("cartesian-lw").parametrization.products
    sums, terms = [], []
    for patch in pair:
        values = pixel_values(patch, PAPER, 1 / 255)
        weight = values["weight"] * patch_grid(64).window
        terms.append(weight[..., None] * part.feature_map(values))
        sums.append(terms[-1].sum(axis=(0, 1)))
    norms = np.linalg.norm(sums[0]) * np.linalg.norm(sums[1])
    map_p, map_q, _ = contributions(*pair, "cartesian")
    for i, j in [(0, 0), (31, 40), (63, 5)]:
        without = sums[0] - terms[0][i, j]
        assert map_p[i, j] == pytest.approx((sums[0] - without) @ sums[1] / norms)
        without = sums[1] - terms[1][i, j]
        assert map_q[i, j] == pytest.approx((sums[1] - without) @ sums[0] / norms)


def test_a_patch_and_itself(pair):
    p = pair[0]
    map_p, map_q, score = contributions(p, p, "polar", "polar")
    assert score == pytest.approx(1)
    np.testing.assert_allclose(map_p, map_q)


def test_similarity_comes_from_where_the_patches_agree(rng):
    p, q = rng.integers(0, 256, (2, 64, 64), np.uint8)
    q[:, :32] = p[:, :32]
    map_p, map_q, _ = contributions(p, q, "extended", "extended")
    for found in (map_p, map_q):
        left, right = found[:, :14].sum(), found[:, 18:].sum()
        assert left > 3 * abs(right)


def test_flat_patches_have_finite_maps():
    flat = np.full((64, 64), 7, np.uint8)
    for name in ("paper", "extended"):
        found = inspect_pair(flat, flat, load_model(name))
        assert np.isfinite(found.maps).all()
        assert found.maps[0].sum() == pytest.approx(found.score)


def test_scores_of_parts_are_those_of_their_descriptors(pair):
    scores = product_scores(*pair, "polar+cartesian")
    for (name, score), spec in zip(scores.items(), ("polar", "cartesian"), strict=True):
        a, b = MKD(spec).transform(pair)
        assert score == pytest.approx(a @ b, abs=2e-6)
        assert MKD(name).transform(pair).shape == MKD(spec).transform(pair).shape


def test_patches_of_other_sizes_and_types_are_resampled(pair):
    mkd = load_model("paper")
    large = np.kron(pair[1], np.ones((2, 2), np.uint8))
    found = inspect_pair(pair[0], large, mkd)
    a, b = mkd.transform(pair[:1]), mkd.set_params(resize=True).transform(large)
    assert found.score == pytest.approx(float((a @ b.T)[0, 0]), abs=2e-5)


def test_bad_patches_are_refused(pair):
    with pytest.raises(ValueError, match="p and q: expected patches of one size"):
        contributions(pair[0], pair[1, :32, :32], "polar")
    with pytest.raises(ValueError, match=r"p: expected one patch \(W, W\), got \(2, 64, 64\)"):
        contributions(pair, pair, "polar")
    with pytest.raises(ValueError, match="NaN or infinity"):
        contributions(pair[0], np.full((64, 64), np.nan), "polar")
    with pytest.raises(ValueError, match="whitening: learned on"):
        contributions(*pair, "polar", "paper")

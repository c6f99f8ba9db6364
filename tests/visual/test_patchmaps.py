"""Patch maps against the double sum of the match kernel and the statements of the paper."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import mkdesc
from mkdesc import MKD, POLAR, VonMises, Whitening, match_kernel, patch_map
from mkdesc.heads.whitening import linear_head
from mkdesc.kernels.gradients import second_order
from mkdesc.kernels.grid import patch_grid
from mkdesc.kernels.parametrization import EXTENDED, Parametrization, as_parametrization
from mkdesc.kernels.pixelvalues import pixel_values

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from patch_maps import RING, centre_step, half_widths, polar_peak

PAPER = ["polar", "cartesian", "polar-absolute", "cartesian-relative"]


def all_pixels(size):
    return np.stack(np.mgrid[:size, :size], axis=-1).reshape(-1, 2)


def sum_of_maps(p, q, part, preparation, exact):
    """The match kernel of two patches, as the weighted sum of the maps of all pixels of p."""
    spec = Parametrization((part,), preparation)
    here, there = (pixel_values(patch, preparation) for patch in (p, q))
    size = len(here["weight"])
    looks = {}
    for who, values, patch in (("p", here, p), ("q", there, q)):
        shape = np.stack(second_order(preparation.prepare(patch)), axis=-1)
        for name, value in (
            ("theta", values["theta"]),
            ("intensity", values["intensity"]),
            ("shape", shape),
        ):
            flat = value.reshape(size * size, *value.shape[2:])
            looks[f"{who}_{name}"] = flat if who == "p" else value
    maps = patch_map(all_pixels(size), spec, patch_size=size, exact=exact, **looks)
    window = patch_grid(size).window if preparation.window else 1.0
    weights = [(v["weight"] if part.weighted else 1.0) * window for v in (here, there)]
    weights = [np.broadcast_to(w, (size, size)) for w in weights]
    return np.einsum("p,pij,ij->", weights[0].ravel(), maps, weights[1])


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("spec", PAPER)
def test_maps_add_up_to_the_match_kernel(rng, spec, exact):
    p, q = rng.random((2, 12, 12))
    whole = as_parametrization(spec)
    total = sum_of_maps(p, q, whole.products[0], whole.preparation, exact)
    assert total == pytest.approx(match_kernel(p, q, spec, exact=exact), rel=1e-5)


@pytest.mark.parametrize("part", EXTENDED.products, ids=str)
def test_so_do_maps_of_intensity_and_shape(rng, part):
    p, q = rng.random((2, 32, 32)).astype(np.float32)
    expected = match_kernel(p, q, Parametrization((part,), EXTENDED.preparation), exact=False)
    total = sum_of_maps(p, q, part, EXTENDED.preparation, exact=False)
    assert total == pytest.approx(expected, rel=1e-4)


def test_products_count_as_in_the_descriptor():
    pixel, looks = (9.5, 20), {"p_theta": 0.3, "q_theta": -0.4}
    polar, cartesian, both = (
        patch_map(pixel, name, **looks) for name in ("polar", "cartesian", "polar+cartesian")
    )
    at_p = [patch_map((20, 20), name)[20, 20] for name in ("polar", "cartesian")]
    np.testing.assert_allclose(both, (polar / at_p[0] + cartesian / at_p[1]) / 2)
    assert patch_map((20, 20), "polar+cartesian")[20, 20] == pytest.approx(1)
    assert patch_map((20, 20), "polar+cartesian", exact=True)[20, 20] == pytest.approx(1)
    parts = [Parametrization((part,), EXTENDED.preparation) for part in EXTENDED.products]
    added = sum(patch_map(pixel, part, **looks) for part in parts)
    np.testing.assert_allclose(patch_map(pixel, EXTENDED, **looks), added)


def test_many_frequencies_come_to_the_exact_kernel():
    spec = "phi(8,20)*rho(8,20)*relative_theta(8,20) + x(1,9)*y(1,9)*theta(8,20)"
    looks = {"p_theta": 0.5, "q_theta": 0.1, "patch_size": 16}
    approximate, exact = (patch_map((3, 9), spec, exact=e, **looks) for e in (False, True))
    np.testing.assert_allclose(approximate, exact, atol=1e-6)


def test_a_projection_by_the_paper_s_formula(rng):
    mean, matrix = rng.normal(size=63).astype("f"), rng.normal(size=(63, 20)).astype("f")
    grid = patch_grid(10)
    kernel = as_parametrization("cartesian").products[0]

    def psi(i, j, theta):
        values = {"x": np.pi / 2 * grid.x[i, j], "y": np.pi / 2 * grid.y[i, j], "theta": theta}
        return kernel.feature_map(values)

    projected = patch_map((2, 7), "cartesian", 0.4, -0.2, linear_head(mean, matrix), 10)
    a_at = matrix.astype(float) @ matrix.T
    p = psi(2, 7, np.array(0.4))
    for i, j in [(0, 0), (2, 7), (9, 4)]:
        q = psi(i, j, np.array(-0.2))
        whole = (p - mean) @ a_at @ (q - mean)
        assert projected[i, j] == pytest.approx(whole - mean @ a_at @ mean)


def test_every_kind_of_whitening_is_its_linear_part(tmp_path, rng):
    raw = MKD("cartesian", 16).transform(rng.random((400, 16, 16)))
    whitening = Whitening("gda", 20, ridge=1e-3, power=0.75).fit(raw, np.arange(400) // 2)
    mkd = MKD("cartesian", 16, whitening)
    mkdesc.save_model(mkd, tmp_path / "mine.safetensors")
    head = whitening.head_
    without = linear_head(head.linear().centre, head.linear().matrix)
    expected = patch_map((3, 4), "cartesian", whitening=without)
    for form in (head, whitening, mkd, tmp_path / "mine.safetensors"):
        np.testing.assert_array_equal(patch_map((3, 4), "cartesian", whitening=form), expected)


def test_many_pixels_at_once_and_large_maps():
    pixels = [(20, 20), (3.5, 60)]
    maps = patch_map(pixels, "polar", [0.1, 0.7], 0.2, patch_size=96)
    for pixel, theta, found in zip(pixels, [0.1, 0.7], maps, strict=True):
        np.testing.assert_allclose(found, patch_map(pixel, "polar", theta, 0.2, patch_size=96))
    assert patch_map(np.zeros((0, 2)), "polar", patch_size=8).shape == (0, 8, 8)


# What the paper says of its figures.


@pytest.mark.parametrize("pixel", [(30, 30), (28, 35)])
def test_polar_maps_break_at_the_centre_and_the_combination_mends_it(pixel):
    assert centre_step("polar", pixel) > 0.5
    assert centre_step("cartesian", pixel) < 0.01
    assert centre_step("polar+cartesian", pixel) < 0.7 * centre_step("polar", pixel)
    whitened = centre_step("polar+cartesian", pixel, "polar-cartesian-lw")
    assert whitened < 0.6 * centre_step("polar", pixel, "polar-lw")


def test_a_turned_gradient_moves_the_peak_along_the_circle():
    phi, theta, turn = VonMises(8, 2), VonMises(8, 3), -np.pi / 8
    best = minimize_scalar(
        lambda d: -phi.approximate(d) * theta.approximate(turn - d), bounds=(-1, 1)
    ).x
    assert -np.pi / 8 < best < -np.pi / 32
    moved, out = polar_peak("polar", turn)
    assert moved == pytest.approx(best, abs=0.02)
    assert out == pytest.approx(0, abs=0.01)
    assert polar_peak("polar-absolute", turn) == pytest.approx((0, 0), abs=1e-12)
    assert polar_peak("cartesian", turn) == pytest.approx((0, 0), abs=1e-12)


def test_cartesian_maps_barely_move_under_small_shifts():
    for pixel in [(20, 20), (30, 30), (12, 40)]:
        loss = {}
        for spec in ("polar", "cartesian"):
            m = patch_map(pixel, spec)
            i, j = pixel
            near = m[i - 3 : i + 4, j - 3 : j + 4]
            loss[spec] = 1 - near.min() / m[pixel]
        assert loss["cartesian"] < 0.03
        assert loss["polar"] > 4 * loss["cartesian"]


def test_learned_whitening_widens_maps_along_the_circle():
    (raw_circle, raw_radius), (circle, radius) = half_widths(None), half_widths("polar-lw")
    assert circle > 1.1 * raw_circle
    assert circle / radius > 1.5 * raw_circle / raw_radius


def test_pca_changes_little_and_learned_whitening_much():
    raw, pca, lw = (
        patch_map(RING, "polar", whitening=w).reshape(len(RING), -1)
        for w in (None, "polar-pca", "polar-lw")
    )
    for a, b, c in zip(raw, pca, lw, strict=True):
        assert np.corrcoef(a, b)[0, 1] > 0.9
        assert np.corrcoef(a, c)[0, 1] < 0.8


def test_the_largest_shapes_are_finite():
    m = patch_map((3, 3), "extended", p_theta=1e6, p_shape=(1e6, -1e6, 1e6), patch_size=8)
    assert np.isfinite(m).all()
    assert m.argmax() == 3 * 8 + 3


def test_looks_default_to_equal_ones():
    one = patch_map((20, 20), "extended", p_intensity=-0.3, p_shape=(0, 0, 1))
    same = patch_map(
        (20, 20),
        "extended",
        p_intensity=-0.3,
        q_intensity=-0.3,
        p_shape=(0, 0, 1),
        q_shape=(0, 0, 1),
    )
    np.testing.assert_array_equal(one, same)
    other = patch_map((20, 20), "extended", p_intensity=-0.3, q_intensity=0.3, p_shape=(0, 0, 1))
    assert other[20, 20] < one[20, 20]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pixel": (64, 3)}, r"pixel: expected from 0 to 63, within the patch, got \(64.0, 3.0\)"),
        ({"pixel": (-1, 3)}, "pixel: expected from 0 to 63"),
        ({"pixel": (np.nan, 3)}, "pixel: has NaN or infinity"),
        ({"pixel": "here"}, "pixel: expected numbers, got 'here'"),
        ({"pixel": (1, 2, 3)}, r"pixel: expected \(row, column\) or \(N, 2\), got \(3,\)"),
        ({"pixel": 5}, r"pixel: expected \(row, column\)"),
        ({"p_theta": np.inf}, "p_theta: has NaN"),
        ({"p_theta": [1, 2]}, r"p_theta: expected \(\) or \(1,\), got \(2,\)"),
        ({"q_theta": np.zeros((8, 8))}, r"q_theta: expected \(\) or \(64, 64\), got \(8, 8\)"),
        ({"q_intensity": 1.0}, "q_intensity: expected squeezed"),
        ({"p_shape": (1, 2)}, r"p_shape: expected \(3,\) or \(1, 3\), got \(2,\)"),
        ({"patch_size": 4}, "patch_size: expected an integer from 8 to 2048, got 4"),
        ({"patch_size": 10**6}, "patch_size: expected an integer from 8 to 2048, got 1000000"),
        ({"p_shape": (1e200, 0, 0)}, r"p_shape: expected numbers from -1e\+06 to 1e\+06"),
        ({"q_theta": -1e308}, r"q_theta: expected numbers from -1e\+06 to 1e\+06"),
        ({"patch_size": 64.0}, "patch_size: expected an integer"),
        ({"parametrization": "polr"}, "parametrization 'polr'"),
        ({"whitening": 3}, "whitening: expected a Whitening, a Head"),
        ({"whitening": MKD("polar")}, "whitening: this MKD has none"),
        ({"whitening": "paper"}, "whitening: learned on phi.* expected phi"),
        ({"whitening": "cartesian-lw"}, "whitening: learned on x"),
        (
            {"whitening": linear_head(np.zeros(63, "f"), np.zeros((63, 2), "f"))},
            "whitening: learned on 63 numbers, expected 175",
        ),
        ({"whitening": Whitening()}, "is not fitted"),
        ({"whitening": "polar-lw", "exact": True}, "whitening: exact kernels have no"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        patch_map(**{"pixel": (20, 20), "parametrization": POLAR} | arguments)


def test_an_unknown_whitening_lists_the_known_ones():
    with pytest.raises(FileNotFoundError, match=r"no model 'polar-wl'.* paper, .*polar-lw"):
        patch_map((20, 20), "polar", whitening="polar-wl")


def test_features_of_ones_own_have_no_maps(monkeypatch):
    monkeypatch.setattr("mkdesc.kernels.pixelfeatures._OWN", {})
    mkdesc.register_feature("mine", lambda q: q[..., None])
    with pytest.raises(ValueError, match=r"parametrization: .* \('mine'\) have no patch maps"):
        mkdesc.patch_map((3, 3), "standard: x(1,1)*mine(1)")

"""Fits against warps in closed form, and compiled ones against the definition."""

import numpy as np
import pytest

from mkdesc.matching.growing.fitting import EXACT, ROUGH, Rule, fit_places, parts_of
from mkdesc.matching.growing.pyramid import make_pyramid
from mkdesc.matching.growing.reference import fit_place

SHAPE = (260, 340)
TURNED = np.array([[0.93, -0.18], [0.21, 0.97]])
WARPS = {
    "shifted": (np.eye(2), (6.4, -3.7)),
    "turned": (TURNED, (30.2, -14.6)),
    "larger": (1.6 * TURNED, (-90.0, -100.0)),
    "smaller": (0.55 * np.eye(2), (70.3, 60.6)),
    "slanted": (np.array([[0.6, 0.1], [0.05, 1.05]]), (50.0, 0.5)),
    "mirrored": (np.array([[-1.0, 0.05], [0, 1.02]]), (320.0, 3.0)),
}
#: Warps after which the samples of one photograph are more blurred than those of the other, or
#: in one direction.
UNEVEN = {"larger", "slanted"}


def guesses(rng, places, matrix, shift, off=1.0, wrong=0.05):
    """About where places are, and about the map: a pixel off, and a twentieth."""
    there = places @ matrix.T + shift
    away = rng.normal(size=(len(places), 2))
    away *= off / np.linalg.norm(away, axis=1, keepdims=True)
    maps = matrix.ravel() + wrong * np.sqrt(abs(np.linalg.det(matrix))) * rng.normal(
        size=(len(places), 4)
    )
    return there, np.column_stack([there + away, maps])


@pytest.mark.parametrize("name", WARPS)
@pytest.mark.parametrize("light", ["same", "gain and offset", "noise"])
def test_known_warps_are_found(rng, texture, as_photograph, inner_places, name, light):
    matrix, shift = WARPS[name]
    one, two = texture(SHAPE), texture(SHAPE, matrix, shift)
    if light == "gain and offset":
        two = 20 + 0.6 * two
    if light == "noise":
        one, two = (image + 3 * rng.normal(size=SHAPE) for image in (one, two))
    places = inner_places(300, SHAPE, matrix, shift)
    there, guess = guesses(rng, places, matrix, shift)
    one, two = (make_pyramid(as_photograph(image)) for image in (one, two))
    rough = fit_places(one, two, places, guess, 1, ROUGH)
    found = fit_places(one, two, places, rough.found, 0, EXACT)
    noisy = light == "noise"
    assert (found.correlation > (0.9 if noisy else 0.98)).all()
    off = np.linalg.norm(found.found[:, :2] - there, axis=1)
    assert np.median(off) < (0.12 if noisy else 0.065 if name in UNEVEN else 0.02)
    differ = np.abs(found.found[:, 2:] - matrix.ravel()).max(axis=1)
    assert np.median(differ) < (0.04 if noisy else 0.02) * np.sqrt(abs(np.linalg.det(matrix)))


@pytest.mark.parametrize("name", WARPS)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_compiled_fits_are_as_defined(rng, texture, as_photograph, name, level):
    matrix, shift = WARPS[name]
    one, two = (
        make_pyramid(as_photograph(image))
        for image in (texture(SHAPE), texture(SHAPE, matrix, shift))
    )
    places = rng.uniform(
        0, [SHAPE[1] - 1, SHAPE[0] - 1], (40, 2)
    )  # windows beyond the border, too
    _, guess = guesses(rng, places, matrix, shift, off=2.0)
    rule = Rule(9, 2, 4.0, 0.05)
    found = fit_places(one, two, places, guess, level, rule)
    same = 0
    for k in range(len(places)):
        expected = fit_place(
            one, two, places[k], guess[k, :2], guess[k, 2:].reshape(2, 2), level, rule
        )
        if expected is None:
            assert found.correlation[k] == -1
            np.testing.assert_array_equal(found.found[k], guess[k])
            continue
        same += abs(found.correlation[k] - expected.correlation) < 1e-4 and bool(
            np.allclose(found.found[k, :2], expected.place, atol=1e-2)
            and np.allclose(found.found[k, 2:], expected.map.ravel(), atol=1e-2)
            and np.isclose(found.texture[k], expected.texture, rtol=1e-3)
        )
    fits = int((found.correlation > -1).sum())
    assert fits > 10
    assert same >= 0.95 * fits  # one in single precision may take one step more


def test_maps_by_the_root_of_two_take_the_levels_of_the_definition(rng, texture, as_photograph):
    """As between keypoints of octaves; which level is nearest must not be a matter of rounding."""
    one = make_pyramid(as_photograph(texture(SHAPE)))
    places = rng.uniform(60, 200, (60, 2))
    for scale in (0.5**0.5, 2**0.5):
        turns = rng.uniform(0, 2 * np.pi, 60)
        cos, sin = scale * np.cos(turns), scale * np.sin(turns)
        guess = np.column_stack([places, cos, -sin, sin, cos])
        rule = Rule(0, 0, 4.0, 0.1)  # no step: what is compared is what is sampled
        found = fit_places(one, one, places, guess, 0, rule)
        for k in range(len(places)):
            local = guess[k, 2:].reshape(2, 2)
            expected = fit_place(one, one, places[k], places[k], local, 0, rule)
            assert found.correlation[k] == pytest.approx(expected.correlation, abs=1e-4)
            assert found.texture[k] == pytest.approx(expected.texture, rel=1e-3)


def test_texture_of_a_wave_is_none_and_that_of_two_is_in_closed_form():
    """Deviation 1: A cos(k x) has the mean square derivative k^2, along x alone."""
    x = np.arange(200)
    wave = np.cos(2 * np.pi * x / 10)
    one_way = np.tile(128 + 60 * wave, (200, 1)).astype(np.uint8)
    both = (128 + 40 * (wave + wave[:, None])).astype(np.uint8)
    place, guess = np.array([[100.0, 100]]), np.array([[100.0, 100, 1, 0, 0, 1]])
    textures = []
    for image in (one_way, both):
        pyramid = make_pyramid(image)
        textures.append(fit_places(pyramid, pyramid, place, guess, 0, EXACT).texture[0])
    assert textures[0] < 1e-3
    # Of central differences: sin(k)^2 each, of which each way has half of the variance.
    assert textures[1] == pytest.approx(np.sin(2 * np.pi / 10) ** 2 / 2, rel=0.1)


def test_the_same_whatever_the_number_of_threads(rng, texture, as_photograph):
    matrix, shift = WARPS["turned"]
    one, two = (
        make_pyramid(as_photograph(image))
        for image in (texture(SHAPE), texture(SHAPE, matrix, shift))
    )
    places = rng.uniform(0, 250, (101, 2))
    _, guess = guesses(rng, places, matrix, shift)
    expected = fit_places(one, two, places, guess, 1, ROUGH)
    for threads in (2, 3, 7):
        found = fit_places(one, two, places, guess, 1, ROUGH, threads)
        for one_array, other in zip(expected, found, strict=True):
            assert one_array.tobytes() == other.tobytes()


HOSTILE = [
    [np.nan, 5, 1, 0, 0, 1],
    [5, np.inf, 1, 0, 0, 1],
    [5, 5, np.nan, 0, 0, 1],
    [5, 5, np.inf, 0, 0, 1],
    [5, 5, 0, 0, 0, 0],
    [5, 5, 1e300, 0, 0, 1e-300],
    [5, 5, 1e5, 0, 0, 1e-5],
    [5, 5, 9e3, 0, 0, 1e-4],
    [5, 5, -1, 0, 0, 1],
    [5, 5, 1e-2, 0, 0, 1.1e-2],
    [5, 5, 99, 0, 0, 99],
    [-1e9, 1e9, 1, 0, 0, 1],
    [1e300, -1e300, 1, 0, 0, 1],
    [0, 0, 1, 0, 0, 1],
]


@pytest.mark.parametrize("shape", [(1, 1), (1, 90), (90, 1), (2, 3), (8, 8), (70, 90)])
def test_hostile_maps_and_tiny_photographs_are_survived(rng, shape):
    """Where a window leaves the photograph its border goes on; no other memory is read."""
    image = rng.integers(0, 256, shape).astype(np.uint8)
    pyramid = make_pyramid(image)
    guess = np.array(HOSTILE, np.float64)
    places = np.full((len(guess), 2), 0.0)
    places[::2] = np.array(shape[::-1]) - 1.0
    for level in (0, 1, 5):
        found = fit_places(pyramid, pyramid, places, guess, level, ROUGH)
        assert (found.correlation >= -1).all()
        assert (found.correlation < 1.001).all()
        refused = found.correlation == -1
        np.testing.assert_array_equal(found.found[refused], guess[refused])
        assert np.isfinite(found.found[~refused]).all()
        assert refused[[0, 1, 2, 3, 4, 5, 6, 11, 12]].all()


@pytest.mark.parametrize("place", [(np.nan, 4), (-0.5, 4), (4, 1e300), (np.inf, 4), (70.01, 4)])
def test_places_outside_have_no_fit(rng, place):
    pyramid = make_pyramid(rng.integers(0, 256, (60, 71)).astype(np.uint8))
    found = fit_places(
        pyramid, pyramid, np.array([place]), np.array([[9.0, 9, 1, 0, 0, 1]]), 0, EXACT
    )
    assert found.correlation.tolist() == [-1]


def test_constant_photographs_have_no_fit():
    pyramid = make_pyramid(np.full((80, 80), 9, np.uint8))
    guess = np.array([[40.0, 40, 1, 0, 0, 1]])
    assert fit_places(pyramid, pyramid, guess[:, :2], guess, 0, EXACT).correlation[0] == -1
    assert fit_place(pyramid, pyramid, guess[0, :2], guess[0, :2], np.eye(2), 0, EXACT) is None


def test_parts_cover_all():
    for n, count in ((0, 1), (0, 3), (5, 7), (10, 3)):
        assert [k for start, stop in parts_of(n, count) for k in range(start, stop)] == [*range(n)]

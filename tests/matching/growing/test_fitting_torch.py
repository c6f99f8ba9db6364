"""Fits as tensor operations: against warps in closed form, and against the compiled ones."""

import numpy as np
import pytest

from mkdesc import Features, match_descriptors, match_images
from mkdesc.images import read_gray
from mkdesc.images.demo import write_demo
from mkdesc.matching.growing.arguments import checked_guesses
from mkdesc.matching.growing.dense import grow_dense
from mkdesc.matching.growing.fitting import EXACT, ROUGH, Fits, fit_places
from mkdesc.matching.growing.grow import grow_matches
from mkdesc.matching.growing.pyramid import make_pyramid

torch = pytest.importorskip("torch")

from mkdesc.matching.growing import fitting_torch  # noqa: E402

#: On "cpu" there are compiled loops; "cpu:0" is PyTorch's.
DEVICES = ["cpu:0", *(["cuda"] if torch.cuda.is_available() else [])]
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


def on_device(one, two, *arguments, device="cpu:0"):
    return fitting_torch.make_fitter(torch.device(device), one, two)(one, two, *arguments)


def assert_agree(found: Fits, expected: Fits, guess):
    """The same fits but for one in a hundred, and of these as many within .05 px."""
    fits, others = found.correlation > -1, expected.correlation > -1
    assert others.sum() > 50
    assert (fits == others).mean() >= 0.99
    np.testing.assert_array_equal(found.found[~fits], guess[~fits])
    both = fits & others
    off = np.linalg.norm((found.found - expected.found)[both, :2], axis=1)
    assert (off < 0.05).mean() >= 0.99
    for name in ("found", "correlation", "texture"):
        values, others = getattr(found, name)[both], getattr(expected, name)[both]
        close = np.isclose(values, others, rtol=1e-3, atol=1e-2 if name == "found" else 1e-4)
        assert close.mean() >= 0.99, name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", WARPS)
def test_known_warps_are_found_where_the_compiled_fits_find_them(
    rng, texture, as_photograph, name, device
):
    matrix, shift = WARPS[name]
    one, two = (
        make_pyramid(as_photograph(image))
        for image in (texture(SHAPE), texture(SHAPE, matrix, shift))
    )
    places = rng.uniform(0, [SHAPE[1] - 1, SHAPE[0] - 1], (400, 2))  # of the border, too
    there = places @ matrix.T + shift
    scale = np.sqrt(abs(np.linalg.det(matrix)))
    guess = np.column_stack(
        [
            there + rng.normal(size=(400, 2)),
            matrix.ravel() + 0.05 * scale * rng.normal(size=(400, 4)),
        ]
    )
    for level in (2, 1):
        expected = fit_places(one, two, places, guess, level, ROUGH)
        rough = on_device(one, two, places, guess, level, ROUGH, device=device)
        assert_agree(rough, expected, guess)
    expected = fit_places(one, two, places, rough.found, 0, EXACT)
    found = on_device(one, two, places, rough.found, 0, EXACT, device=device)
    assert_agree(found, expected, rough.found)
    good = found.correlation > 0.98
    assert np.median(np.linalg.norm(found.found[good, :2] - there[good], axis=1)) < 0.065
    assert np.median(np.abs(found.found[good, 2:] - matrix.ravel()).max(axis=1)) < 0.02 * scale


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Two photographs of a street, their keypoints (N, 4), and mutual nearest neighbours."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)
    images = [read_gray(folder / f"street_{name}.jpg") for name in "ab"]
    (a, da), (b, db) = (Features(1000).extract(image) for image in images)
    return *images, a.points, b.points, match_descriptors(da, db, ratio=None).pairs


@pytest.mark.parametrize("device", DEVICES)
def test_photographs_have_the_fits_of_the_compiled_loops(demo, device):
    one, two = (make_pyramid(image) for image in demo[:2])
    given = checked_guesses(*demo[2:], None)
    places, guess = given.places_a[given.pairs[:, 0]], given.guess
    for level, rule in ((2, ROUGH), (1, ROUGH), (0, EXACT)):
        expected = fit_places(one, two, places, guess, level, rule)
        assert_agree(
            on_device(one, two, places, guess, level, rule, device=device), expected, guess
        )
        guess = expected.found


@pytest.mark.parametrize("device", DEVICES)
def test_matches_grow_as_with_compiled_fits(demo, device):
    expected = grow_matches(*demo)
    found = grow_matches(*demo, device=device)
    assert_same_matches(found, expected)
    dense = grow_dense(*demo[:2], expected, 16)
    assert_same_matches(grow_dense(*demo[:2], expected, 16, device=device), dense)


def assert_same_matches(found, expected):
    """But for two in a hundred: what grows from one that differs may differ, too."""
    assert len(expected.points_a) > 300
    rows = {tuple(at): k for k, at in enumerate(expected.points_a.round(1))}
    both = [(k, rows.get(tuple(at), -1)) for k, at in enumerate(found.points_a.round(1))]
    both = np.array([pair for pair in both if pair[1] >= 0])
    assert len(both) >= 0.98 * max(len(found.points_a), len(expected.points_a))
    off = found.points_b[both[:, 0]] - expected.points_b[both[:, 1]]
    assert (np.linalg.norm(off, axis=1) < 0.05).mean() >= 0.99


@pytest.mark.parametrize("name", ["cpu", *DEVICES])
def test_photographs_are_matched_where_their_features_are_made(demo, name, monkeypatch):
    calls = []

    def watched(*arguments):
        calls.append(arguments)
        return fit(*arguments)

    fit = fitting_torch.fit_places
    monkeypatch.setattr(fitting_torch, "fit_places", watched)
    found = match_images(*demo[:2], Features(500, device=name))
    assert found.verdict == "verified"
    assert bool(calls) == (name != "cpu")


def test_many_are_fitted_in_parts(demo, monkeypatch):
    one, two = (make_pyramid(image) for image in demo[:2])
    given = checked_guesses(*demo[2:], None)
    arguments = one, two, given.places_a[given.pairs[:, 0]], given.guess, 2, ROUGH
    expected = on_device(*arguments)
    monkeypatch.setattr(fitting_torch, "MOST_AT_ONCE", 50)
    for values, others in zip(on_device(*arguments), expected, strict=True):
        np.testing.assert_allclose(values, others, atol=1e-3)
    for values in on_device(one, two, np.empty((0, 2)), np.empty((0, 6)), 0, EXACT):
        assert len(values) == 0


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
    [5, 5, 99, 0, 0, 99],
    [1e300, -1e300, 1, 0, 0, 1],
    [0, 0, 1, 0, 0, 1],
]


@pytest.mark.parametrize("shape", [(1, 1), (1, 90), (90, 1), (2, 3), (8, 8), (70, 90)])
def test_hostile_maps_and_tiny_photographs_are_survived(rng, shape):
    pyramid = make_pyramid(rng.integers(0, 256, shape).astype(np.uint8))
    guess = np.array(HOSTILE)
    places = np.zeros((len(guess), 2))
    places[::2] = np.array(shape[::-1]) - 1.0
    for level in (0, 1, 5):
        found = on_device(pyramid, pyramid, places, guess, level, ROUGH)
        expected = fit_places(pyramid, pyramid, places, guess, level, ROUGH)
        refused = found.correlation == -1
        np.testing.assert_array_equal(refused, expected.correlation == -1)
        np.testing.assert_array_equal(found.found[refused], guess[refused])
        assert np.isfinite(found.found[~refused]).all()
        np.testing.assert_allclose(found.texture, expected.texture, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("place", [(np.nan, 4), (-0.5, 4), (4, 1e300), (np.inf, 4), (70.01, 4)])
def test_places_outside_have_no_fit(rng, place):
    pyramid = make_pyramid(rng.integers(0, 256, (60, 71)).astype(np.uint8))
    guess = np.array([[9.0, 9, 1, 0, 0, 1]])
    found = on_device(pyramid, pyramid, np.array([place]), guess, 0, EXACT)
    assert found.correlation.tolist() == [-1]


def test_constant_photographs_have_no_fit():
    pyramid = make_pyramid(np.full((80, 80), 9, np.uint8))
    guess = np.array([[40.0, 40, 1, 0, 0, 1]])
    assert on_device(pyramid, pyramid, guess[:, :2], guess, 0, EXACT).correlation.tolist() == [-1]


@pytest.mark.parametrize("device", ["nowhere", "cuda:99"])
def test_devices_that_are_not_there_are_refused(device):
    image = np.zeros((9, 9), np.uint8)
    with pytest.raises(ValueError, match="device: "):
        grow_matches(image, image, [[1, 1]], [[1, 1]], [[0, 0]], device=device)

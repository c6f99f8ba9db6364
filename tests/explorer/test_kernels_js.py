"""The page's mathematics against Python's, function by function, in a real browser."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mkdesc
from mkdesc.explorer.data import page_data
from mkdesc.visual.inspection import contributions
from mkdesc.visual.whitenings import load_whitening

RAW = [
    "polar",
    "polar+cartesian",
    "cartesian-relative",
    "extended",
    "rho(4.5,3)*relative_theta(2,1) + x(30,4)",
    "standard: rho(8,2)*intensity(1)*theta(3,2) + y(1,1)*shape",
]
LOOKS = {
    "p": {"theta": 0.4, "intensity": -0.3, "shape": [-0.6, 0.0, 0.8]},
    "q": {"theta": -1.1, "intensity": 0.7, "shape": [0.0, 1.0, 0.0]},
}


@pytest.fixture(scope="module")
def compute(browser, address):
    """Runs JavaScript with the page's modules ``k`` and ``p``, its ``data``, and ``arg``."""
    page = browser.new_page()
    page.goto(address)
    page.evaluate(
        """async () => {
          window.k = await import("/kernels.js");
          window.p = await import("/patches.js");
          window.data = await (await fetch("/data.json")).json();
          window.h = await import("/heads.js");
          data.models = data.models.map(h.decodeModel);
        }"""
    )
    # As text: playwright's own way with long arrays is slow.
    run = "(text) => {{ const arg = JSON.parse(text); return JSON.stringify((() => {{ {} }})()) }}"
    yield lambda code, arg: json.loads(page.evaluate(run.format(code), json.dumps(arg)))
    page.close()


@pytest.fixture(scope="module")
def patches():
    rng = np.random.default_rng(5)
    smooth = rng.random((3, 64, 64)).cumsum(axis=1).cumsum(axis=2) % 40
    patches = (smooth * 6).astype(np.uint8)
    patches[2, 20:40] = 90  # flat areas have no direction
    return patches


@pytest.mark.parametrize(("kappa", "n"), [(0.3, 1), (1, 1), (8, 3), (64, 6), (900, 2)])
def test_kernels(compute, kappa, n):
    kernel, deltas = mkdesc.VonMises(kappa, n), np.linspace(-4, 4, 33)
    code = """const a = k.coefficients(arg.kappa, arg.n);
        return [[...a], arg.deltas.map((d) => k.vonMises(arg.kappa, d)),
                arg.deltas.map((d) => k.truncated(a, d))]"""
    arg = {"kappa": kappa, "n": n, "deltas": deltas.tolist()}
    a, exact, truncated = compute(code, arg)
    np.testing.assert_allclose(a, kernel.coefficients, atol=1e-12)
    np.testing.assert_allclose(exact, kernel(deltas), atol=1e-12)
    np.testing.assert_allclose(truncated, kernel.approximate(deltas), atol=1e-12)


@pytest.mark.parametrize("text", [*RAW, "1", "x(1,1)*x(2,1)", "shape", "phi(8,1.5)", "x(-1,2)"])
def test_parametrizations_are_read_as_python_reads_them(compute, text):
    code = """try { const read = k.parseParametrization(arg, data);
        return [k.formatParametrization(read), k.parametrizationDims(read)] }
        catch (error) { return null }"""
    try:
        python = mkdesc.as_parametrization(text)
    except ValueError:
        assert compute(code, text) is None
    else:
        assert compute(code, text) == [str(python), python.dims]


MAP = """const kernels = k.parseParametrization(arg.kernels, data);
    const model = data.models.find(({name}) => name === arg.whitening) ?? null;
    const features = k.mapFeatures(kernels, arg.q, 64, data);
    const { row, column, p } = arg;
    return [...k.patchMap(kernels, row, column, p, features, 64, model && model.linear, data)]"""


def python_map(pixel, kernels, whitening=None):
    looks = {f"{who}_{name}": v for who, look in LOOKS.items() for name, v in look.items()}
    return mkdesc.patch_map(pixel, kernels, whitening=whitening, **looks)


@pytest.mark.parametrize("kernels", RAW)
def test_patch_maps(compute, kernels):
    for row, column in ((20, 13), (31.5, 32)):
        arg = {"kernels": kernels, "row": row, "column": column, **LOOKS}
        expected = python_map((row, column), kernels)
        np.testing.assert_allclose(compute(MAP, arg), expected.ravel(), atol=1e-6)


def test_whitened_patch_maps(compute):
    models = page_data()["models"]
    assert len(models) >= 8
    for model in models:
        kernels, name = model["parametrization"], model["name"]
        if load_whitening(name).effective_head().linear() is None:
            continue
        arg = {"kernels": kernels, "whitening": name, "row": 9, "column": 40, **LOOKS}
        # Names of bundled models and whitenings differ, so that one name stands for both.
        expected = python_map((9, 40), kernels, name).ravel()
        scale = np.abs(expected).max()
        np.testing.assert_allclose(
            np.divide(compute(MAP, arg), scale), expected / scale, atol=1e-5
        )


DESCRIBE = """const kernels = k.parseParametrization(arg.kernels, data);
    const model = data.models.find(({name}) => name === arg.whitening) ?? null;
    const patches = arg.patches.map((patch) => Float64Array.from(patch));
    const raw = patches.map((patch) => p.rawDescription(patch, kernels, data));
    const done = raw.map((one) => p.whiten(one, model));
    const shares = [[0, 1], [1, 0]].map(([i, j]) =>
        p.pixelShares(raw[i], done[i], done[j]));
    return {units: done.map(({unit}) => [...unit]), shares: shares.map((s) => [...s])}"""


def check_shares(shares, expected, looser=1):
    *maps, score = expected
    for share, there in zip(shares, maps, strict=True):
        scale = np.abs(there).max()
        np.testing.assert_allclose(
            np.divide(share, scale), there.ravel() / scale, atol=looser * 1e-4
        )
        assert sum(share) == pytest.approx(score, abs=looser * 2e-5)


@pytest.mark.parametrize("kernels", RAW)
def test_raw_descriptors_and_shares(compute, patches, kernels):
    arg = {"kernels": kernels, "patches": patches.reshape(3, -1).tolist()}
    found = compute(DESCRIBE, arg)
    expected = mkdesc.MKD(kernels, backend="reference").transform(patches)
    np.testing.assert_allclose(found["units"], expected, atol=1e-5)
    check_shares(found["shares"], contributions(*patches[:2], kernels))


def test_whitened_descriptors_and_shares(compute, patches):
    hidden = 0
    for model in page_data()["models"]:
        kernels, name = model["parametrization"], model["name"]
        mkd = load_whitening(name)
        cut = patches[:, : mkd.patch_size, : mkd.patch_size]
        arg = {"kernels": kernels, "whitening": name, "patches": cut.reshape(3, -1).tolist()}
        found = compute(DESCRIBE, arg)
        # Hidden layers come in half precision.
        looser = 1 if mkd.effective_head().linear() is not None else 50
        hidden += looser > 1
        expected = mkd.transform(cut)
        np.testing.assert_allclose(found["units"], expected, atol=looser * 2e-5, err_msg=name)
        check_shares(found["shares"], contributions(*cut[:2], kernels, name), looser)
    assert hidden == 1  # photo-net looks at several squares, which the page leaves out


def test_cutting_whole_pixels_changes_nothing(compute, rng):
    image = rng.integers(0, 256, (96, 96), np.uint8)
    code = """const image = {width: 96, height: 96, pixels: arg.image};
        return [...p.cutSquare(image, arg.frame, 64)]"""
    arg = {"image": image.ravel().tolist(), "frame": {"x": 48, "y": 48, "side": 64}}
    np.testing.assert_array_equal(compute(code, arg), image[16:80, 16:80].ravel())
    arg["frame"] = {"x": 50, "y": 47, "side": 64, "angle": np.pi / 2}
    expected = np.rot90(image[15:79, 18:82])
    np.testing.assert_allclose(compute(code, arg), expected.ravel(), atol=1e-6)

"""Matching by PyTorch, for several pairs at once and on any device, against compiled code."""

import numpy as np
import pytest

from mkdesc.heads.quantise import quantise
from mkdesc.matching.nearest import match_descriptors

torch = pytest.importorskip("torch")

from mkdesc.matching import nearest_torch  # noqa: E402
from mkdesc.matching.nearest_torch import match_padded  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture
def pair(rng):
    """Unit vectors, most of the second set near one of the first."""

    def unit(x):
        return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)

    a = unit(rng.normal(size=(150, 40)))
    return a, unit(np.concatenate([a[20:110] + 0.05 * rng.normal(size=(90, 40)),
                                   rng.normal(size=(70, 40))]))  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("limits", [{}, {"ratio": 0.9}, {"mutual": False}, {"max_distance": 0.3}])
@pytest.mark.parametrize("output", ["float32", "uint8", "int8"])
def test_padded_pairs_match_as_each_alone(pair, output, limits, device, monkeypatch):
    monkeypatch.setattr(nearest_torch, "PLAIN_COLUMNS", 64)  # in several blocks
    a, b = (quantise(x, output) for x in pair)
    if output != "float32" and "max_distance" in limits:
        limits = {"max_distance": 0.3 * 256}
    both = [torch.from_numpy(np.stack(x)).to(device) for x in ((a, a[::-1]), (b, b))]
    counts = [torch.tensor(x, device=device) for x in ((140, 150), (150, 160))]
    found = match_padded(*both, *counts, **limits)
    for k, (x, n, m) in enumerate(((a, 140, 150), (a[::-1], 150, 160))):
        expected = match_descriptors(x[:n], b[:m], **limits)
        assert len(expected.pairs) > 30
        indices = found.indices[k].cpu().numpy()
        rows = np.flatnonzero(indices >= 0)
        np.testing.assert_array_equal(np.column_stack([rows, indices[rows]]), expected.pairs)
        distances = found.distances[k].cpu().numpy()
        np.testing.assert_allclose(distances[rows], expected.distances, rtol=1e-4, atol=1e-4)
        assert np.isinf(np.delete(distances, rows)).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("output", ["float32", "uint8"])
def test_arrays_on_a_device(pair, output, device):
    a, b = (quantise(x, output) for x in pair)
    for limits in ({}, {"ratio": 0.9, "mutual": False}):
        expected = match_descriptors(a, b, **limits)
        found = match_descriptors(a, b, device=device, **limits)
        np.testing.assert_array_equal(found.pairs, expected.pairs)
        np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-5)
    assert len(match_descriptors(a[:0], b, device=device).pairs) == 0


def test_half_precision_finds_nearly_the_same(pair):
    a, b = map(torch.from_numpy, pair)
    full, half = match_padded(a, b).indices, match_padded(a, b, half=True).indices
    assert (full == half).float().mean() > 0.97


def test_what_has_nothing_to_match(pair):
    a = torch.from_numpy(pair[0])[None]
    none = torch.zeros(1, dtype=torch.int64)
    assert (match_padded(a, a[:, :0]).indices == -1).all()
    assert match_padded(a[:, :0], a).indices.shape == (1, 0)
    assert (match_padded(a, a, None, none).indices == -1).all()
    assert (match_padded(a, a, none).indices == -1).all()


def test_what_does_not_fit_is_refused(pair):
    a = torch.from_numpy(pair[0])[None]
    with pytest.raises(ValueError, match=r"expected \(P, N, D\) and \(P, M, D\), got"):
        match_padded(a, a[..., :7])
    with pytest.raises(ValueError, match=r"of one type, got torch.float32 and torch.uint8"):
        match_padded(a, a.byte())
    with pytest.raises(ValueError, match="device: expected cpu, cuda"):
        match_descriptors(*pair, device="nowhere")

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from mkdesc.heads import statistics
from mkdesc.heads.statistics import Statistics

SUMS = ("mean", "scatter", "differences")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(statistics, "BLOCK", 7)


def same(a, b, rtol=1e-10):
    assert (a.n, a.n_pairs, a.dims) == (b.n, b.n_pairs, b.dims)
    for name in SUMS:
        scale = np.abs(getattr(b, name)).max() or 1
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=rtol * scale)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 2**32))
def test_labels_mean_all_pairs_of_equal_labels(labels, seed):
    X = np.random.default_rng(seed).normal(size=(len(labels), 3)).astype(np.float32)
    found = Statistics(3).update(X, np.array(labels, int))
    pairs = [(i, j) for i, j in itertools.combinations(range(len(X)), 2) if labels[i] == labels[j]]
    differences = np.zeros((3, 3))
    for i, j in pairs:
        d = X[i].astype(float) - X[j]
        differences += np.outer(d, d)
    assert found.n_pairs == len(pairs)
    np.testing.assert_allclose(found.differences, differences, atol=1e-10)
    by_pairs = Statistics(3).update(X, pairs=tuple(np.array(pairs, int).reshape(-1, 2).T))
    same(found, by_pairs)


def test_moments_are_numpys(rng):
    X = rng.normal(size=(50, 4))
    found = Statistics(4).update(X)
    np.testing.assert_allclose(found.mean, X.mean(axis=0))
    np.testing.assert_allclose(found.covariance, np.cov(X.T, bias=True), atol=1e-12)


@pytest.mark.parametrize("offset", [1e6, 1e8])
@pytest.mark.parametrize("way", ["one pass", "added", "saved"])
def test_data_far_from_the_origin_lose_no_digits(rng, tmp_path, offset, way):
    X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)) + offset
    expected = np.cov((X - offset).T, bias=True)
    found = Statistics(4).update(X)
    if way == "added":
        found = Statistics(4).update(X[:200]) + Statistics(4).update(X[200:])
    if way == "saved":
        found.save(tmp_path / "s.safetensors")
        found = Statistics.load(tmp_path / "s.safetensors")
    np.testing.assert_allclose(found.covariance, expected, atol=1e-6)
    np.testing.assert_allclose(found.mean - offset, (X - offset).mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found.columns(1, 3).covariance, expected[1:3, 1:3], atol=1e-6)


def test_the_power_is_applied_and_remembered(rng, tmp_path):
    X, labels = rng.normal(size=(60, 4)), np.repeat(np.arange(30), 2)
    raised = np.sign(X) * np.abs(X) ** 0.6
    raised /= np.linalg.norm(raised, axis=1, keepdims=True)
    found = Statistics(4, power=0.6).update(X, labels)
    np.testing.assert_allclose(found.covariance, np.cov(raised.T, bias=True), atol=1e-12)
    difference = raised[::2] - raised[1::2]
    np.testing.assert_allclose(found.differences, difference.T @ difference, atol=1e-10)
    alone = Statistics(4, power=0.6).update_differences(X[::2], X[1::2])
    np.testing.assert_allclose(alone.differences, difference.T @ difference, atol=1e-10)
    found.save(tmp_path / "s.safetensors")
    assert Statistics.load(tmp_path / "s.safetensors").power == 0.6
    assert (found + found).power == 0.6
    with pytest.raises(ValueError, match=r"cannot add statistics of the powers 0\.6 and 1"):
        found + Statistics(4)
    with pytest.raises(ValueError, match=r"power: expected statistics without one, got 0\.6"):
        found.columns(0, 2)
    for power in (0, 2, "half"):
        with pytest.raises(ValueError, match="power: expected a number > 0 and <= 1"):
            Statistics(4, power=power)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ('{"schema": 3, "power": 1}', "its schema is 3; this version reads 2"),
        ('{"schema": 2, "power": "x"}', "power: expected a number"),
        ('{"schema": 2, "power": true}', "power: expected a number"),
        ("", "not JSON with schema and power"),
        ('{"schema": 2, "power": null}', "power: expected a number"),
        ('{"schema": 2}', "not JSON with schema and power"),
        ("[" * 100_000, "not JSON with schema and power"),
    ],
)
def test_notes_that_are_not_understood_are_refused(tmp_path, about, message):
    sums = {"mean": np.zeros(2), "scatter": np.eye(2), "differences": np.eye(2)}
    path = tmp_path / "s.safetensors"
    notes = {"mkdesc": "statistics", "about": about}
    save_file(sums | {"counts": np.array([3, 1])}, path, notes)
    with pytest.raises(ValueError, match=rf"s\.safetensors: .*{message}"):
        Statistics.load(path)


def test_adding_changes_neither(rng):
    a, b = (Statistics(3).update(rng.normal(size=(9, 3)), np.arange(9) // 2) for _ in range(2))
    kept = [[np.copy(getattr(s, name)) for name in SUMS] for s in (a, b)]
    (a + b).update(rng.normal(size=(9, 3)), np.arange(9) // 2)
    for s, sums in zip((a, b), kept, strict=True):
        for name, before in zip(SUMS, sums, strict=True):
            np.testing.assert_array_equal(getattr(s, name), before)


def test_chunks_in_any_order_equal_one_pass(rng):
    X = rng.normal(size=(300, 5)).astype(np.float32)
    labels = np.sort(rng.integers(0, 60, 300))
    whole = Statistics(5).update(X, labels)
    cuts = np.flatnonzero(np.diff(labels)) + 1  # keep the views of a point together
    chunks = list(zip(np.split(X, cuts), np.split(labels, cuts), strict=True))
    streamed = Statistics(5)
    for x, y in chunks[::-1]:
        streamed.update(x, y)
    same(streamed, whole)
    merged = sum((Statistics(5).update(x, y) for x, y in chunks), Statistics(5))
    same(merged, whole)


def test_saved_and_loaded(tmp_path, rng):
    stats = Statistics(3).update(rng.normal(size=(20, 3)), np.repeat(np.arange(10), 2))
    stats.save(tmp_path / "s.safetensors")
    same(Statistics.load(tmp_path / "s.safetensors"), stats, rtol=0)


@pytest.mark.parametrize("spoil", ["truncate", "nan", "shape", "other"])
def test_bad_files_are_refused(tmp_path, rng, spoil):
    path = tmp_path / "s.safetensors"
    stats = Statistics(3).update(rng.normal(size=(20, 3)))
    if spoil == "nan":
        stats.scatter[0, 0] = np.nan
    if spoil == "shape":
        stats.scatter = stats.scatter[:2]
    stats.save(path)
    if spoil == "truncate":
        path.write_bytes(path.read_bytes()[:-9])
    if spoil == "other":
        path.write_bytes(b"something else entirely")
    with pytest.raises(ValueError, match=r"s\.safetensors: "):
        Statistics.load(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [1, 2]}, r"labels: expected one per descriptor, \(4,\), got \(2,\)"),
        ({"pairs": ([0], [4])}, "pair 0 points to 4, beyond 4 descriptors"),
        ({"pairs": ([-1], [2])}, "pair 0 points to -1"),
        ({"pairs": ([0, 1], [2])}, "two arrays of one length"),
        ({"pairs": ([0.5], [1.0])}, "integer indices"),
        ({"pairs": ([0],)}, "expected two arrays"),
        ({"labels": [1, 1, 2, 2], "pairs": ([0], [1])}, "expected one of them, got both"),
    ],
)
def test_bad_matches_are_refused_and_change_nothing(options, message):
    stats = Statistics(2)
    with pytest.raises(ValueError, match=message):
        stats.update(np.zeros((4, 2)), **options)
    assert (stats.n, stats.n_pairs) == (0, 0)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(3), r"X: expected shape \(N, 3\), got \(3,\)"),
        (np.zeros((2, 5)), r"X: expected shape \(N, 3\), got \(2, 5\)"),
        (np.array([[0, 0, 0], [0, np.nan, 0]]), r"X\[1\] has NaN"),
        (np.zeros((2, 3), complex), "real numbers"),
    ],
)
def test_bad_descriptors_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        Statistics(3).update(X)


def test_too_little_data_is_said():
    with pytest.raises(ValueError, match="at least 2 descriptors, got 0"):
        _ = Statistics(3).covariance
    with pytest.raises(ValueError, match="at least 1 matching pairs"):
        _ = Statistics(3).pair_covariance
    with pytest.raises(ValueError, match="3 and 4 dimensions"):
        Statistics(3) + Statistics(4)

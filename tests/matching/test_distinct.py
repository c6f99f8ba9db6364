"""Neighbours that stand out, against the definition in plain numpy."""

import numpy as np
import pytest

from mkdesc.matching import distinct
from mkdesc.matching.distinct import match_distinct


def by_definition(a, b, at_a, at_b, ratio, apart):
    distances = np.linalg.norm(a[:, None].astype(float) - b[None], axis=2)
    found = {}
    for i, row in enumerate(distances):
        j = int(row.argmin())
        elsewhere = np.linalg.norm(at_b - at_b[j], axis=1) > apart
        if not elsewhere.any():
            continue
        value = row[j] / row[elsewhere].min()
        back = int(distances[:, j].argmin())
        if value < ratio and np.linalg.norm(at_a[back] - at_a[i]) <= apart:
            found[i, j] = (row[j], value)
    return found


@pytest.fixture
def sets(rng):
    a = rng.normal(size=(150, 16)).astype(np.float32)
    b = np.concatenate([a[:100] + 0.3 * rng.normal(size=(100, 16)), rng.normal(size=(90, 16))])
    b = np.concatenate([b, b[:40] + 0.05 * rng.normal(size=(40, 16))]).astype(np.float32)
    at_a, at_b = rng.uniform(0, 200, (150, 2)), rng.uniform(0, 200, (230, 2))
    at_b[190:] = at_b[:40] + rng.normal(size=(40, 2))  # the same places once more
    return a, b, at_a, at_b


@pytest.mark.parametrize(("ratio", "apart"), [(0.8, 10), (0.95, 10), (0.8, 0), (1.0, 40)])
@pytest.mark.parametrize("at_a_time", [1000, 10_000_000])
def test_as_defined(sets, ratio, apart, at_a_time, monkeypatch):
    monkeypatch.setattr(distinct, "SCORES", at_a_time)
    expected = by_definition(*sets, ratio, apart)
    found = match_distinct(*sets, ratio=ratio, apart=apart)
    assert {tuple(pair) for pair in found.pairs.tolist()} == set(expected)
    for pair, distance, value in zip(found.pairs, found.distances, found.ratios, strict=True):
        assert (distance, value) == pytest.approx(expected[tuple(pair)], rel=1e-3)
    assert (np.diff(found.ratios) >= 0).all()
    assert len(expected) > 20


def test_the_same_place_twice_is_no_rival(sets):
    """Lowe's ratio drops what has a double; this one does not."""
    a, b, at_a, at_b = sets
    doubles = set(range(40))
    found = {int(i) for i in match_distinct(*sets, ratio=0.8).pairs[:, 0]}
    plain = {int(i) for i in match_distinct(a, b, at_a, at_b, ratio=0.8, apart=0).pairs[:, 0]}
    assert len(found & doubles) > 30
    assert len(plain & doubles) < 10


def test_nothing_and_nonsense(sets):
    a, b, at_a, at_b = sets
    assert len(match_distinct(a[:0], b, at_a[:0], at_b).pairs) == 0
    alone = match_distinct(a, b[:1], at_a, at_b[:1])  # nothing elsewhere that could be nearer
    assert 0 in alone.pairs[:, 0]
    assert (alone.ratios == 0).all()
    for arguments, options, message in (
        ((a, b, at_a[:3], at_b), {}, "places_a: expected"),
        ((a, b, at_a, at_b[:, :1]), {}, "places_b: expected"),
        ((a, b, at_a, at_b), {"ratio": 2}, "ratio: expected"),
        ((a, b, at_a, at_b), {"apart": -1}, "apart: expected"),
        ((a, b[:, :3], at_a, at_b), {}, "a and b: expected the same"),
    ):
        with pytest.raises(ValueError, match=message):
            match_distinct(*arguments, **options)

"""Matching against plain loops, OpenCV and known geometry."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkdesc import match_descriptors, verify_matches
from mkdesc.matching import nearest


def unit(rng, n, dims=32):
    x = rng.normal(size=(n, dims)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def plain(a, b, mutual, ratio, limit):
    """The definition."""
    distances = np.linalg.norm(a[:, None].astype(np.float64) - b, axis=2)
    pairs = []
    for i, row in enumerate(distances):
        j = row.argmin()
        second = np.sort(row)[1] if len(row) > 1 else np.inf
        good = not mutual or distances[:, j].argmin() == i
        good &= ratio is None or row[j] < ratio * second
        good &= limit is None or row[j] <= limit
        if good:
            pairs.append((i, int(j)))
    return pairs


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 40),
    m=st.integers(1, 40),
    seed=st.integers(0, 999),
    mutual=st.booleans(),
    ratio=st.sampled_from([None, 0.8, 0.95]),
    limit=st.sampled_from([None, 1.1]),
    kind=st.sampled_from(["float32", "uint8"]),
)
def test_it_is_what_the_definition_says(n, m, seed, mutual, ratio, limit, kind):
    rng = np.random.default_rng(seed)
    a, b = unit(rng, n, 8), unit(rng, m, 8)
    if kind == "uint8":  # many ties
        a, b = ((x * 3 + 4).astype(np.uint8) for x in (a, b))
        limit = limit and 3.5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest, "ROWS", 7)
        patch.setattr(nearest, "COLUMNS", 5)
        found = match_descriptors(a, b, mutual=mutual, ratio=ratio, max_distance=limit)
    expected = plain(a.astype(np.float32), b.astype(np.float32), mutual, ratio, limit)
    assert [tuple(pair) for pair in found.pairs.tolist()] == expected


def test_it_agrees_with_opencv():
    rng = np.random.default_rng(0)
    a, b = unit(rng, 500, 128), unit(rng, 400, 128)
    found = match_descriptors(a, b)
    theirs = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(a, b)
    assert [(m.queryIdx, m.trainIdx) for m in theirs] == [tuple(p) for p in found.pairs.tolist()]
    np.testing.assert_allclose([m.distance for m in theirs], found.distances, rtol=1e-4)
    ours = found.to_opencv()
    assert [(m.queryIdx, m.trainIdx) for m in ours] == [(m.queryIdx, m.trainIdx) for m in theirs]


@pytest.mark.parametrize(
    ("kind", "gain", "offset"),
    [
        ("float32", 1, 1e4),
        ("float64", 1, -1e9),
        ("float32", 1e19, 0),
        ("float32", 1e36, 0),
        ("float32", 1e-25, 0),
        ("float64", 1e-60, 0),
        ("float64", 1e-25, 1e-20),
        ("int32", 100, 2**24),
        ("int64", 100, -(2**40)),
        ("float16", 100, 500),
    ],
)
@pytest.mark.parametrize("ratio", [None, 0.9])
def test_vectors_of_any_size_and_place(kind, gain, offset, ratio):
    rng = np.random.default_rng(3)
    a = (rng.normal(size=(60, 16)) * gain + offset).astype(kind)
    b = (a[:40] + rng.normal(size=(40, 16)) * gain * 0.3).astype(kind)
    found = match_descriptors(a, b, ratio=ratio)
    # The definition in float64, after a scaling of its own against underflow.
    one, two = ((x.astype(np.float64) - offset) / gain for x in (a, b))
    expected = plain(one, two, True, ratio, None)
    assert [tuple(pair) for pair in found.pairs.tolist()] == expected
    assert len(expected) > 30
    i, j = found.pairs.T
    lengths = gain * np.linalg.norm(one[i] - two[j], axis=1)
    np.testing.assert_allclose(found.distances, lengths, rtol=1e-5, atol=1e-44)


def test_tiny_numbers_beside_those_of_float32():
    tiny = np.array([[1e-60, 0], [0, 1e-60], [0, 1e-61]])
    assert match_descriptors(np.zeros((1, 2), np.float32), tiny).pairs.tolist() == [[0, 2]]


def test_equal_vectors_are_at_no_distance():
    same = np.full((3, 4), 7e5, np.float32)
    found = match_descriptors(same, same)
    assert found.pairs.tolist() == [[0, 0]]
    assert found.distances.tolist() == [0]


def test_memory_does_not_grow_with_the_product():
    import tracemalloc

    rng = np.random.default_rng(0)
    a, b = unit(rng, 20_000, 16), unit(rng, 20_000, 16)
    match_descriptors(a[:10], b[:10])
    tracemalloc.start()
    match_descriptors(a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6 < 4 * len(a) * len(b)


def test_nothing_to_match():
    some = np.eye(3, dtype=np.float32)
    for a, b in ((some[:0], some), (some, some[:0]), (some[:0], some[:0])):
        found = match_descriptors(a, b, ratio=0.8)
        assert found.pairs.shape == (0, 2)
        assert found.to_opencv() == []


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((np.ones((2, 3)), np.ones((2, 4))), {}, "a and b: expected the same dimensions"),
        ((np.ones(3), np.ones((2, 3))), {}, "a: expected shape"),
        ((np.ones((2, 0)), np.ones((2, 0))), {}, "a: expected at least one dimension"),
        ((np.ones((2, 3)), np.full((2, 3), "1")), {}, "b: expected real numbers"),
        ((np.full((2, 3), 3e38), np.full((2, 3), -3e38)), {}, "expected distances that fit"),
        ((np.ones((2, 3)), np.ones((2, 3))), {"ratio": np.nan}, "ratio: expected"),
        ((np.ones((2, 3)), np.full((2, 3), np.nan)), {}, r"b\[0\] has NaN"),
        ((np.ones((2, 3)), np.ones((2, 3))), {"ratio": 1.5}, "ratio: expected"),
        ((np.ones((2, 3)), np.ones((2, 3))), {"max_distance": 0}, "max_distance: expected"),
    ],
)
def test_bad_descriptors_are_named(arguments, keywords, message):
    with pytest.raises(ValueError, match=message):
        match_descriptors(*arguments, **keywords)


@pytest.mark.parametrize(
    ("here", "there"),
    [("float32", "uint8"), ("uint8", "float64"), ("int8", "float32"), ("int8", "uint8")],
)
def test_other_types_are_refused(rng, here, there):
    a, b = (rng.integers(0, 100, (20, 8)).astype(kind) for kind in (here, there))
    for some in (a, a[:0]):
        with pytest.raises(ValueError, match=f"one type, got {here} and {there}"):
            match_descriptors(some, b)


def test_other_scales_are_refused(rng):
    a = unit(rng, 500)
    with pytest.raises(ValueError, match=r"of one scale, got lengths of about 1 and 512"):
        match_descriptors(a, 512 * a)
    with pytest.raises(ValueError, match=r"of one scale, got lengths of about 512 and 1"):
        match_descriptors((512 * a).astype(np.float64), a)


def test_scales_that_may_differ(rng):
    """Floats of any width, a contrast of 5, zeros, and sets too small to tell."""
    a = unit(rng, 60)
    everyone = [[i, i] for i in range(60)]
    assert match_descriptors(a, a.astype(np.float16)).pairs.tolist() == everyone
    assert match_descriptors(a, a.astype(np.float64)).pairs.tolist() == everyone
    match_descriptors(a, 5 * a)
    match_descriptors(a, np.zeros_like(a))
    mostly = a * (np.arange(60) < 12)[:, None]  # flat patches are described by zeros
    assert match_descriptors(a, mostly).pairs[:12].tolist() == everyone[:12]
    match_descriptors(a, 512 * a[:5])


def test_a_homography_is_found_among_wrong_matches():
    rng = np.random.default_rng(0)
    here = rng.uniform(0, 800, (300, 2))
    homography = np.array([[0.9, 0.1, 30], [-0.2, 1.1, 9], [1e-4, 5e-5, 1]])
    there = cv2.perspectiveTransform(here[:, None], homography)[:, 0] + rng.normal(
        0, 0.3, (300, 2)
    )
    there[150:] = rng.uniform(0, 800, (150, 2))
    found = verify_matches(here, there, "homography")
    assert found.inliers[:150].mean() > 0.97
    assert found.inliers[150:].mean() < 0.05
    np.testing.assert_allclose(found.matrix / found.matrix[2, 2], homography, rtol=0.1, atol=1)


def test_a_fundamental_matrix_is_found_among_wrong_matches():
    rng = np.random.default_rng(1)
    points = rng.uniform([-2, -2, 4], [2, 2, 8], (300, 3))
    k = np.array([[700, 0, 400], [0, 700, 300], [0, 0, 1.0]])
    turn, _ = cv2.Rodrigues(np.array([0.05, -0.2, 0.03]))
    one = points @ k.T
    two = (points @ turn.T + [1, 0.1, 0]) @ k.T
    here, there = one[:, :2] / one[:, 2:], two[:, :2] / two[:, 2:]
    there[200:] = rng.uniform(0, 700, (100, 2))
    found = verify_matches(here, there, threshold=1)
    assert found.inliers[:200].mean() > 0.97
    assert found.inliers[200:].mean() < 0.1
    ones = np.ones((200, 1))
    lines = np.hstack([here[:200], ones]) @ found.matrix.T
    off = (lines * np.hstack([there[:200], ones])).sum(axis=1)
    assert np.median(np.abs(off) / np.linalg.norm(lines[:, :2], axis=1)) < 0.1


@pytest.mark.parametrize(("geometry", "fewest"), [("homography", 10), ("fundamental", 24)])
def test_nothing_to_agree_on(geometry, fewest):
    """One place, one line, chance, or too few: no matrix, no inlier; just enough: all of them."""
    rng = np.random.default_rng(0)
    here = rng.uniform(0, 800, (200, 2))
    line = np.outer(np.arange(40), [3.0, 5.0])
    one = np.ones((40, 2))
    few = here[: fewest - 1]
    chance = rng.uniform(0, 800, (200, 2))
    nothing = ((few[:0], few[:0]), (one, one), (line, line), (few, few + 5), (here, chance))
    for a, b in nothing:
        matrix, inliers = verify_matches(a, b, geometry)
        assert matrix is None
        assert inliers.tolist() == [False] * len(a)
    matrix, inliers = verify_matches(here[:fewest], here[:fewest] + 5, geometry)
    assert matrix.shape == (3, 3)
    assert inliers.all()


def test_bad_positions_are_named():
    with pytest.raises(ValueError, match="geometry: expected one of auto, homography, fund"):
        verify_matches([], [], "affine")
    with pytest.raises(ValueError, match="a and b: expected as many rows, got 1 and 2"):
        verify_matches([[1, 2]], [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"b\[0\] has NaN or infinity"):
        verify_matches([[1, 2]], [[1, np.inf]])
    with pytest.raises(ValueError, match=r"a: expected positions \(M, 2\), got \(0, 3\)"):
        verify_matches(np.ones((0, 3)), [])
    for wrong in ([["1", "2"]], [[1, 2j]], [[None, 1]]):
        with pytest.raises(ValueError, match="a: expected positions as real numbers"):
            verify_matches(wrong, [[1, 2]])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("threshold", [-1, 0, np.nan, np.inf]),
        ("geometry", [None, [], "affine"]),
    ],
)
def test_bad_ways_of_verifying_are_named(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"{name}: expected"):
            verify_matches([], [], **{name: value})


def test_models_that_are_none_are_refused_whatever_the_ratio():
    few = np.eye(4, 8, dtype=np.float32)
    for ratio in ("auto", 0.8, None):
        with pytest.raises((ValueError, FileNotFoundError), match="nope"):
            match_descriptors(few, few, ratio=ratio, model="nope")
